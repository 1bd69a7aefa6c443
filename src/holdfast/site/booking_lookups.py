"""What the page of a booking shows beside its row, loaded at once: the payment, other holds, the terms.

Each lookup joins a batch, and all batches are sent at the same time: many pages cost the ledger a few
statements. Together with those for the session and the booking they are all that the page of a hold takes.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.accounts import Session
from holdfast.bookings import Booking, BookingState
from holdfast.legal import NO_TERMS, TermsInForce
from holdfast.payments import Payment

if TYPE_CHECKING:
    from holdfast.app import App


@dataclass(frozen=True, slots=True)
class BookingLookups:
    payment: Payment | None  # the latest
    holds: Sequence[Booking]  # of this buyer in the show, if the booking is held; itself among them
    agreement: TermsInForce  # to be agreed to, if it is held


async def look_up(app: "App", session: Session, booking: Booking) -> BookingLookups:
    show_id, is_held = booking.show_id, booking.state is BookingState.HELD
    payment = app.payments.latest(show_id, booking.number) if booking.amount_minor else None
    holds = [app.bookings.open_holds_of(one, show_id) for one in session.owner_ids] if is_held else []
    terms = app.legal.terms_of_show(show_id) if is_held else None
    await asyncio.gather(*(look for look in (payment, terms, *holds) if look is not None))
    return BookingLookups(
        payment=payment.result() if payment is not None else None,
        holds=[one for found in holds for one in found.result()],
        agreement=terms.result() if terms is not None else NO_TERMS,
    )
