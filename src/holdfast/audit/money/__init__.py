"""What must never be true of the money."""
