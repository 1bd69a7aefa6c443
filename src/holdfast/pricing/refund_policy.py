"""How much of the price is refunded on cancellation, and until when. No I/O.

    now ──── 48 h before ───────── 2 h before ──── start
       100 %        │       50 %        │      0 %

A step promises a percentage until so many hours before the start. A buyer who cancels gets the best promise
that has not ended, so the order of steps does not matter and the refund never grows over time. If the show is
cancelled, everything is refunded, fees included, whatever the policy says.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.pricing.breakdown import PriceLines

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
