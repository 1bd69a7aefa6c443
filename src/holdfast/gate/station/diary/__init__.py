"""What a station keeps on disk (R30)."""
