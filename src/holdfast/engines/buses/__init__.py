"""The logs that a bus can be: engines/bus.py says what they have in common."""
