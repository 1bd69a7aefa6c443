"""What happened, told to everybody who wants to hear, once it is durable (R28).

A subject that wants to hear has a Consumer in `consumers()` of app.py: docs/consumers.md. One that has
something to tell calls `tell` in the transaction that makes it true.
"""

from holdfast.outbox.consumer import Consumer
from holdfast.outbox.fact import (
    KINDS,
    Body,
    BookingConfirmed,
    BookingExpired,
    BookingHeld,
    BookingReduced,
    BookingRefunded,
    CityChanged,
    EndpointSwitchedOff,
    EventChanged,
    Fact,
    Other,
    PaymentDeclined,
    PaymentLate,
    RefundAsked,
    RefundByHand,
    RefundDone,
    ShowCancelled,
    ShowChanged,
    TicketsSentAgain,
    TicketTransferred,
    VenueChanged,
)
from holdfast.outbox.store import Outbox, consume_many, consume_once, tell
from holdfast.outbox.wire import from_json, to_json

__all__ = [
    "KINDS",
    "Body",
    "BookingConfirmed",
    "BookingExpired",
    "BookingHeld",
    "BookingReduced",
    "BookingRefunded",
    "CityChanged",
    "Consumer",
    "EndpointSwitchedOff",
    "EventChanged",
    "Fact",
    "Other",
    "Outbox",
    "PaymentDeclined",
    "PaymentLate",
    "RefundAsked",
    "RefundByHand",
    "RefundDone",
    "ShowCancelled",
    "ShowChanged",
    "TicketTransferred",
    "TicketsSentAgain",
    "VenueChanged",
    "consume_many",
    "consume_once",
    "from_json",
    "tell",
    "to_json",
]
