"""From an order and what Redis said of it to what the ledger is asked, and back to a booking. No I/O."""

from collections.abc import Iterable

from holdfast.bookings import Booking, BookingState, HoldGone, Opened, Opening, Rival
from holdfast.catalogue import ShowOnSale
from holdfast.claim import Claim, Settlement
from holdfast.holds.choice import Want, why
from holdfast.holds.errors import NotOnSale, PriceChanged
from holdfast.holds.outcome import Again, Best, Held, Places, Seats
from holdfast.holds.request import HoldRequest, better_note


def opening_of(
    order: HoldRequest, held: Held | Again, claimed_at_s: float, *, by_ledger: bool = False
) -> Opening:
    show, category_of = order.show, order.show.layout.category_of
    return Opening(
        show_id=show.show_id,
        owner_id=order.owner_id,
        request_id=order.request_id,
        body_hash=order.body_hash,
        claim_id=order.claim_id,
        note=note(order, held),
        ttl_ms=show.hold_ttl_s * 1000,
        claimed_at_s=claimed_at_s,
        revision=show.revision,
        currency=show.currency,
        seats=held.seats,
        prices=tuple([show.prices[category_of[seat]] for seat in held.seats]),
        by_ledger=by_ledger,
    )


def note(order: HoldRequest, held: Held | Again) -> str:
    """Why these seats, in words for the one who gets them; of seats picked by hand, which would be better."""
    if isinstance(held, Held) and held.better:
        return better_note(held.better)
    match order.what:
        case Places():
            return "standing places"
        case Best(count, category, prefer, accessible, together):
            want = Want(count, category, prefer, accessible, together)
            leaves_single = held.leaves_single if isinstance(held, Held) else None
            return why(order.show.layout, want, held.seats, leaves_single)
    return ""


def booking_of(opening: Opening, opened: Opened) -> Booking:
    """What open_holds wrote, without reading it back; of another try, what it wrote the first time."""
    if opened.first is not None:
        return opened.first
    return Booking(
        show_id=opening.show_id,
        number=opened.number,
        owner_id=opening.owner_id,
        fence=opened.number,
        state=opened.state,
        request_id=opening.request_id,
        body_hash=opening.body_hash,
        claim_id=opening.claim_id,
        seats=opening.seats,
        prices_minor=opening.prices,
        amount_minor=sum(opening.prices),
        currency=opening.currency,
        note=opening.note,
        opened_at=opened.opened_at,
        expires_at=opened.expires_at,
        confirmed_at=opened.opened_at if opened.state is BookingState.CONFIRMED else None,
        revision=opening.revision,
    )


def first_answer(booking: Booking) -> Booking:
    """The same key again: the booking of the first time, if there still is one to give."""
    if booking.state in (BookingState.EXPIRED, BookingState.CANCELLED, BookingState.FAILED):
        raise HoldGone(state=booking.state, detail="Use a new Idempotency-Key to hold seats again.")
    return booking


def corrections(rivals: Iterable[Rival]) -> list[Settlement]:
    """The map did not know of these: written into it as the ledger has them, each once."""
    found = {rival.claim: rival for rival in rivals}
    words = {BookingState.CONFIRMED: "commit", BookingState.BLOCKED: "block"}
    return [Settlement(words.get(r.state, "adopt"), claim, max(1, r.left_ms)) for claim, r in found.items()]


def not_on_sale(order: HoldRequest) -> NotOnSale:
    show = order.show
    return NotOnSale(opens_at=show.opens_at, closes_at=show.closes_at, cancelled=show.cancelled)


def is_repriced(order: HoldRequest, opening: Opening) -> bool:
    """The seats cost another amount than the caller was shown."""
    return order.expected_minor is not None and sum(opening.prices) != order.expected_minor


def price_changed(order: HoldRequest, opening: Opening) -> PriceChanged:
    labels = order.show.layout.labels
    seats = [
        {"label": labels[seat], "price_minor": price}
        for seat, price in zip(opening.seats, opening.prices, strict=True)
    ]
    return PriceChanged(
        total_minor=sum(opening.prices),
        expected_total_minor=order.expected_minor,
        currency=opening.currency,
        seats=seats,
    )


def renamed_seats(order: HoldRequest, show: ShowOnSale) -> list[str]:
    """Labels that were asked for and are other seats' now, or nobody's: the layout was changed meanwhile."""
    before, now = order.show.layout, show.layout
    if before is now or not isinstance(order.what, Seats):
        return []
    return [before.labels[seat] for seat in order.what.seats if now.labels[seat] != before.labels[seat]]


def claim_of(order: HoldRequest, held: Held | Again) -> Claim:
    return Claim(order.claim_id, order.owner_id, held.seats)
