"""The lab: ways to sell a seat, side by side, on real engines."""
