"""The seam: a hold decided in Redis becomes a booking in the ledger; the two are kept in step (R9–R19)."""

from holdfast.sale.comparison import Difference, differences
from holdfast.sale.order import body_hash
from holdfast.sale.store import Sales

__all__ = ["Difference", "Sales", "body_hash", "differences"]
