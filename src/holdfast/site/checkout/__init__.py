"""From a hold to a ticket: the countdown, paying, tickets, my bookings (R9, R20–R24, R30).

stage.py  where a booking is       sheet.py   what its page tells      store.py  reads it
booking   the page                 paying     extend, let go, pay, come back, try again
yours     tickets, giving them away, giving them back              my        all of mine, offline too
"""
