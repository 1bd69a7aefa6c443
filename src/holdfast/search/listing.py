"""An event as search stores it: words with weights, places, dates and the lowest price. No I/O.

A  title, also with neighbouring words joined          B  people
C  city, venue, genre, language, kind                  D  description
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import msgspec
from msgspec import Struct

from holdfast.search.words import fold, join_neighbours, split_words

Row = Mapping[str, Any]

KIND_WORDS = {"film": "film movie cinema", "concert": "concert gig music", "match": "match game sport"}
PLACES_NAMED_MAX = 200  # venues and cities of one event whose names are indexed
POSITION_MAX = 16_000  # the highest position in a tsvector
RATING_MAX = 10.0


class Listing(Struct, frozen=True, kw_only=True):
    """A row of listing; lists are strings separated by spaces, as no item contains one."""

    event_id: int
    title: str
    kind: str
    language: str
    genre: str
    language_name: str
    genre_name: str
    cities: str
    dates: str
    currency: str
    from_price_minor: int | None  # of the cheapest free seat; None: no seat is free
    ends_at: datetime
    soonest_s: float
    unrated: float
    unpopular: float
    brief: str
    doc: str
    words: str


class ListedVenue(Struct, frozen=True, kw_only=True):
    venue_id: int
    name: str
    city: str
    postal_code: str
    lat: float
    lon: float
    doc: str


class ListedShow(Struct, frozen=True, kw_only=True):
    show_id: int
    event_id: int
    venue_id: int
    city: str
    local_date: date
    starts_at: datetime
    ends_at: datetime
    opens_at: datetime
    closes_at: datetime
    currency: str
    from_price_minor: int | None  # of the cheapest free seat; None: no seat is free
    seats: int
    taken: int
    wanted: int
    accessible: bool


def build_listing(event: Row, shows: Sequence[ListedShow], venues: Mapping[int, Row]) -> Listing:
    """`shows` are the upcoming shows, the soonest first; at least one."""
    places = list(dict.fromkeys(show.venue_id for show in shows))[:PLACES_NAMED_MAX]
    fields = group_words(event, [venues[venue_id] for venue_id in places])
    counted = {word for weight in "ABC" for word in fields[weight]}
    found = {**fields, "A": [*fields["A"], *join_neighbours(fields["A"])]}
    next_one = shows[0]
    return Listing(
        event_id=event["event_id"],
        title=event["title"],
        kind=event["kind"],
        language=fold(event["language"]).strip(),
        genre=fold(event["genre"]).strip(),
        language_name=event["language"],
        genre_name=event["genre"],
        cities=" ".join(sorted({show.city for show in shows})),
        dates=" ".join(sorted({show.local_date.isoformat() for show in shows})),
        currency=next_one.currency,
        from_price_minor=_lowest_price(shows, next_one.currency),
        ends_at=max(show.ends_at for show in shows),
        soonest_s=next_one.starts_at.timestamp(),
        unrated=RATING_MAX - (event["rating"] or 0.0),
        unpopular=-float(sum(show.wanted for show in shows)),
        brief=build_tsvector({weight: words for weight, words in found.items() if weight != "D"}),
        doc=build_tsvector(found),
        words=" ".join(sorted(counted)),
    )


def build_listed_show(row: Row, counts: "ShowCounts") -> ListedShow:
    known = msgspec.structs.asdict(counts)
    fields = {name: row[name] for name in ListedShow.__struct_fields__ if name not in known}
    return ListedShow(**known, **fields)


class ShowCounts(Struct, frozen=True, kw_only=True):
    taken: int
    wanted: int
    from_price_minor: int | None


def cheapest_price(row: Row, free: Container[str]) -> int | None:
    """The lowest price among the categories with free seats."""
    prices = zip(row["categories"], row["prices"], strict=True)
    return min((price for category, price in prices if category in free), default=None)


def _lowest_price(shows: Iterable[ListedShow], currency: str) -> int | None:
    prices = (show.from_price_minor for show in shows if show.currency == currency)
    return min((price for price in prices if price is not None), default=None)


def build_listed_venue(row: Row) -> ListedVenue:
    plain = {name: row[name] for name in ("venue_id", "name", "city", "lat", "lon")}
    names = [*split_words(row["name"]), *split_words(row["city_name"])]
    return ListedVenue(
        postal_code=normalise_postal_code(row["postal_code"]), doc=build_tsvector({"A": names}), **plain
    )


def group_words(event: Row, venues: Iterable[Row]) -> dict[str, list[str]]:
    """The words of an event by weight."""
    places = [name for venue in venues for name in (venue["city_name"], venue["name"])]
    what = (KIND_WORDS.get(event["kind"], event["kind"]), event["genre"], event["language"])
    return {
        "A": split_words(event["title"]),
        "B": [word for name in event["people"] for word in split_words(name)],
        "C": [word for name in (*what, *dict.fromkeys(places)) for word in split_words(name)],
        "D": split_words(event["description"]),
    }


def build_tsvector(fields: Mapping[str, Sequence[str]]) -> str:
    """In tsvector notation. Words contain no character that is special there."""
    places: dict[str, list[str]] = defaultdict(list)
    position = 0
    for weight in sorted(fields):
        for word in fields[weight]:
            position += 1
            places[word].append(f"{min(position, POSITION_MAX)}{weight}")
        position += 10  # words of two fields must not count as neighbours
    return " ".join(f"'{word}':{','.join(at)}" for word, at in places.items())


def normalise_postal_code(text: str) -> str:
    return "".join(split_words(text))
