"""Payments: from a hold to a confirmed booking, safe against a crash at every line (R20–R24)."""

from holdfast.payments.chargebacks import Chargebacks
from holdfast.payments.errors import GatewayMissing, refuse_prices_without_gateway
from holdfast.payments.every_pod import load_comparison, load_webhooks
from holdfast.payments.gateway import Charge, Gateway, GatewayAnswer, RefundResult
from holdfast.payments.gateways import GATEWAYS, open_gateway
from holdfast.payments.payment import Payment, PaymentRequest, parse_payment_key
from holdfast.payments.reconciliation import Reconciliation
from holdfast.payments.saga import PaymentStep
from holdfast.payments.saga_runner import SagaRunner
from holdfast.payments.store import PaymentStart, PaymentStore
from holdfast.payments.webhooks import AfterPayment, IncomingWebhooks, WebhookQuery

__all__ = [
    "GATEWAYS",
    "AfterPayment",
    "Charge",
    "Chargebacks",
    "Gateway",
    "GatewayAnswer",
    "GatewayMissing",
    "IncomingWebhooks",
    "Payment",
    "PaymentRequest",
    "PaymentStart",
    "PaymentStep",
    "PaymentStore",
    "Reconciliation",
    "RefundResult",
    "SagaRunner",
    "WebhookQuery",
    "load_comparison",
    "load_webhooks",
    "open_gateway",
    "parse_payment_key",
    "refuse_prices_without_gateway",
]
