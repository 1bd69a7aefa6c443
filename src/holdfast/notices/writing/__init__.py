"""Notices become letters: what they speak of is read, and put into words."""
