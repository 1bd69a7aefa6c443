"""Tickets that change hands (R30)."""
