"""A request to hold seats, from the JSON body to the row that PostgreSQL is to write. No I/O.

HoldBody ─► HoldRequest(NamedSeats | StandingPlaces | BestAvailable) ─► Redis ─► Held ─► Opening ─► Booking
"""

import hashlib
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from holdfast.bookings import Opening, better_note
from holdfast.catalogue import OrphanRule, ShowOnSale
from holdfast.claim import Claim, LimitReached, MapMissing, NotEnoughUnits, PoolClosed, UnitsTaken
from holdfast.errors import Invalid
from holdfast.holds.choice import BestAvailable, explain_choice
from holdfast.holds.errors import NotOnSale, PriceChanged
from holdfast.layouts import Layout, Prefer, UnknownSeat

SEATS_MAX = 10
Count = Annotated[int, Meta(ge=1, le=SEATS_MAX)]
Name = Annotated[str, Meta(min_length=1, max_length=100)]


class BestBody(Struct, forbid_unknown_fields=True, frozen=True):
    """Best available: this many seats, chosen and held in one step."""

    count: Count
    category: Name | None = None
    prefer: Prefer = Prefer.BEST
    accessible: bool = False  # one wheelchair space, the others beside it
    together: bool = True  # false: a group may be split if no seats stand together


class PlacesBody(Struct, forbid_unknown_fields=True, frozen=True):
    """This many places in a standing area."""

    area: Name
    count: Count


class HoldBody(Struct, forbid_unknown_fields=True, frozen=True):
    """Exactly one of seats, best and places.

    With `expected_total_minor`, seats that cost another amount by now are not held: `price_changed`.
    """

    seats: Annotated[list[Name], Meta(min_length=1, max_length=SEATS_MAX)] | None = None
    best: BestBody | None = None
    places: PlacesBody | None = None
    expected_total_minor: Annotated[int, Meta(ge=0, le=SEATS_MAX * 1_000_000_000)] | None = None


class NamedSeats(Struct, frozen=True, gc=False):
    """These seats, by number, in ascending order."""

    seats: tuple[int, ...]
    orphan_rule: OrphanRule
    runs: tuple[int, ...]  # start, length, … of the runs they are in; empty if the orphan rule is off


class StandingPlaces(Struct, frozen=True, gc=False):
    """Any `count` places of a standing area."""

    first: int
    end: int
    count: int


Selection = NamedSeats | StandingPlaces | BestAvailable


class HoldRequest(Struct, frozen=True, gc=False):
    show: ShowOnSale
    owner_id: int
    request_id: str  # the Idempotency-Key, or unique
    claim_id: str  # the same id gives the same hold
    body_hash: int
    selection: Selection
    expected_minor: int | None = None  # the amount that the client displayed, if it sent one
    confirms_free: bool = True  # False: free seats are held until the buyer confirms them
    is_guest: bool = False
    admission: str = ""  # the pass of a waiting room


class Held(Struct, frozen=True, gc=False):
    """Redis has claimed these seats for the request."""

    seats: tuple[int, ...]
    epoch: int
    better: tuple[int, ...] | None  # a selection that would not have left a single seat
    together: bool
    leaves_single: bool = False


class AlreadyHeld(Struct, frozen=True, gc=False):
    """An earlier request with this claim id holds these seats."""

    seats: tuple[int, ...]
    epoch: int


class CoolingDown(Struct, frozen=True, gc=False):
    """Too many holds of the owner, or of the address range, ended unpaid."""

    wait_ms: int


class HasHold(Struct, frozen=True, gc=False):
    """A guest has a hold in this show already."""


class RangeFull(Struct, frozen=True, gc=False):
    """Guests and unverified accounts of the address range have as many unpaid seats as allowed."""


class Orphan(Struct, frozen=True, gc=False):
    """The selection would leave a single seat, and these seats would not."""

    better: tuple[int, ...]


OverALimit = LimitReached | CoolingDown | HasHold | RangeFull
HoldOutcome = Held | AlreadyHeld | Orphan | UnitsTaken | OverALimit | NotEnoughUnits | PoolClosed | MapMissing


def parse_selection(body: HoldBody, show: ShowOnSale) -> Selection:
    """Turn names into numbers, or raise UnknownSeat or Invalid."""
    if (body.seats is None) + (body.best is None) + (body.places is None) != 2:
        raise Invalid(field="", detail="Expected exactly one of seats, best and places.")
    layout, most = show.layout, min(SEATS_MAX, show.order_seats_max)
    if body.seats is not None:
        _check_count(len(body.seats), most, "seats")
        return _parse_seats(body.seats, layout, show.orphan_rule)
    if body.places is not None:
        _check_count(body.places.count, most, "places.count")
        area = next((a for a in layout.areas if a.name == body.places.area), None)
        if area is None:
            raise UnknownSeat(area=body.places.area, known=[a.name for a in layout.areas])
        return StandingPlaces(area.start, area.start + area.capacity, body.places.count)
    assert body.best is not None
    _check_count(body.best.count, most, "best.count")
    best, category = body.best, _find_category(body.best.category, layout)
    return BestAvailable(best.count, category, best.prefer, best.accessible, best.together)


