"""Search parameters, validated (words, filters, order, page), and the query that search runs. No I/O.

Invalid values are refused with their field. Words and filters are query parameters in SQL; only words found
by search/words.py become part of a tsquery.
"""

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from math import prod
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from holdfast.catalogue import Kind
from holdfast.errors import Invalid
from holdfast.fields import Currency, Id, PostalCode, PriceMinor, ShortText, Slug
from holdfast.search.errors import PageTooDeep
from holdfast.search.words import fold, split_words

Q_LETTERS_MAX = 200
WORDS_MAX = 12  # further words are ignored
SIZE_MAX = 50
DEPTH_MAX = 1000  # results reachable by page number; a cursor has no limit
RADIUS_KM_MAX = 500.0
CURSOR_LETTERS_MAX = 120

Text = Annotated[str, Meta(max_length=Q_LETTERS_MAX)]


class Sort(StrEnum):
    RELEVANCE = "relevance"
    SHOWTIME = "showtime"
    RATING = "rating"
    DISTANCE = "distance"
    PRICE = "price"
    POPULARITY = "popularity"


class EventSearchQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The query parameters of GET /search."""

    q: Text = ""
    city: Slug | None = None
    venue: Id | None = None
    kind: Kind | None = None
    language: ShortText | None = None
    genre: ShortText | None = None
    date_from: date | None = None
    date_to: date | None = None
    currency: Currency | None = None
    price_min_minor: PriceMinor | None = None
    price_max_minor: PriceMinor | None = None
    only_available: bool = False
    accessible: bool = False
    near: Annotated[str, Meta(max_length=60)] | None = None
    postal_code: PostalCode | None = None
    radius_km: Annotated[float, Meta(gt=0, le=RADIUS_KM_MAX)] = 25.0
    sort: Sort | None = None
    page: Annotated[int, Meta(ge=1, le=DEPTH_MAX)] = 1
    size: Annotated[int, Meta(ge=1, le=SIZE_MAX)] = 20
    cursor: Annotated[str, Meta(max_length=CURSOR_LETTERS_MAX)] | None = None


class SuggestionsQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    q: Text = ""
    size: Annotated[int, Meta(ge=1, le=20)] = 8


@dataclass(frozen=True, slots=True)
class Point:
    lat: float
    lon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Filters on events and shows. Venues and distances are set once the point is known."""

    city: str | None = None
    kind: str | None = None
    language: str | None = None
    genre: str | None = None
    date_from: date | None = None
    date_to: date | None = None
    currency: str | None = None
    price_min_minor: int | None = None
    price_max_minor: int | None = None
    only_available: bool = False
    accessible: bool = False
    venues: tuple[int, ...] | None = None
    distances_km: tuple[float, ...] = ()

    @property
    def look_at_shows(self) -> bool:
        """Whether a filter concerns single shows, so that the event row is not enough."""
        plain = Filters(city=self.city, kind=self.kind, language=self.language, genre=self.genre)
        return self != plain

    @property
    def of_shows(self) -> tuple[Any, ...]:
        """In the order of matching_shows()."""
        return (
            self.city,
            None if self.venues is None else list(self.venues),
            self.date_from,
            self.date_to,
            self.currency,
            self.price_min_minor,
            self.price_max_minor,
            self.only_available,
            self.accessible,
        )


