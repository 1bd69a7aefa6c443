"""Whole answers, kept as bytes."""
