"""What is given back to whom, and the gateway asked for it."""
