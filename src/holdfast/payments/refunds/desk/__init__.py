"""The organisers' side of refunds."""
