"""Contests between clients for the same seats: under load, and with a fault at the worst moment."""
