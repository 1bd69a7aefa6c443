"""Carries payments on: the only place that asks a gateway for money."""
