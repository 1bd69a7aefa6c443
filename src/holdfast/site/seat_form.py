"""What the form of a show's page asks for. No I/O.

Three forms lead here: seats by name, the best of a part of the hall, places in a standing area. A part of the
hall is a section or a standing area; people choose one without knowing which of the two it is.
"""

from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from holdfast.catalogue import ShowOnSale
from holdfast.holds import (
    BestAvailable,
    BestBody,
    HoldBody,
    HoldRequest,
    PlacesBody,
    SoldOut,
    compute_body_hash,
    compute_claim_id,
    find_best,
    parse_selection,
)
from holdfast.layouts import Area, Layout, UnknownSeat

Label = Annotated[str, Meta(min_length=1, max_length=100)]
FREE = ord("A")


class HoldForm(Struct):
    seats: Annotated[list[Label], Meta(max_length=100)] = []
    quantity: Annotated[int, Meta(ge=1, le=10)] = 1
    category: Annotated[str, Meta(max_length=100)] = ""
    section: Annotated[str, Meta(max_length=100)] = ""
    accessible: bool = False
    key: Annotated[str, Meta(max_length=255)] = ""  # made by the script of the page, once for each choice
    expected_total_minor: Annotated[int, Meta(ge=0, le=2**53)] | None = None  # what the page has shown


class ProofForm(Struct):
    """Beside the form: the idempotency key stands for the choice, not for the proof."""

    proof: Annotated[str, Meta(max_length=200)] = ""  # web/puzzles.py


@dataclass(frozen=True, slots=True)
class Buyer:
    """Whom a hold counts for."""

    owner_id: int
    party: str  # the address range; empty: the address of the account is verified
    is_guest: bool
    admission: str = ""  # passes of waiting rooms


@dataclass(frozen=True, slots=True)
class BestInSection:
    """The best seats of one section: chosen here, from the map, and then held by name."""

    section: int
    want: BestAvailable


def parse_seat_form(form: HoldForm, layout: Layout, states: bytes | None) -> HoldBody | BestInSection:
    """The requested selection. `states` is the map, if available; only standing areas need it."""
    if form.seats:
        return HoldBody(seats=form.seats)
    area = _area(form, layout, states)
    if area is not None:
        return HoldBody(places=PlacesBody(area=area.name, count=form.quantity))
    if form.section:
        want = BestAvailable(form.quantity, _category(form, layout), accessible=form.accessible)
        return BestInSection(_section(form.section, layout), want)
    chosen = form.category or None
    return HoldBody(best=BestBody(count=form.quantity, category=chosen, accessible=form.accessible))


def choose_best_in_section(layout: Layout, states: bytes, selection: BestInSection) -> list[str]:
    """Labels of the best seats of a section; raises SoldOut. Elsewhere everything counts as taken."""
    letters = bytearray(b"X" * len(states))
    free = 0
    for run, stretch in zip(layout.runs, layout.stretches, strict=True):
        if stretch.section == selection.section:
            seats = slice(run.start, run.start + run.length)
            letters[seats] = states[seats]
            free += states.count(FREE, run.start, run.start + run.length)
    choice = find_best(layout, bytes(letters), selection.want)
    if choice is None:
        raise SoldOut(free=free)
    return [layout.labels[seat] for seat in choice.seats]


def build_hold_request(
    show: ShowOnSale, buyer: Buyer, request_id: str, form: HoldForm, body: HoldBody
) -> HoldRequest:
    """The idempotency key stands for the form, not for the seats chosen for it."""
    return HoldRequest(
        show=show,
        owner_id=buyer.owner_id,
        request_id=request_id,
        claim_id=compute_claim_id(buyer.owner_id, request_id, buyer.party),
        body_hash=compute_body_hash(msgspec.json.encode(form)),
        selection=parse_selection(body, show),
        expected_minor=form.expected_total_minor,
        confirms_free=False,  # the page of the booking first needs to know where to send the tickets
        is_guest=buyer.is_guest,
        admission=buyer.admission,
    )


def _area(form: HoldForm, layout: Layout, states: bytes | None) -> Area | None:
    """The requested standing area: by its name, or because the category has nothing else."""
    if form.section:
        return next((area for area in layout.areas if area.name == form.section), None)
    if not layout.areas or form.accessible:
        return None
    category = _category(form, layout)
    if category is None and layout.runs:
        return None
    fitting = [area for area in layout.areas if category in (None, area.category)]
    seated = layout.category_of.count(category) if category is not None else 0
    if category is not None and seated > sum(area.capacity for area in fitting):
        return None  # there are seats of it, too
    roomy = [area for area in fitting if states is None or _free(area, states) >= form.quantity]
    return next(iter(roomy or fitting), None)


def _free(area: Area, states: bytes) -> int:
    return states.count(FREE, area.start, area.start + area.capacity)


def _category(form: HoldForm, layout: Layout) -> int | None:
    if not form.category:
        return None
    for index, category in enumerate(layout.categories):
        if category.name == form.category:
            return index
    raise UnknownSeat(category=form.category, known=[category.name for category in layout.categories])


def _section(name: str, layout: Layout) -> int:
    for index, section in enumerate(layout.source().sections):
        if section.name == name:
            return index
    raise UnknownSeat(section=name)
