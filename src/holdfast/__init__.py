"""Holdfast: a ticket box office that never sells a seat twice."""
