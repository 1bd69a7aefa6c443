"""Seats an organiser keeps back: under the same key as bookings (R33)."""
