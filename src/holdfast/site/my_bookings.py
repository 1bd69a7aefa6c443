"""Reads what somebody has: bookings of the account and of guests it once was, tickets given to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from holdfast.accounts import Session
from holdfast.bookings import Booking, BookingState, public_id, reference
from holdfast.catalogue import load_show_rows
from holdfast.site.booking_stage import Stage, stage_of
from holdfast.site.load_booking import shown_ticket

if TYPE_CHECKING:
    from holdfast.app import App


BOOKINGS_MAX = 200
TICKETS_MAX = 100
NUMBER_MAX = 2**62
OPEN = (Stage.HELD, Stage.PAYING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mine:
    """A booking in the list."""

    path: str
    reference: str
    stage: Stage
    seats: list[str]
    amount_minor: int
    currency: str
    show: Any  # a row of show_detail
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A ticket that somebody gave to me."""

    shown: Any
    show: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class All:
    open: Sequence[Mine]  # something is to be done about them
    coming: Sequence[Mine]
    past: Sequence[Mine]
    given: Sequence[Given]
    now: datetime

    @property
    def is_empty(self) -> bool:
        return not (self.open or self.coming or self.past or self.given)


async def all_of(app: "App", visit: Session) -> All:
    """Open ones first, then what is coming, the soonest first, then what is over, the latest first."""
    now = visit.seen_at
    bookings: list[Booking] = []
    for owner_id in visit.owner_ids:
        bookings += await app.bookings.bookings_of(owner_id, before=NUMBER_MAX, limit=BOOKINGS_MAX)
    given = await _given_to(app, visit)
    show_ids = sorted({b.show_id for b in bookings} | {one.show_id for one in given})
    shows = {row["show_id"]: row for row in await load_show_rows(app, show_ids)} if show_ids else {}
    mine = [
        await _mine(app, booking, shows[booking.show_id], now)
        for booking in bookings
        if booking.state is not BookingState.BLOCKED
    ]
    coming = [one for one in mine if one.stage is Stage.CONFIRMED and one.show["ends_at"] > now]
    is_open = [one for one in mine if one.stage in OPEN]
    past = [one for one in mine if one not in coming and one not in is_open]
    return All(
        open=sorted(is_open, key=lambda one: one.expires_at),
        coming=sorted(coming, key=lambda one: one.show["starts_at"]),
        past=sorted(past, key=lambda one: one.show["starts_at"], reverse=True),
        given=[
            Given(shown=await shown_ticket(app, one, None, is_mine=True), show=shows[one.show_id])
            for one in given
        ],
        now=now,
    )


async def _given_to(app: "App", visit: Session) -> list[Any]:
    if visit.is_guest:  # an address that was only typed proves nothing
        return []
    found = await app.tickets.of_owner(
        visit.account_id, visit.account.email, before=NUMBER_MAX, limit=TICKETS_MAX
    )
    return [one for one in found if one.booked_by not in visit.owner_ids and one.voided_at is None]


async def _mine(app: "App", booking: Booking, show: Any, now: datetime) -> Mine:
    layout = (await app.catalogue.show_on_sale(booking.show_id)).layout
    left_ms = int((booking.expires_at - now).total_seconds() * 1000)
    return Mine(
        path=f"/bookings/{public_id(booking.show_id, booking.number)}",
        reference=reference(booking.show_id, booking.number),
        stage=stage_of(booking.state, left_ms),
        seats=[layout.labels[seat] for seat in booking.seats],
        amount_minor=booking.amount_minor,
        currency=booking.currency,
        show=show,
        expires_at=booking.expires_at,
    )
