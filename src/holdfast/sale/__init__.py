"""The seam: a hold decided in Redis becomes a booking in the ledger; the two are kept in step (R9–R19)."""

from holdfast.sale.comparison import Difference, differences
from holdfast.sale.order import BookingPage, RefundShown, body_hash, booking_page
from holdfast.sale.store import Sales

__all__ = [
    "BookingPage",
    "Difference",
    "RefundShown",
    "Sales",
    "body_hash",
    "booking_page",
    "differences",
]
