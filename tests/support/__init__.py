"""Builders, fixtures and helpers that several test modules use."""
