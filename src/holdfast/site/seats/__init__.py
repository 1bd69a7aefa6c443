"""Choosing seats: the show's page, with its map and its lists."""
