"""Figures of a show's sale, or of all shows of an event. No I/O."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from holdfast.outbox import (
    BookingConfirmed,
    BookingReduced,
    BookingRefunded,
    Fact,
    RefundByHand,
    RefundRequested,
)
from holdfast.outbox import RefundDone as RefundMade

R = TypeVar("R", bound=Struct)
MINUTES_MAX = 10_080  # per response: a week, if something happens every minute


class Funnel(Struct, frozen=True, kw_only=True):
    """Bookings by how far they came. One that lapsed and was paid for late is in both."""

    held: int  # all there were; what is free is confirmed at once
    paying: int
    confirmed: int
    lapsed: int
    cancelled: int  # released by their owners
    failed: int  # paid too late, and another buyer had the seats
    refunded: int  # whole; a booking that gave some seats back is still confirmed


class Revenue(Struct, frozen=True, kw_only=True):
    """Of seats that are sold now, at the prices they were held at."""

    category: str
    currency: str
    seats: int
    amount_minor: int  # base, fee and tax
    base_minor: int
    fee_minor: int
    tax_minor: int


class RefundSum(Struct, frozen=True, kw_only=True):
    currency: str
    refunds: int
    amount_minor: int  # of all that were decided
    done_minor: int  # of those that the gateway has made, or a person


class Minute(Struct, frozen=True, kw_only=True):
    begins_at: datetime
    sold: int  # seats
    returned: int


class GateMinute(Struct, frozen=True, kw_only=True):
    gate: str
    begins_at: datetime
    came_in: int  # without those that the gate took back
    went_out: int


class SaleFigures(Struct, frozen=True, kw_only=True):
    seats_sold: int  # and not given back
    seats_returned: int
    funnel: Funnel
    revenue: list[Revenue]
    refunds: list[RefundSum]

    @property
    def revenue_sums(self) -> dict[str, int]:
        """By currency."""
        return {
            currency: sum(one.amount_minor for one in self.revenue if one.currency == currency)
            for currency in dict.fromkeys(one.currency for one in self.revenue)
        }


class ShowFigures(Struct, frozen=True, kw_only=True):
    show_id: int
    figures: SaleFigures
    minutes: list[Minute]  # in which something was sold or given back, the first first
    minutes_next: datetime | None  # ask for `since` this to go on; null: that was all
    gates: list[GateMinute]


class ShowSum(Struct, frozen=True, kw_only=True):
    show_id: int
    starts_at: datetime
    timezone: str  # of the venue
    seats_sold: int
    seats_returned: int
    amount_minor: int
    currency: str


class ShowLine(Struct, frozen=True, kw_only=True):
    """A show in the list of its organiser."""

    show_id: int
    event_id: int
    title: str
    venue: str
    hall: str
    timezone: str
    starts_at: datetime
    currency: str
    cancelled: bool
    hidden: bool  # a draft, or unpublished
    seats: int
    opens_at: datetime
    closes_at: datetime
    seats_sold: int
    seats_returned: int
    amount_minor: int


class EventFigures(Struct, frozen=True, kw_only=True):
    event_id: int
    title: str
    figures: SaleFigures
    shows: list[ShowSum]  # the soonest first
    complete: bool = True  # false: some databases cannot be reached, sales of their shows are missing here
    missing_pods: list[str] = msgspec.field(default_factory=list)


class SeatSum(Struct, frozen=True, kw_only=True):
    """What was sold of one show."""

    show_id: int
    seats_sold: int
    seats_returned: int
    amount_minor: int


class FiguresQuery(Struct, forbid_unknown_fields=True, frozen=True):
    since: Annotated[datetime, Meta(tz=True)] | None = None  # of the minutes


def add_figures(parts: Sequence[SaleFigures]) -> SaleFigures:
    """Of different shows, as one."""
    stages = Funnel.__struct_fields__
    return SaleFigures(
        seats_sold=sum(part.seats_sold for part in parts),
        seats_returned=sum(part.seats_returned for part in parts),
        funnel=Funnel(**{stage: sum(getattr(part.funnel, stage) for part in parts) for stage in stages}),
        revenue=_add_rows([one for part in parts for one in part.revenue], ("category", "currency")),
        refunds=_add_rows([one for part in parts for one in part.refunds], ("currency",)),
    )


def _add_rows(rows: Sequence[R], keys: tuple[str, ...]) -> list[R]:
    """One row for all with the same keys, in their order; the other fields are added."""
    groups: defaultdict[tuple[str, ...], list[R]] = defaultdict(list)
    for row in rows:
        groups[tuple(getattr(row, key) for key in keys)].append(row)
    return [
        msgspec.structs.replace(
            some[0],
            **{
                name: sum(getattr(row, name) for row in some)
                for name in some[0].__struct_fields__
                if name not in keys
            },
        )
        for _, some in sorted(groups.items())
    ]


Place = tuple[int, int]  # show, number of the booking


@dataclass(frozen=True, slots=True)
class ReportChanges:
    sold: list[tuple[Place, datetime, BookingConfirmed]] = field(default_factory=list)
    returned: list[tuple[int, int, int | None, datetime]] = field(default_factory=list)  # None: all seats
    stages: list[tuple[int, int, str, datetime]] = field(default_factory=list)
    refunds: list[tuple[int, int, int, int, int, str, str, int]] = field(default_factory=list)


def collect_changes(facts: Sequence[Fact]) -> ReportChanges:
    changes = ReportChanges()
    for fact in facts:
        if fact.number is not None and not getattr(fact.body, "is_block", False):
            _add(changes, fact, (fact.show_id, fact.number))
    return changes


def _add(changes: ReportChanges, fact: Fact, place: Place) -> None:
    match fact.body:
        case RefundRequested() | RefundMade() | RefundByHand() as refund:
            of = (refund.attempt, refund.refund, refund.amount_minor, refund.currency)
            changes.refunds.append((*place, *of, fact.kind.removeprefix("refund."), fact.id))
            return
        case BookingReduced(given_back=seats):
            changes.returned.extend((*place, seat, fact.at) for seat in seats)
            return
        case BookingConfirmed() as booking:
            changes.sold.append((place, fact.at, booking))
        case BookingRefunded():
            changes.returned.append((*place, None, fact.at))
    changes.stages.append((*place, fact.kind.removeprefix("booking."), fact.at))
