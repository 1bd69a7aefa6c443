"""The terms on which a show is sold: fee, tax, refund policy, and how much one card may buy. No I/O.

A revision of a show has terms that never change: bookings held under it keep them (table show_terms).

The refund policy: how much of the price is refunded on cancellation, and until when.

    now ──── 48 h before ───────── 2 h before ──── start
       100 %        │       50 %        │      0 %

A step promises a percentage until so many hours before the start. A buyer who cancels gets the best promise
that has not ended, so the order of steps does not matter and the refund never grows over time. If the show is
cancelled, everything is refunded, fees included, whatever the policy says.

Fee and tax: how a price is composed.

    price  =  base  +  fee  +  tax          the total: displayed first, and paid
              └── net ──┘
    tax    =  net · tax_bp                  rounded to the nearest minor unit, half up
    fee    =  fee_minor + base · fee_bp     base rounded the same way, the fee is the rest of the net

Computed in whole minor units, starting from the price, so the lines always add up to the amount paid and none
is negative. Invariant: of two prices under the same terms, the higher has no smaller base, fee or tax.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.pricing.errors import FeeTooHigh

WHOLE_BP = 10_000  # basis points of a whole


class PriceLines(Struct, frozen=True, gc=False):
    """The parts of the price of one seat, or of the sum of several."""

    price_minor: int
    base_minor: int
    fee_minor: int
    tax_minor: int


def break_down_price(price_minor: int, *, fee_minor: int, fee_bp: int, tax_bp: int) -> PriceLines:
    """Split a total price. A free seat has no fee; the fee is limited to the net."""
    tax = _share(price_minor, tax_bp, WHOLE_BP + tax_bp)
    net = price_minor - tax
    base = _share(max(0, net - fee_minor), WHOLE_BP, WHOLE_BP + fee_bp)
    return PriceLines(price_minor, base, net - base, tax)


def net_minor(price_minor: int, tax_bp: int) -> int:
    """The price without its tax."""
    return price_minor - _share(price_minor, tax_bp, WHOLE_BP + tax_bp)


def _share(amount: int, part: int, whole: int) -> int:
    return (2 * amount * part + whole) // (2 * whole)


Hours = Annotated[int, Meta(ge=0, le=24 * 366)]
Percent = Annotated[int, Meta(ge=0, le=100)]


class RefundStep(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Until `hours_before` the start, `percent` of the amount paid is refunded."""

    hours_before: Hours
    percent: Percent


class RefundPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Without steps nothing is refunded. `keep_fee`: fees are refunded only if the show is cancelled."""

    steps: Annotated[tuple[RefundStep, ...], Meta(max_length=10)] = ()
    keep_fee: bool = False


# The same stands in migrations/0002_catalogue.sql, as what an event has unless its organiser says otherwise.
DEFAULT_REFUND_POLICY = RefundPolicy(steps=(RefundStep(hours_before=24, percent=100),))


class RefundPromise(Struct, frozen=True, kw_only=True):
    """A percentage that is refunded before `until`; at that instant it has ended."""

    percent: int
    hours_before: int
    until: datetime


class RefundTerms(Struct, frozen=True, kw_only=True):
    """A refund policy as published: the promises in the order in which they end."""

    promises: list[RefundPromise]
    keep_fee: bool


class PolicyQuote(Struct, frozen=True, kw_only=True):
    """The refund now, until when it is valid, and the refund after that."""

    amount_minor: int
    percent: int
    until: datetime | None  # None: it does not change any more
    next_percent: int | None = None  # from `until` on
    next_amount_minor: int | None = None


def promises(policy: RefundPolicy, starts_at: datetime) -> list[RefundPromise]:
    """The effective steps in the order in which they end: each refunds less than the one before."""
    effective: list[RefundPromise] = []
    for step in sorted(policy.steps, key=lambda step: (step.hours_before, -step.percent)):
        if step.percent > (effective[-1].percent if effective else 0):
            until = starts_at - timedelta(hours=step.hours_before)
            effective.append(RefundPromise(percent=step.percent, hours_before=step.hours_before, until=until))
    return effective[::-1]


def build_refund_terms(policy: RefundPolicy, starts_at: datetime) -> RefundTerms:
    return RefundTerms(promises=promises(policy, starts_at), keep_fee=policy.keep_fee)


def quote_refund(
    policy: RefundPolicy,
    seats: Sequence[PriceLines],
    *,
    starts_at: datetime,
    now: datetime,
    cancelled: bool = False,
) -> PolicyQuote:
    """The refund for these seats. `now` is the database clock."""
    if cancelled:
        return PolicyQuote(amount_minor=sum(lines.price_minor for lines in seats), percent=100, until=None)
    ahead = _not_over(policy, starts_at, now)
    first = next(ahead, None)
    if first is None:
        return PolicyQuote(amount_minor=0, percent=0, until=None)
    second = next(ahead, None)
    next_percent = second.percent if second else 0
    return PolicyQuote(
        amount_minor=_amount(policy, seats, first.percent),
        percent=first.percent,
        until=first.until,
        next_percent=next_percent,
        next_amount_minor=_amount(policy, seats, next_percent),
    )


def _not_over(policy: RefundPolicy, starts_at: datetime, now: datetime) -> Iterator[RefundPromise]:
    return (promise for promise in promises(policy, starts_at) if now < promise.until)


def _amount(policy: RefundPolicy, seats: Sequence[PriceLines], percent: int) -> int:
    """Rounded per seat, so that returning two seats one by one refunds the same as both at once."""
    withheld_minor = [lines.fee_minor if policy.keep_fee else 0 for lines in seats]
    return sum(
        ((lines.price_minor - withheld) * percent + 50) // 100
        for lines, withheld in zip(seats, withheld_minor, strict=True)
    )


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
