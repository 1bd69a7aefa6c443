"""Shows: when an event plays, in which hall, for how much, and when its tickets are sold (R5, R33)."""
