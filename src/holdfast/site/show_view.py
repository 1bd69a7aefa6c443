"""What the page of a show tells, from the catalogue and the map. No I/O."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from holdfast.catalogue import Kind, SaleState, ShowOnSale, sale_state
from holdfast.layouts import Layout
from holdfast.pricing import NextPrice
from holdfast.site.i18n import Localiser

LISTED_MAX = 600  # seats of a hall that is also listed and drawn as SVG
FREE, HELD = ord("A"), ord("H")
STATES_WITH_MAP = frozenset({SaleState.UPCOMING, SaleState.ON_SALE, SaleState.SOLD_OUT})


@dataclass(frozen=True, slots=True)
class PriceBand:
    """A category and its price."""

    name: str
    place: int  # its number: the colour of its swatch
    price_minor: int
    free: int | None
    moves: bool = False  # it follows rules
    soon: NextPrice | None = None  # how long it holds as far as time goes, and what it is then


@dataclass(frozen=True, slots=True)
class VenueSection:
    """A section or a standing area."""

    name: str
    is_area: bool
    from_minor: int
    total: int
    free: int | None


@dataclass(frozen=True, slots=True)
class ListedSeat:
    label: str
    number: str
    category: int
    trait: str
    is_free: bool


@dataclass(frozen=True, slots=True)
class ListedRow:
    section: str
    row: str
    seats: list[ListedSeat]


@dataclass(frozen=True, slots=True)
class ShowView:
    """The template context of a show's page."""

    row: Mapping[str, Any]  # of show_detail
    event: Any
    venue: Mapping[str, Any]
    show: ShowOnSale
    state: SaleState
    bands: list[PriceBand]
    parts: list[VenueSection]
    rows: list[ListedRow]
    has_spaces: bool  # for wheelchairs
    left: str  # "free"; "held": all that is left is in baskets; "none"
    now: datetime

    @property
    def has_map(self) -> bool:
        return self.state in STATES_WITH_MAP

    @property
    def is_open(self) -> bool:
        """Whether seats may be chosen; of a show that is sold out, those that come back."""
        return self.state in (SaleState.ON_SALE, SaleState.SOLD_OUT)

    @property
    def has_moving_prices(self) -> bool:
        return any(band.moves for band in self.bands)

    @property
    def is_free(self) -> bool:
        return not any(self.show.prices)

    @property
    def most(self) -> int:
        return min(10, self.show.order_seats_max)

    def script(self, l10n: Localiser) -> dict[str, Any]:
        """The data for the page's scripts."""
        api = f"/api/v1/shows/{self.show.show_id}"
        return {
            "show": self.show.show_id,
            "layout": f"{api}/layout?v={self.show.layout.hash}",
            "states": f"{api}/seats?form=compact",
            "stream": f"{api}/seats/stream",
            "hold": f"/shows/{self.show.show_id}/hold",
            "mine": f"/shows/{self.show.show_id}/mine",
            "queue": f"/shows/{self.show.show_id}/queue",
            "seats": self.show.layout.seat_count,
            "svgMax": LISTED_MAX,
            "prices": list(self.show.prices),
            "spelt": {price: l10n.price(price, self.show.currency) for price in self.show.prices},
            "currency": self.show.currency,
            "locale": l10n.locale.replace("_", "-"),
            "zone": self.row["timezone"],
            "most": self.most,
            "orphan": self.show.orphan_rule.value,
            "open": self.is_open,
            "isConcert": self.event.kind is Kind.CONCERT,
            "texts": l10n.texts_for_scripts("seats.map_"),
            "parts": self._from_far(),
        }

    def _from_far(self) -> list[dict[str, Any]] | None:
        """What is written on the parts of a big hall before its seats are there; None: it is not known."""
        if self.show.layout.seat_count <= LISTED_MAX or any(part.free is None for part in self.parts):
            return None
        return [{"free": part.free, "total": part.total, "fromMinor": part.from_minor} for part in self.parts]


