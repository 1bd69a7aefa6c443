"""Refunds."""
