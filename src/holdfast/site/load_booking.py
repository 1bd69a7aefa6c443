"""Loads everything that the page of a booking shows."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from holdfast.accounts import Session
from holdfast.bookings import (
    Booking,
    BookingState,
    NoSuchBooking,
    booking_page,
    from_public_id,
    public_id,
)
from holdfast.catalogue import ShowOnSale
from holdfast.holds import can_merge
from holdfast.site.booking_lookups import look_up
from holdfast.site.booking_view import (
    SUSPENDED,
    BookedSeat,
    BookingView,
    OtherHold,
    PaymentEvent,
    ShownTicket,
)
from holdfast.tickets import Codes, Giver, IssuedTicket, Standing, build_printed_ticket, svg_url

if TYPE_CHECKING:
    from holdfast.app import App


HAS_TICKETS = (BookingState.CONFIRMED, BookingState.REFUNDED)
ENDED = {"paid", "declined", "called_off", "expired"}


async def load_own_booking(app: "App", session: Session, public_id: str) -> Booking:
    """A booking of this session or of a guest it was before; NoSuchBooking for all others."""
    show_id, number = from_public_id(public_id)
    booking: Booking | None = await app.bookings.booking(show_id, number)
    if booking is None or booking.owner_id not in session.owner_ids or booking.state is BookingState.BLOCKED:
        raise NoSuchBooking
    return booking


async def load_booking_view(
    app: "App", session: Session, booking: Booking, now: datetime | None = None
) -> BookingView:
    """`now` is the ledger's clock, if the caller has just read it."""
    show = await app.catalogue.show_on_sale(booking.show_id)
    terms = await app.catalogue.terms(show, booking.revision)
    found = await look_up(app, session, booking)
    payment = found.payment
    # A booking without a payment has no payment history to load.
    refunds = (await app.refunds.shown_many([booking]))[0] if payment is not None else []
    page = booking_page(booking, show, terms, refunds)
    has_tickets = booking.state in HAS_TICKETS
    return BookingView(
        page=page,
        occasion=await app.tickets.recent_occasion(booking.show_id),
        places=tuple(
            BookedSeat(**_seat_fields(show.layout, seat), price_minor=price)
            for seat, price in zip(booking.seats, booking.prices_minor, strict=True)
        ),
        payment=payment,
        expires_at=booking.expires_at,
        life_max_s=app.config.hold_life_max_s,
        now=now or await app.refund_store.ledger_now(),
        payment_history=await _payment_history(app, booking) if payment is not None else (),
        tickets=await _tickets(app, transfer_sender(session, booking), booking) if has_tickets else (),
        other_holds=[_other_hold(booking, one, show) for one in found.holds if one.number != booking.number],
        agreement=found.agreement,
        sell_back=await app.waitlists.return_state(booking, show),
        is_offer=booking.is_offer,
    )


def _other_hold(booking: Booking, other: Booking, show: ShowOnSale) -> OtherHold:
    """A buyer who went back and held again shall not pay twice without noticing."""
    return OtherHold(
        booking_id=public_id(other.show_id, other.number),
        seats=[show.layout.labels[seat] for seat in other.seats],
        expires_at=other.expires_at,
        can_merge=can_merge(booking, other, show),
    )


def transfer_sender(session: Session, booking: Booking) -> Giver:
    """The owner of this booking as the sender of a transfer."""
    return Giver(booking.owner_id, session.account.proved_email)


async def load_tickets(app: "App", booking: Booking) -> list[IssuedTicket]:
    found: list[IssuedTicket] = await app.tickets.of_booking(booking.show_id, booking.number)
    return found


async def build_shown_ticket(
    app: "App", ticket: IssuedTicket, booking: Booking | None, *, is_mine: bool
) -> ShownTicket:
    layout = (await app.catalogue.show_on_sale(ticket.show_id)).layout
    has_code = is_mine and ticket.voided_at is None and ticket.codes is Codes.FIXED
    code = await app.tickets.fixed_code(ticket) if has_code else None
    is_good = is_mine and ticket.voided_at is None
    return ShownTicket(
        printed=build_printed_ticket(ticket, layout, booking, code),
        link=await app.tickets.link(ticket) if is_good else None,
        qr=svg_url(code) if code else None,
        standing=_standing(ticket, is_mine=is_mine),
        is_live=ticket.codes is not Codes.FIXED,
        waits_for=ticket.owner_email,
    )


def _standing(ticket: IssuedTicket, *, is_mine: bool) -> str:
    """The name of the text on its stub."""
    if ticket.is_suspended:
        return SUSPENDED
    return ticket.worth if is_mine or ticket.voided_at else Standing.GIVEN_AWAY


async def _tickets(app: "App", me: Giver, booking: Booking) -> list[ShownTicket]:
    return [
        await build_shown_ticket(app, one, booking, is_mine=one.is_of(me.account_id))
        for one in await load_tickets(app, booking)
    ]


async def _payment_history(app: "App", booking: Booking) -> Sequence[PaymentEvent]:
    """What became of each attempt to pay, and of each refund, in the order in which it happened."""
    key = (booking.show_id, booking.number)
    lines = [_payment_event(row) for row in await app.refund_store.attempts_of(booking)]
    for refund in (await app.refund_store.refunds_of([key]))[key]:
        amount = refund.amount_minor
        lines.append(PaymentEvent(at=refund.requested_at, what="refund_requested", amount_minor=amount))
        if refund.done_at is not None:
            lines.append(PaymentEvent(at=refund.done_at, what="refund_done", amount_minor=amount))
        elif refund.state == "by_hand":
            lines.append(PaymentEvent(at=refund.requested_at, what="refund_by_hand", amount_minor=amount))
    return sorted(lines, key=lambda line: line.at)


def _payment_event(row: Any) -> PaymentEvent:
    what = row["step"] if row["step"] in ENDED else "under_way"
    if row["step"] in ("returned", "by_hand"):
        what = "came_late"
    return PaymentEvent(
        at=row["ended_at"] or row["requested_at"],
        what=what,
        amount_minor=row["amount_minor"],
        reason=row["reason"] or "",
    )


def _seat_fields(layout: Any, index: int) -> dict[str, str]:
    seat = layout.seat(index)
    return {
        "label": seat.label,
        "section": seat.section,
        "row": seat.row,
        "number": seat.number,
        "category": layout.categories[seat.category].name,
        "trait": seat.trait,
    }