def _check_count(count: int, most: int, field: str) -> None:
    if count > most:
        raise Invalid(field=field, detail=f"Expected at most {most} seats in one order.", limit=most)


def _parse_seats(labels: list[str], layout: Layout, rule: OrphanRule) -> NamedSeats:
    index_of = layout.index_of
    try:
        seats = tuple(sorted([index_of[label] for label in labels]))
    except KeyError:
        unknown = [label for label in labels if label not in index_of]
        raise UnknownSeat(seats=unknown) from None
    if len(set(seats)) != len(seats):
        raise Invalid(field="seats", detail="Expected each seat once.")
    return NamedSeats(seats, rule, find_runs(layout, seats) if rule != OrphanRule.OFF else ())


def _find_category(name: str | None, layout: Layout) -> int | None:
    if name is None:
        return None
    for index, category in enumerate(layout.categories):
        if category.name == name:
            return index
    raise UnknownSeat(category=name, known=[category.name for category in layout.categories])


def find_runs(layout: Layout, seats: tuple[int, ...]) -> tuple[int, ...]:
    """start, length, … of the runs these seats are in, each once. Standing places are in none."""
    found: list[int] = []
    last = -1
    for seat in seats:
        if seat < last:
            continue
        run = layout.run_at(seat)
        if run is not None:
            found += (run.start, run.length)
            last = run.start + run.length
    return tuple(found)


def compute_body_hash(raw: bytes) -> int:
    """63 bits of the body: the same key with another body is refused."""
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "big") >> 1


def compute_claim_id(owner_id: int, request_id: str, party: str = "") -> str:
    """Short, and the same for the same request of the same owner; with the party that it counts for."""
    claim_id = hashlib.blake2b(f"{owner_id} {request_id}".encode(), digest_size=8).hexdigest()
    return f"{claim_id}@{party}" if party else claim_id


def build_opening(
    request: HoldRequest, held: Held | AlreadyHeld, claimed_at_s: float, *, ledger_only: bool = False
) -> Opening:
    show, category_of = request.show, request.show.layout.category_of
    # A call with more than 15 keywords builds a dict of them, and takes ten times as long.
    opening = Opening(
        show_id=show.show_id,
        owner_id=request.owner_id,
        request_id=request.request_id,
        body_hash=request.body_hash,
        claim_id=request.claim_id,
        note=_build_note(request, held),
        ttl_ms=show.hold_ttl_s * 1000,
        claimed_at_s=claimed_at_s,
        revision=show.revision,
        currency=show.currency,
        seats=held.seats,
        prices=tuple([show.prices[category_of[seat]] for seat in held.seats]),
        map_epoch=held.epoch,
        confirms_free=request.confirms_free,
        is_guest=request.is_guest,
    )
    is_repeat = isinstance(held, AlreadyHeld)
    if ledger_only or is_repeat:
        return replace(opening, ledger_only=ledger_only, is_repeat=is_repeat)
    return opening


def _build_note(request: HoldRequest, held: Held | AlreadyHeld) -> str:
    """Why these seats were chosen, for the buyer; for hand-picked seats, which ones would be better."""
    if isinstance(held, Held) and held.better:
        return better_note(held.better)
    match request.selection:
        case NamedSeats():
            return ""
        case StandingPlaces():
            return "standing places"
        case BestAvailable() as wanted:
            leaves_single = held.leaves_single if isinstance(held, Held) else None
            return explain_choice(request.show.layout, wanted, held.seats, leaves_single)


def reprice_opening(opening: Opening, show: ShowOnSale) -> Opening:
    """The same seats at the prices of a newer revision of the show."""
    category_of = show.layout.category_of
    return replace(
        opening,
        ttl_ms=show.hold_ttl_s * 1000,
        revision=show.revision,
        currency=show.currency,
        prices=tuple([show.prices[category_of[seat]] for seat in opening.seats]),
    )


def build_claim(request: HoldRequest, held: Held | AlreadyHeld) -> Claim:
    return Claim(request.claim_id, request.owner_id, held.seats)


def is_repriced(request: HoldRequest, opening: Opening) -> bool:
    """Whether the seats cost another amount than the client displayed."""
    return request.expected_minor is not None and sum(opening.prices) != request.expected_minor


def price_changed(request: HoldRequest, opening: Opening) -> PriceChanged:
    labels = request.show.layout.labels
    seats = [
        {"label": labels[seat], "price_minor": price}
        for seat, price in zip(opening.seats, opening.prices, strict=True)
    ]
    return PriceChanged(
        total_minor=sum(opening.prices),
        expected_total_minor=request.expected_minor,
        currency=opening.currency,
        seats=seats,
    )


def not_on_sale(request: HoldRequest) -> NotOnSale:
    show = request.show
    return NotOnSale(opens_at=show.opens_at, closes_at=show.closes_at, cancelled=show.cancelled)


def find_renamed_seats(request: HoldRequest, show: ShowOnSale) -> list[str]:
    """Requested labels that the changed layout gives to other seats, or to none."""
    before, now = request.show.layout, show.layout
    if before is now or not isinstance(request.selection, NamedSeats):
        return []
    seats = request.selection.seats
    return [before.labels[seat] for seat in seats if now.labels[seat] != before.labels[seat]]
