"""A real browser on a real box office."""
