"""From a hold to a ticket: the countdown, paying, tickets, my bookings."""
