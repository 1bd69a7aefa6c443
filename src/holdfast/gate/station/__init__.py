"""A gate of its own: a scanner that types, a screen, and a network that comes and goes (R30)."""
