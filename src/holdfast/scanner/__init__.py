"""`holdfast gate`: a scanner program for a laptop with a keyboard scanner, online and offline (R30).

app.py     decides each scan              input.py   lines from the keyboard scanner
client.py  requests to the box office     journal.py what the scanner stores on disk
"""
