"""Who may ask at the door: made and ended by organisers (R30, R33)."""
