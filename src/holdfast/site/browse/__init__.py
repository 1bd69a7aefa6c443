"""What is on: home, search, events, venues."""
