"""Price rules: kept, tried out, and followed by the prices of a show (R33)."""
