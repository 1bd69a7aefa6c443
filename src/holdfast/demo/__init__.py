"""A box office full of invented shows, to try things in."""
