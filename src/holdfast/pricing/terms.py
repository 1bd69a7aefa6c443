"""On what terms a show is sold: its fee, its tax, what comes back, how much one card may buy. No I/O.

A revision of a show has terms that never change: bookings held under it keep them (table show_terms).
"""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.pricing.breakdown import WHOLE_BP, PriceLines, break_down_price, net_minor
from holdfast.pricing.errors import FeeTooHigh
from holdfast.pricing.refund_policy import DEFAULT_REFUND_POLICY, RefundPolicy

FeeMinor = Annotated[int, Meta(ge=0, le=1_000_000_000)]
BasisPoints = Annotated[int, Meta(ge=0, le=WHOLE_BP)]
CardSeats = Annotated[int, Meta(ge=1, le=1000)]


class Terms(Struct, frozen=True, kw_only=True):
    fee_minor: int = 0  # of a seat: a fixed part
    fee_bp: int = 0  # and a share of its base
    tax_bp: int = 0  # on both; in the price
    refund_policy: RefundPolicy = DEFAULT_REFUND_POLICY
    card_seats_max: int | None = None  # seats of this show that one card may buy

    def lines(self, price_minor: int) -> PriceLines:
        return break_down_price(price_minor, fee_minor=self.fee_minor, fee_bp=self.fee_bp, tax_bp=self.tax_bp)

    def check(self, prices: Iterable[int]) -> None:
        """Refuse a fee that the cheapest seat cannot bear. What is free bears none."""
        cheapest = min((price for price in prices if price > 0), default=None)
        if cheapest is not None and self.fee_minor > (net := net_minor(cheapest, self.tax_bp)):
            raise FeeTooHigh(fee_minor=self.fee_minor, price_minor=cheapest, net_minor=net)


DEFAULT_TERMS = Terms()  # of what was held before there were terms, and of blocks
