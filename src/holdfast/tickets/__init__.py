"""Tickets: signed codes and everything they are printed on (R30).

ticket.py    the signed code              issued.py    an issued ticket and its state
pdf.py       PDF                          qr.py        QR code
calendar.py  calendar entry               store.py     keys, codes, phones
transfer.py  transfer to another person   fonts.py     fonts for PDFs
acceptance.py  accepting a transfer
"""

from holdfast.tickets.acceptance import Acceptance
from holdfast.tickets.calendar import calendar_file
from holdfast.tickets.errors import BadCode, NoSuchTicket, NoTickets, ResendMax
from holdfast.tickets.fonts import typeface_for
from holdfast.tickets.issued import (
    Codes,
    IssuedTicket,
    PrintedTicket,
    Standing,
    TicketShow,
    Typeface,
    build_printed_ticket,
)
from holdfast.tickets.qr import png, svg_url
from holdfast.tickets.store import EntryPolicy, Tickets, parse_ticket
from holdfast.tickets.texts_files import texts_for as ticket_texts_for
from holdfast.tickets.ticket import Code, Ticket, TicketKey, is_live, phone_secret, read_code, show_secret
from holdfast.tickets.transfer import Giver, Transfers

__all__ = [
    "Acceptance",
    "BadCode",
    "Code",
    "Codes",
    "EntryPolicy",
    "Giver",
    "IssuedTicket",
    "NoSuchTicket",
    "NoTickets",
    "PrintedTicket",
    "ResendMax",
    "Standing",
    "Ticket",
    "TicketKey",
    "TicketShow",
    "Tickets",
    "Transfers",
    "Typeface",
    "build_printed_ticket",
    "calendar_file",
    "is_live",
    "parse_ticket",
    "phone_secret",
    "png",
    "read_code",
    "show_secret",
    "svg_url",
    "ticket_texts_for",
    "typeface_for",
]
