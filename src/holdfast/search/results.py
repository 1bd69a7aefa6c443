"""Response types of search. No I/O."""

from collections.abc import Iterable, Mapping
from datetime import date
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from holdfast.catalogue import EventCard, Kind

if TYPE_CHECKING:
    from holdfast.engines.postgres import Row

# Lower edges of price buckets, in minor units: 1, 2, 5 and so on, whatever the currency.
PRICE_EDGES = (0, 1, *(step * 10**zeros for zeros in range(2, 8) for step in (1, 2, 5)))
VALUES_MAX = 30  # of a facet, the most frequent first; dates: the first ones


class FacetValue(Struct, frozen=True, kw_only=True):
    """`value` is what to filter by, `name` what to show."""

    value: str
    name: str
    events: int


class DateCount(Struct, frozen=True, kw_only=True):
    date: date
    events: int


class PriceCount(Struct, frozen=True, kw_only=True):
    """From `price_min_minor` to `price_max_minor`, both included; no upper end for the dearest."""

    currency: str
    price_min_minor: int
    price_max_minor: int | None
    events: int


class Facets(Struct, frozen=True, kw_only=True):
    kind: list[FacetValue]
    city: list[FacetValue]
    language: list[FacetValue]
    genre: list[FacetValue]
    date: list[DateCount]
    price: list[PriceCount]

    def with_cities(self, names: Mapping[str, str]) -> "Facets":
        """With the current names of cities."""
        named = [msgspec.structs.replace(one, name=names.get(one.value, one.value)) for one in self.city]
        return msgspec.structs.replace(self, city=named)


class Tally(Struct, frozen=True, kw_only=True):
    """Totals by facet; usually half a minute old, two minutes at most."""

    total: int
    facets: Facets


class Nearby(Struct, frozen=True, kw_only=True):
    """The point that distances are measured from."""

    lat: float
    lon: float
    radius_km: float


class SearchPage(Struct, frozen=True, kw_only=True):
    """`q_used`: the words that were searched, if the query as typed had no match.

    `match`: results match `all` words, or `any` of them if none matches all. `total` and `facets` are null
    while counting takes too long: request them again later. `distances_km` is by show id.
    """

    total: int | None
    page: int | None
    size: int
    next_cursor: str | None
    sort: str
    q_used: str | None
    match: str
    near: Nearby | None
    events: list[EventCard]
    distances_km: dict[str, float]
    facets: Facets | None


class SuggestedEvent(Struct, frozen=True, kw_only=True):
    event_id: int
    title: str
    kind: Kind
    cities: list[str]
    next_date: date  # of its next show, where that takes place


class SuggestedVenue(Struct, frozen=True, kw_only=True):
    venue_id: int
    name: str
    city: str


class SuggestedCity(Struct, frozen=True, kw_only=True):
    slug: str
    name: str


class SuggestionsPage(Struct, frozen=True, kw_only=True):
    """`q_used`: the words that were used instead, if the text as typed had no match."""

    q_used: str | None = None
    events: list[SuggestedEvent]
    venues: list[SuggestedVenue]
    cities: list[SuggestedCity]


def build_tally(rows: Iterable["Row"]) -> Tally:
    by: dict[str, list[Row]] = {
        name: [] for name in ("total", "kind", "city", "language", "genre", "date", "price")
    }
    for row in rows:
        by[row["facet"]].append(row)
    dates = sorted(by["date"], key=lambda row: str(row["value"]))
    prices = sorted(by["price"], key=lambda row: (row["name"], int(row["value"])))
    return Tally(
        total=by["total"][0]["events"],
        facets=Facets(
            kind=_counts(by["kind"]),
            city=_counts(by["city"]),
            language=_counts(by["language"]),
            genre=_counts(by["genre"]),
            date=[
                DateCount(date=date.fromisoformat(row["value"]), events=row["events"])
                for row in dates[:VALUES_MAX]
            ],
            price=[_price(row) for row in prices],
        ),
    )


def _counts(rows: Iterable["Row"]) -> list[FacetValue]:
    ordered = sorted(rows, key=lambda row: (-row["events"], row["value"]))
    return [
        FacetValue(value=row["value"], name=row["name"], events=row["events"]) for row in ordered[:VALUES_MAX]
    ]


def _price(row: "Row") -> PriceCount:
    at = int(row["value"])
    return PriceCount(
        currency=row["name"],
        price_min_minor=PRICE_EDGES[at - 1],
        price_max_minor=PRICE_EDGES[at] - 1 if at < len(PRICE_EDGES) else None,
        events=row["events"],
    )
