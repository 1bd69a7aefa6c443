"""All that is mine, also without a network."""
