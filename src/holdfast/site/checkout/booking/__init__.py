"""The page of a booking, in whatever state it is."""
