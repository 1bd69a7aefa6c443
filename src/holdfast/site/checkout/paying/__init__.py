"""While seats are held: longer, gone, paid for."""
