"""Other people's services, speaking their real protocol."""
