"""What facts change in the figures: many facts, a few lists of rows. No I/O.

The order of the lists is that in which they are written: a seat is sold before it is given back.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from holdfast.outbox import BookingConfirmed, BookingReduced, BookingRefunded, Fact, RefundAsked, RefundByHand
from holdfast.outbox import RefundDone as RefundMade

Place = tuple[int, int]  # show, number of the booking


@dataclass(frozen=True, slots=True)
class Changes:
    sold: list[tuple[Place, datetime, BookingConfirmed]] = field(default_factory=list)
    returned: list[tuple[int, int, int | None, datetime]] = field(default_factory=list)  # None: all seats
    stages: list[tuple[int, int, str, datetime]] = field(default_factory=list)
    refunds: list[tuple[int, int, int, int, int, str, str, int]] = field(default_factory=list)


def changes_of(facts: Sequence[Fact]) -> Changes:
    changes = Changes()
    for fact in facts:
        if fact.number is not None and not getattr(fact.body, "is_block", False):
            _add(changes, fact, (fact.show_id, fact.number))
    return changes


def _add(changes: Changes, fact: Fact, place: Place) -> None:
    match fact.body:
        case RefundAsked() | RefundMade() | RefundByHand() as refund:
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
