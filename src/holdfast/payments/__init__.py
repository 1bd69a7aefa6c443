"""From a hold to money, surviving a crash at every line (R20–R24)."""

from holdfast.payments.cashier.store import Cashier
from holdfast.payments.gateways import gateway_of
from holdfast.payments.store import PaymentBook

__all__ = ["Cashier", "PaymentBook", "gateway_of"]
