"""Keeping search's copy of the catalogue."""
