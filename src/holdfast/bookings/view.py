"""A booking as API clients and pages see it. No I/O."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from holdfast.bookings.booking import Booking, BookingState, public_id, reference
from holdfast.catalogue import ShowOnSale
from holdfast.layouts import Layout
from holdfast.pricing import PriceLines, Terms

BETTER = "better: "  # starts the note of hand-picked seats that leave a single one; better seats follow
ORPHAN_WARNING = "This choice leaves a single seat that is hard to sell; the seats in `better` would not."


class SeatPage(Struct, frozen=True):
    """What the seat costs, and what that is made of: base, fee and tax sum to the price."""

    label: str
    category: str
    price_minor: int
    base_minor: int
    fee_minor: int
    tax_minor: int


class RefundShown(Struct, frozen=True):
    """Money of this booking that goes back."""

    amount: int  # minor units of the booking's currency
    state: str  # requested: on its way; done; by_hand: a person sees to it
    requested_at: datetime


class BookingPage(Struct, frozen=True, kw_only=True):
    booking_id: str
    reference: str
    show_id: int
    state: BookingState
    seats: list[SeatPage]
    amount: int  # minor units of the currency, all-in; it is base, fee and tax together
    base_minor: int
    fee_minor: int
    tax_minor: int
    currency: str
    together: bool  # side by side, or in the same standing area
    why: str | None = None
    warning: str | None = None
    better: list[str] | None = None  # with a warning: seats that would not leave a single one
    opened_at: datetime
    expires_at: datetime | None = None  # only while it is held
    confirmed_at: datetime | None = None
    refunds: Sequence[RefundShown] = ()


def booking_page(
    booking: Booking, show: ShowOnSale, terms: Terms, refunds: Sequence[RefundShown] = ()
) -> BookingPage:
    """A booking as clients see it. Everything comes from its row: a retry returns the same as the first try.

    `terms` are those of the booking's revision, whatever the show is sold on today.
    """
    layout, seats, base, fee, tax = show.layout, [], 0, 0, 0
    labels, categories, of = layout.labels, layout.categories, layout.category_of
    for seat, line in zip(booking.seats, seat_lines(booking, show, terms), strict=True):
        seats.append(
            SeatPage(
                labels[seat],
                categories[of[seat]].name,
                line.price_minor,
                line.base_minor,
                line.fee_minor,
                line.tax_minor,
            )
        )
        base += line.base_minor
        fee += line.fee_minor
        tax += line.tax_minor
    # A call with more than 15 keywords builds a dict of them, and takes eight times as long.
    page = BookingPage(
        booking_id=public_id(booking.show_id, booking.number),
        reference=reference(booking.show_id, booking.number),
        show_id=booking.show_id,
        state=booking.state,
        seats=seats,
        amount=booking.amount_minor,
        base_minor=base,
        fee_minor=fee,
        tax_minor=tax,
        currency=booking.currency,
        together=are_together(layout, booking.seats),
        opened_at=booking.opened_at,
        expires_at=booking.expires_at if booking.state in (BookingState.HELD, BookingState.PAYING) else None,
        confirmed_at=booking.confirmed_at,
        refunds=refunds,
    )
    return _with_note(page, booking.note, labels) if booking.note else page


def _with_note(page: BookingPage, note: str, labels: Sequence[str]) -> BookingPage:
    """Why these seats were chosen; or which ones would be better."""
    if (better := better_of(note)) is None:
        return replace(page, why=note)
    return replace(page, warning=ORPHAN_WARNING, better=[labels[seat] for seat in better])


def seat_lines(booking: Booking, show: ShowOnSale, terms: Terms) -> list[PriceLines]:
    """Of each seat, as of its hold. Every hold comes by here: looked up, unless terms or price are others."""
    if terms is not show.terms:
        return [terms.lines(price) for price in booking.prices_minor]
    of, lines = show.layout.category_of, show.lines
    return [
        line if (line := lines[of[seat]]).price_minor == price else terms.lines(price)
        for seat, price in zip(booking.seats, booking.prices_minor, strict=True)
    ]


def are_together(layout: Layout, seats: tuple[int, ...]) -> bool:
    """Side by side, or in the same standing area."""
    first, last = seats[0], seats[-1]
    if (run := layout.run_at(first)) is not None:
        return last - first == len(seats) - 1 and last < run.start + run.length
    return layout.area_at(last) == layout.area_at(first)


def better_note(better: tuple[int, ...]) -> str:
    return BETTER + ",".join(map(str, better))


def better_of(note: str) -> list[int] | None:
    return [int(seat) for seat in note.removeprefix(BETTER).split(",")] if note.startswith(BETTER) else None
