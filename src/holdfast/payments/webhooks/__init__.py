"""What gateways tell us of their own accord: stored before it is answered, then looked into."""
