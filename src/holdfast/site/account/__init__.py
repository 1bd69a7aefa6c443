"""Signing up, in and out, in a browser."""
