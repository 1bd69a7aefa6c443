"""Organisers."""