@dataclass(frozen=True, slots=True)
class ResultPosition:
    """The result after which a page begins."""

    key: float
    event_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A validated search, before any lookup."""

    words: tuple[str, ...]
    filters: Filters
    near: Point | None
    postal_code: str | None
    radius_km: float
    sort: Sort
    after: ResultPosition | None
    offset: int
    size: int
    fingerprint: str  # of everything but the page: a cursor is valid only for its search

    def at(self, venues: Sequence[tuple[int, float]]) -> "Search":
        """The same search, limited to these venues, with their distances."""
        only = self.filters.venues
        near = [(venue, km) for venue, km in venues if only is None or venue in only]
        ids, distances = tuple(venue for venue, _ in near), tuple(km for _, km in near)
        return replace(self, filters=replace(self.filters, venues=ids, distances_km=distances))

    def cursor(self, place: ResultPosition) -> str:
        text = f"{self.fingerprint}:{place.key.hex()}:{place.event_id}"
        return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def parse_search(query: EventSearchQuery) -> Search:
    """Raises Invalid with the field, or PageTooDeep."""
    near = None if query.near is None else parse_point(query.near)
    _refuse_contradictions(query, near)
    words = tuple(split_words(query.q)[:WORDS_MAX])
    sort = query.sort or (Sort.RELEVANCE if words else Sort.SHOWTIME)
    if sort is Sort.RELEVANCE and not words:
        sort = Sort.POPULARITY
    everything = msgspec.structs.replace(query, page=1, size=1, cursor=None, sort=sort)
    mark = hashlib.blake2b(msgspec.json.encode(everything), digest_size=6).hexdigest()
    return Search(
        words=words,
        filters=_filters(query),
        near=near,
        postal_code="".join(split_words(query.postal_code)) if query.postal_code is not None else None,
        radius_km=query.radius_km,
        sort=sort,
        after=None if query.cursor is None else _parse_cursor(query.cursor, mark),
        offset=(query.page - 1) * query.size,
        size=query.size,
        fingerprint=mark,
    )


def _filters(query: EventSearchQuery) -> Filters:
    return Filters(
        city=query.city,
        kind=query.kind,
        language=_folded(query.language),
        genre=_folded(query.genre),
        date_from=query.date_from,
        date_to=query.date_to,
        currency=query.currency,
        price_min_minor=query.price_min_minor,
        price_max_minor=query.price_max_minor,
        only_available=query.only_available,
        accessible=query.accessible,
        venues=None if query.venue is None else (query.venue,),
    )


def _refuse_contradictions(query: EventSearchQuery, near: Point | None) -> None:
    if query.date_from and query.date_to and query.date_to < query.date_from:
        raise Invalid(field="date_to", detail="Expected a date that is not before date_from.")
    low, high = query.price_min_minor, query.price_max_minor
    if low is not None and high is not None and high < low:
        raise Invalid(field="price_max_minor", detail="Expected at least price_min_minor.")
    if near is not None and query.postal_code is not None:
        raise Invalid(field="postal_code", detail="Expected a point or a postal code, not both.")
    if query.postal_code is not None and not split_words(query.postal_code):
        raise Invalid(field="postal_code", detail="Expected letters or digits.")
    if query.sort is Sort.DISTANCE and near is None and query.postal_code is None:
        raise Invalid(field="sort", detail="Expected near or postal_code with this order.")
    if query.cursor is not None and query.page > 1:
        raise Invalid(field="page", detail="Expected a page or a cursor, not both.")
    if query.page * query.size > DEPTH_MAX:
        raise PageTooDeep(field="page", limit=DEPTH_MAX)


def parse_point(text: str) -> Point:
    lat, comma, lon = text.partition(",")
    try:
        point = Point(float(lat), float(lon))
    except ValueError:
        raise Invalid(field="near", detail="Expected a latitude and a longitude: 48.86,2.35.") from None
    if not (comma and -90 <= point.lat <= 90 and -180 <= point.lon <= 180):
        raise Invalid(field="near", detail="Expected a latitude to ±90 and a longitude to ±180.")
    return point


def _parse_cursor(cursor: str, mark: str) -> ResultPosition:
    try:
        text = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        found, key, event_id = text.split(":")
        place = ResultPosition(float.fromhex(key), int(event_id))
    except (ValueError, OverflowError):
        raise Invalid(field="cursor", detail="Expected a next_cursor from a response.") from None
    if found != mark:
        raise Invalid(field="cursor", detail="Expected a next_cursor of this search.")
    if place.key != place.key or not 0 <= place.event_id < 2**63:
        raise Invalid(field="cursor", detail="Expected a next_cursor from a response.")
    return place


def _folded(text: str | None) -> str | None:
    return None if text is None else fold(text).strip()


def match_all(words: Sequence[str], *, is_whole: bool = False) -> str | None:
    """A tsquery for all words; the last one is a prefix unless it is complete."""
    return " & ".join(_quote_words(words, is_whole)) or None


def match_some(words: Sequence[str], *, is_whole: bool = False) -> str:
    """A tsquery for at least one word; the last one is a prefix unless it is complete."""
    return " | ".join(_quote_words(words, is_whole))


def match_any(words: Sequence[str], weights: str = "") -> str:
    """A tsquery for at least one exact word, optionally only in fields of these weights."""
    return " | ".join(_quote(word, weights) for word in words)


def _quote_words(words: Sequence[str], is_whole: bool) -> list[str]:
    last = "" if is_whole else "*"
    return [*(_quote(word, "") for word in words[:-1]), *(_quote(word, last) for word in words[-1:])]


def _quote(word: str, marks: str) -> str:
    assert not {"'", "\\"} & set(word), word
    return f"'{word}':{marks}" if marks else f"'{word}'"


COMMON_USES = 20_000  # "any word" ignores more common words if others remain
OFTEN_USES = 2_000  # enough to find some among the most popular, too many to rank all
WHOLE_USES = 500


@dataclass(slots=True)
class WordFrequency:
    listings: int  # total number of listings
    of: dict[str, int] = field(default_factory=dict)  # by word
    beginning: dict[str, int] = field(default_factory=dict)  # sum over all words with this prefix

    def __contains__(self, word: str) -> bool:
        return word in self.of

    def add(self, of: Mapping[str, int]) -> None:
        self.of.update(of)

    def is_whole(self, words: Sequence[str]) -> bool:
        """Whether the last word is complete: so frequent a word is not a prefix. Prefix search is slow."""
        return self.of.get(words[-1], 0) >= WHOLE_USES

    def are_common(self, words: Sequence[str]) -> bool:
        """Whether many listings probably contain all words, estimated from the frequency of each."""
        counts = {word: self.of.get(word, 0) for word in words}
        if not self.is_whole(words):
            counts[words[-1]] = max(counts[words[-1]], self.beginning.get(words[-1], 0))
        shares = [min(1.0, count / max(1, self.listings)) for count in counts.values()]
        return self.listings * prod(shares) >= OFTEN_USES

    def is_any_common(self, words: Iterable[str]) -> bool:
        return any(self.of.get(word, 0) >= OFTEN_USES for word in words)

    def distinctive(self, words: Sequence[str]) -> tuple[str, ...]:
        """The words that are not too common, or else the rarest one."""
        rare = tuple(word for word in words if self.of.get(word, 0) <= COMMON_USES)
        return rare or (min(words, key=lambda word: self.of.get(word, 0)),)


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    words: tuple[str, ...]
    query: str | None  # a tsquery; None: no words
    match: str = "all"
    is_corrected: bool = False
    has_no_match: bool = False  # no known word is near
    is_common: bool = False  # matches so many that the most popular come first


ANYTHING = ParsedQuery((), None)


def parse_all_words(
    words: tuple[str, ...], frequency: WordFrequency, *, is_corrected: bool = False
) -> ParsedQuery:
    query, is_common = match_all(words, is_whole=frequency.is_whole(words)), frequency.are_common(words)
    return ParsedQuery(words, query, is_corrected=is_corrected, is_common=is_common)


def parse_any_word(words: tuple[str, ...], frequency: WordFrequency, *, is_corrected: bool) -> ParsedQuery:
    """Any of the distinctive words."""
    words = frequency.distinctive(words)
    query = match_some(words, is_whole=frequency.is_whole(words))
    return ParsedQuery(words, query, "any", is_corrected, is_common=frequency.is_any_common(words))


def match_word(word: str, words: Sequence[str]) -> str | None:
    """One of these words alone, as a tsquery; the last one may be incomplete."""
    return match_all([word]) if word == words[-1] else match_any([word])


def join_pair(words: tuple[str, ...], pair: str) -> tuple[str, ...]:
    """Replace the two neighbours that form this word by it."""
    for at in range(len(words) - 1):
        if words[at] + words[at + 1] == pair:
            return (*words[:at], pair, *words[at + 2 :])
    return words
