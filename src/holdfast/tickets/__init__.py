"""Tickets: what is shown at the door (R30).

ticket.py    the signed code             link.py      the address of a ticket's page
issued.py    a ticket, and its pages     qr.py        the code as a picture
pdf.py       on paper                    calendar.py  in a calendar
store.py     keys, codes, phones         transfers/   given to somebody else
"""

from holdfast.tickets.calendar import calendar_file
from holdfast.tickets.errors import BadCode, NoSuchTicket, NoTickets
from holdfast.tickets.fonts import typeface_for
from holdfast.tickets.issued import Codes, IssuedTicket, Occasion, Printed, Standing, Typeface, printed
from holdfast.tickets.qr import png, svg_url
from holdfast.tickets.store import Door, Tickets, issued
from holdfast.tickets.ticket import Code, Ticket, TicketKey, is_live, phone_secret, read_code, show_secret
from holdfast.tickets.transfer import Giver, Transfers

__all__ = [
    "BadCode",
    "Code",
    "Codes",
    "Door",
    "Giver",
    "IssuedTicket",
    "NoSuchTicket",
    "NoTickets",
    "Occasion",
    "Printed",
    "Standing",
    "Ticket",
    "TicketKey",
    "Tickets",
    "Transfers",
    "Typeface",
    "calendar_file",
    "is_live",
    "issued",
    "phone_secret",
    "png",
    "printed",
    "read_code",
    "show_secret",
    "svg_url",
    "typeface_for",
]
