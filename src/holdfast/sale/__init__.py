"""The seam: a hold decided in Redis becomes a booking in the ledger; the two are kept in step (R9–R19)."""

from holdfast.sale.comparison import Difference, differences
from holdfast.sale.order import (
    BestBody,
    BookingPage,
    HoldBody,
    Order,
    PlacesBody,
    RefundShown,
    body_hash,
    booking_page,
    understood,
)
from holdfast.sale.store import Sales

__all__ = [
    "BestBody",
    "BookingPage",
    "Difference",
    "HoldBody",
    "Order",
    "PlacesBody",
    "RefundShown",
    "Sales",
    "body_hash",
    "booking_page",
    "differences",
    "understood",
]
