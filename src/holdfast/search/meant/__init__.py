"""What was meant by what was typed."""
