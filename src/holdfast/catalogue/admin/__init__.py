"""The organisers' side of the catalogue: making and changing what is on (R33)."""
