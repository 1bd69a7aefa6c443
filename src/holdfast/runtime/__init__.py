"""Processes: which ones a command starts (launch.py), and what runs in each (workers.py)."""
