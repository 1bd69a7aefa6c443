"""Refunds: quotes, decisions (decision.py), execution and cancelled shows (R18, R24)."""
