"""A gate of its own: a scanner that types, a screen, and a network that comes and goes (R30).

store.py   asks, decides, tells      typed/   what the scanner types
wire/      the way to the box office      diary/   what is on disk
"""