def build_show_view(
    row: Mapping[str, Any],
    event: Any,
    venue: Mapping[str, Any],
    show: ShowOnSale,
    states: bytes | None,
    now: datetime,
) -> ShowView:
    """`states` is the map, or None while it cannot be loaded."""
    layout = show.layout
    if states is not None and len(states) < layout.seat_count:  # it has grown a moment ago
        states = states.ljust(layout.seat_count, b"X")
    free = 1 if states is None else states.count(FREE)
    state = sale_state(now, show.opens_at, show.closes_at, cancelled=show.cancelled, free=free)
    is_listed = state is SaleState.ON_SALE and layout.seat_count <= LISTED_MAX and states is not None
    return ShowView(
        row=row,
        event=event,
        venue=venue,
        show=show,
        state=state,
        bands=list(_bands(show, states, now)),
        parts=list(_parts(show, states)),
        rows=list(_rows(layout, states or b"")) if is_listed else [],
        has_spaces=b"w" in layout.traits,
        left="free" if free else "held" if states is not None and HELD in states else "none",
        now=now,
    )


def _bands(show: ShowOnSale, states: bytes | None, now: datetime) -> Iterator[PriceBand]:
    layout = show.layout
    free: dict[int, int] = dict.fromkeys(range(len(layout.categories)), 0)
    for letter, category in zip(states or b"", layout.category_of, strict=False):
        if letter == FREE:
            free[category] += 1
    for place, name in enumerate(each.name for each in layout.categories):
        soon = show.moving.get(name)
        yield PriceBand(
            name,
            place,
            show.prices[place],
            None if states is None else free[place],
            moves=name in show.moving,
            soon=soon if soon is not None and soon.until > now else None,
        )


def _parts(show: ShowOnSale, states: bytes | None) -> Iterator[VenueSection]:
    """Sections in their order, then standing areas."""
    layout = show.layout
    free: dict[int, int] = {}
    total: dict[int, int] = {}
    cheapest: dict[int, int] = {}
    for run, stretch in zip(layout.runs, layout.stretches, strict=True):
        seats, which = slice(run.start, run.start + run.length), stretch.section
        price = min(show.prices[category] for category in set(layout.category_of[seats]))
        cheapest[which] = min(price, cheapest.get(which, price))
        total[which] = total.get(which, 0) + run.length
        free[which] = free.get(which, 0) + (states or b"").count(FREE, seats.start, seats.stop)
    for which, section in enumerate(layout.source().sections):
        if which in cheapest:
            count = None if states is None else free[which]
            yield VenueSection(section.name, False, cheapest[which], total[which], count)
    for area in layout.areas:
        count = None if states is None else states.count(FREE, area.start, area.start + area.capacity)
        yield VenueSection(area.name, True, show.prices[area.category], area.capacity, count)


def _rows(layout: Layout, states: bytes) -> Iterator[ListedRow]:
    runs = zip(layout.runs, layout.stretches, strict=True)
    for (section, row), group in groupby(runs, key=lambda each: (each[1].section, each[1].row)):
        seats = [seat for run, _ in group for seat in _seats(layout, states, run.start, run.length)]
        yield ListedRow(layout.source().sections[section].name, row, seats)


def _seats(layout: Layout, states: bytes, start: int, length: int) -> Iterator[ListedSeat]:
    for index in range(start, start + length):
        seat = layout.seat(index)
        yield ListedSeat(seat.label, seat.number, seat.category, seat.trait, states[index] == FREE)


@dataclass(frozen=True, slots=True)
class Alternative:
    """Seats that may be had with one click."""

    labels: list[str]
    price_minor: int


def price_alternatives(show: ShowOnSale, groups: Sequence[Sequence[str]]) -> list[Alternative]:
    layout = show.layout
    return [
        Alternative(
            list(labels), sum(show.prices[layout.category_of[layout.index_of[label]]] for label in labels)
        )
        for labels in groups
    ]


def split_standing(layout: Layout, seats: Sequence[int]) -> tuple[list[str], Counter[str]]:
    """Labels of seats, and how many tickets of each standing area: fans know no numbers of places."""
    places = Counter(area.name for area in layout.areas for seat in seats if seat in area.seats)
    seated = [seat for seat in seats if not any(seat in area.seats for area in layout.areas)]
    return [layout.labels[seat] for seat in seated], places


def ticket_names(layout: Layout, seats: Sequence[int], l10n: Localiser) -> list[str]:
    labels, places = split_standing(layout, seats)
    return labels + [l10n.t("seats.map_place", count=count, area=area) for area, count in places.items()]
