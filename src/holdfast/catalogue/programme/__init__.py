"""The whole programme, for whoever keeps a copy of it."""
