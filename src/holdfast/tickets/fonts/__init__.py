"""The letters of printed tickets, from packages that carry fonts (docs/decisions, the page on fonts)."""
