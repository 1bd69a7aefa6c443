"""Selling while Redis is away."""
