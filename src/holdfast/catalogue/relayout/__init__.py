"""Another layout for a show that is on sale: seen first, then taken over whole or not at all (R33)."""
