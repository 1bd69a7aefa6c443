"""From a hold to money, surviving a crash at every line (R20–R24)."""

from holdfast.payments.gateway import Answer, Charge, Gateway, Refunded
from holdfast.payments.gateways import gateway_of
from holdfast.payments.payment import Ask, Payment, booking_of_key
from holdfast.payments.reconciliation import Reconciliation
from holdfast.payments.saga import Step
from holdfast.payments.saga_runner import SagaRunner
from holdfast.payments.store import PaymentStore, Started
from holdfast.payments.webhooks import IncomingWebhooks

__all__ = [
    "Answer",
    "Ask",
    "Charge",
    "Gateway",
    "IncomingWebhooks",
    "Payment",
    "PaymentStore",
    "Reconciliation",
    "Refunded",
    "SagaRunner",
    "Started",
    "Step",
    "booking_of_key",
    "gateway_of",
]
