"""What comes back to somebody who cancels, and until when. No I/O.

    now ──── 48 h before ───────── 2 h before ──── start
       100 %        │       50 %        │      0 %

A step is a promise that ends: so much comes back until so many hours before the start. Whoever cancels gets
the best of the promises that have not ended, so their order says nothing and what comes back never grows.
A show that is cancelled gives everything back, fees too, whatever its policy says.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.pricing.breakdown import PriceLines

Hours = Annotated[int, Meta(ge=0, le=24 * 366)]
Percent = Annotated[int, Meta(ge=0, le=100)]


class RefundStep(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Until `hours_before` the start, `percent` of what was paid comes back."""

    hours_before: Hours
    percent: Percent


class RefundPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """No steps: nothing comes back. `keep_fee`: the service fee never does, unless the show is cancelled."""

    steps: Annotated[tuple[RefundStep, ...], Meta(max_length=10)] = ()
    keep_fee: bool = False


# The same stands in migrations/0002_catalogue.sql, as what an event has unless its organiser says otherwise.
DEFAULT_REFUND_POLICY = RefundPolicy(steps=(RefundStep(hours_before=24, percent=100),))


class RefundPromise(Struct, frozen=True, kw_only=True):
    """So much until then; at that very instant it is over."""

    percent: int
    hours_before: int
    until: datetime


class RefundTerms(Struct, frozen=True, kw_only=True):
    """What comes back, as it is told: the promises in the order in which they end, then nothing."""

    promises: list[RefundPromise]
    keep_fee: bool


class PolicyQuote(Struct, frozen=True, kw_only=True):
    """What comes back now, how long that holds, and what after that."""

    amount_minor: int
    percent: int
    until: datetime | None  # None: it stays so
    next_percent: int | None = None  # from `until` on
    next_amount_minor: int | None = None


def promises(policy: RefundPolicy, starts_at: datetime) -> list[RefundPromise]:
    """The steps that mean something, in the order in which they end: each gives less than the one before."""
    kept: list[RefundPromise] = []
    for step in sorted(policy.steps, key=lambda step: (step.hours_before, -step.percent)):
        if step.percent > (kept[-1].percent if kept else 0):
            until = starts_at - timedelta(hours=step.hours_before)
            kept.append(RefundPromise(percent=step.percent, hours_before=step.hours_before, until=until))
    return kept[::-1]


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
    """What the owner of these seats gets back for them. `now` is the ledger's."""
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
    """Seat by seat, so that two seats given back one by one come to the same as both at once."""
    kept_minor = [lines.fee_minor if policy.keep_fee else 0 for lines in seats]
    return sum(
        ((lines.price_minor - kept) * percent + 50) // 100
        for lines, kept in zip(seats, kept_minor, strict=True)
    )
