"""Facts: what happened, published to every consumer once it is durable (R28).

A subject that consumes facts has a Consumer in background.py: docs/consumers.md. A subject that
publishes one calls `add_fact` in the transaction that makes it true.
"""

from holdfast.outbox.body import Body, UnknownBody
from holdfast.outbox.consumer import Consumer
from holdfast.outbox.every_pod import (
    forget_group,
    load_dead_facts,
    load_groups,
    retry_dead_fact,
    retry_dead_facts,
)
from holdfast.outbox.fact import (
    KINDS,
    BookingConfirmed,
    BookingExpired,
    BookingHeld,
    BookingMerged,
    BookingReduced,
    BookingRefunded,
    CityChanged,
    EndpointSwitchedOff,
    EventChanged,
    Fact,
    PaymentBody,
    PaymentDeclined,
    PaymentDisputed,
    PaymentLate,
    RefundByHand,
    RefundDone,
    RefundRequested,
    ShowCancelledFact,
    ShowChanged,
    TicketsSentAgain,
    TicketTakenBack,
    TicketTransferred,
    VenueChanged,
)
from holdfast.outbox.fact_queue import QueueCalled, QueueClosed, QueueDrained, QueueDrawn, QueueOpened
from holdfast.outbox.store import Outbox, add_fact, consume_many, consume_once, hold_facts
from holdfast.outbox.waitlist_facts import WaitlistEnded, WaitlistJoined, WaitlistOffered
from holdfast.outbox.wire import from_json, to_json

__all__ = [
    "KINDS",
    "Body",
    "BookingConfirmed",
    "BookingExpired",
    "BookingHeld",
    "BookingMerged",
    "BookingReduced",
    "BookingRefunded",
    "CityChanged",
    "Consumer",
    "EndpointSwitchedOff",
    "EventChanged",
    "Fact",
    "Outbox",
    "PaymentBody",
    "PaymentDeclined",
    "PaymentDisputed",
    "PaymentLate",
    "QueueCalled",
    "QueueClosed",
    "QueueDrained",
    "QueueDrawn",
    "QueueOpened",
    "RefundByHand",
    "RefundDone",
    "RefundRequested",
    "ShowCancelledFact",
    "ShowChanged",
    "TicketTakenBack",
    "TicketTransferred",
    "TicketsSentAgain",
    "UnknownBody",
    "VenueChanged",
    "WaitlistEnded",
    "WaitlistJoined",
    "WaitlistOffered",
    "add_fact",
    "consume_many",
    "consume_once",
    "forget_group",
    "from_json",
    "hold_facts",
    "load_dead_facts",
    "load_groups",
    "retry_dead_fact",
    "retry_dead_facts",
    "to_json",
]
