"""What is bought: on paper, in a calendar, given away, given back."""
