"""What a scanner types (R30).

line.py   bytes into lines      store.py   as they come
"""
