"""From a hold to money, surviving a crash at every line (R20–R24)."""

from holdfast.payments.gateway import Answer, Charge, Gateway, Refunded
from holdfast.payments.gateways import gateway_of
from holdfast.payments.payment import Ask, Payment, booking_of_key
from holdfast.payments.reconciliation import Books
from holdfast.payments.saga import Step
from holdfast.payments.saga_runner import Cashier
from holdfast.payments.store import PaymentBook, Started
from holdfast.payments.webhooks import Webhooks

__all__ = [
    "Answer",
    "Ask",
    "Books",
    "Cashier",
    "Charge",
    "Gateway",
    "Payment",
    "PaymentBook",
    "Refunded",
    "Started",
    "Step",
    "Webhooks",
    "booking_of_key",
    "gateway_of",
]
