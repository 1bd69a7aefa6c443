"""Whole pages of the catalogue, put together: for the API and for pages alike."""
