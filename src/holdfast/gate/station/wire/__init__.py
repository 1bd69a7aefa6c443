"""A station's way to the box office (R30)."""
