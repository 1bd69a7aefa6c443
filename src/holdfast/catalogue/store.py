"""Reads the tables of the catalogue and caches the results in the process.

    show_on_sale  ≤ 2 s old    for the hold path; peek() returns the cached value without waiting
    layout        never stale  its hash is its content; at most `layout_bytes_max`, shared by their shows
    terms         never stale  the terms of a revision do not change
    pages         ≤ 2 s old    whole responses as bytes with their ETag (web/response_cache.py)

While PostgreSQL is unreachable, every cache returns stale values, so that browsing goes on (R4).
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import fields
from datetime import date
from functools import partial
from typing import Any

import msgspec

from holdfast.catalogue.errors import NoSuchEvent, NoSuchShow, NoSuchVenue
from holdfast.catalogue.event import City, Event, Hall, Kind, OrphanRule, ShowOnSale
from holdfast.catalogue.responses import EventsQuery
from holdfast.engines.aside import run_aside
from holdfast.engines.cache import Cache
from holdfast.engines.postgres import Postgres, Queries, Queryable
from holdfast.engines.replica import RowReader
from holdfast.layouts import Layout, LayoutBody, NoSuchLayout, encode_canonical
from holdfast.pricing import DEFAULT_TERMS, NextPrice, RefundPolicy, Terms
from holdfast.web.response_cache import ResponseCache, fresh_or_stale

Q = Queries("holdfast.catalogue")

HOLD_AGE_MAX_S = 10.0  # maximum age of a cached show for a hold
FRESH_S = 1.0  # minimum time between two loads of a show or page; the maximum age is a multiple of it
SHOW_STALE = 2
LAYOUT_BYTES_MAX = 256_000_000  # unless the settings say otherwise; a stadium takes about 16 MB
TERMS_CACHED_MAX = 10_000  # half a kilobyte each
SHOWS_LISTED_MAX = 50  # per event in a list; the event page has more
SHOWS_OF_PAGE_MAX = 500
SELLING_MAX = 300  # shows considered for trending events
CHOSEN_MAX = 12  # featured or trending events


class Catalogue:
    def __init__(
        self,
        postgres: Postgres,
        *,
        layout_bytes_max: int = LAYOUT_BYTES_MAX,
        fresh_s: float = FRESH_S,
        lists: RowReader | None = None,
    ) -> None:
        """`lists`: where lists for visitors are read, which may be some seconds old."""
        self._postgres = postgres
        self._lists = lists or postgres
        self.on_change: Callable[[], None] = lambda: None
        self.copies: list[Catalogue] = []  # in this process, on the databases of pods
        self._layouts: Cache[str, Layout] = Cache(
            self._load_layout,
            fresh_s=float("inf"),
            size_max=layout_bytes_max,
            weigh=lambda layout: layout.weight,
            on_evict=self._forget_layout,
        )
        self.on_layout_evicted: Callable[[Layout], None] = lambda layout: None
        self._terms = Cache(self._load_terms, fresh_s=float("inf"), size_max=TERMS_CACHED_MAX)
        self._shows = Cache(self._load_show, fresh_s=fresh_s, stale_max_s=fresh_s * SHOW_STALE)
        self.peek = self._shows.peek
        # The show as it was some seconds ago, for a hold; never waits. Stale data is safe here because it is
        # checked again later: Redis checks the sale window, and the ledger refuses to open a booking with an
        # outdated revision.
        self.recent_show = partial(self._shows.peek, age_max_s=HOLD_AGE_MAX_S)
        self.pages = ResponseCache(fresh_s)

    async def show_on_sale(self, show_id: int) -> ShowOnSale:
        """The show for the hold path, at most 2 s old."""
        if (show := await fresh_or_stale(self._shows, show_id)) is None:
            raise NoSuchShow(show_id=show_id)
        return show

    async def public_show(self, show_id: int) -> ShowOnSale:
        """The show, unless it is hidden: for visitors who need not have a ticket."""
        show = await self.show_on_sale(show_id)
        if show.hidden:
            raise NoSuchShow(show_id=show_id)
        return show

    async def organiser_show(self, show_id: int, organiser_id: int | None) -> ShowOnSale:
        """The show if it belongs to this organiser; None means an admin, who may see every show."""
        if not await self._postgres.fetchval(Q.show_belongs_to, show_id, organiser_id):
            raise NoSuchShow(show_id=show_id)
        return await self.show_on_sale(show_id)

    async def show_at_revision(self, show_id: int, revision: int) -> ShowOnSale:
        """The show as of this revision or later, for callers that have read the revision in the ledger."""
        show = await self.show_on_sale(show_id)
        if show.revision < revision:
            # A load already in progress may have read the row before the change, so its result is dropped
            # and the show is loaded once more.
            await self._shows.renew(show_id)
            self.forget(show_id)
            show = await self.show_on_sale(show_id)
        return show

    async def terms(self, show: ShowOnSale, revision: int) -> Terms:
        """The terms for seats that were held at this revision of the show."""
        if revision == show.revision:
            return show.terms
        return await fresh_or_stale(self._terms, (show.show_id, revision))

    async def layout(self, layout_hash: str) -> Layout:
        return await self._layouts.get(layout_hash)

    async def add_layout(self, body: LayoutBody) -> Layout:
        """Store a shared layout. Raises LayoutProblem if it is invalid."""
        layout = await run_aside(Layout.build, body)
        await store_layout(self._postgres, layout)
        return layout

    def _forget_layout(self, layout: Layout) -> None:
        """Shows with this layout would keep it in memory: they are loaded again when they are needed."""
        for show_id, show in self._shows.values():
            if show is not None and show.layout is layout:
                self._shows.drop(show_id)
        self.on_layout_evicted(layout)

    def forget(self, show_id: int) -> None:
        """Drop the cached show: the ledger has a newer revision."""
        self._shows.drop(show_id)
        for copy in self.copies:
            copy.forget(show_id)

    def clear_cached_responses(self) -> None:
        """Drop cached pages after a change: this process shows it at once, others within seconds."""
        self.pages.clear()
        self.on_change()
        for copy in self.copies:
            copy.clear_cached_responses()

    async def cities(self) -> list[City]:
        return [City(**row) for row in await self._postgres.fetch(Q.cities)]

    async def cities_playing(self) -> set[str]:
        """Slugs of the cities with a show to come."""
        return {row["slug"] for row in await self._lists.fetch(Q.cities_playing)}

    async def events_playing(self, query: EventsQuery) -> list[int]:
        """Ids of all matching events, in the order of their first show."""
        rows = await self._lists.fetch(Q.events_playing, query.city, query.date, query.kind)
        return [row["event_id"] for row in rows]

    async def shows_playing(
        self,
        event_ids: Sequence[int],
        *,
        city: str | None = None,
        day: date | None = None,
        each_max: int = SHOWS_LISTED_MAX,
    ) -> list[Any]:
        """The shows of these events as rows of show_detail, the soonest first."""
        return await self._lists.fetch(Q.shows_playing, city, day, list(event_ids), each_max)

    async def featured_events(self) -> list[int]:
        return [row["id"] for row in await self._lists.fetch(Q.featured_events, CHOSEN_MAX)]

    async def shows_selling(self, city: str | None = None) -> list[tuple[int, int]]:
        """(show id, event id) of the shows on sale, the soonest first."""
        rows = await self._lists.fetch(Q.shows_selling, SELLING_MAX, city)
        return [(row["id"], row["event_id"]) for row in rows]

    async def events(self, event_ids: Sequence[int]) -> dict[int, Event]:
        rows = await self._postgres.fetch(Q.events_by_id, list(event_ids))
        return {row["id"]: parse_event(row) for row in rows}

    async def event(self, event_id: int) -> Event:
        if event := (await self.events([event_id])).get(event_id):
            return event
        raise NoSuchEvent(event_id=event_id)

    async def poster_image(self, event_id: int, content_hash: str, width: int) -> bytes | None:
        image: bytes | None = await self._postgres.fetchval(Q.poster_image, event_id, content_hash, width)
        return image

    async def shows_of_event(self, event_id: int) -> list[Any]:
        return await self._postgres.fetch(Q.shows_of_event, event_id, SHOWS_OF_PAGE_MAX)

    async def venue(self, venue_id: int) -> Any:
        if row := await self._postgres.fetchrow(Q.venue_by_id, venue_id):
            return row
        raise NoSuchVenue(venue_id=venue_id)

    async def halls_of_venue(self, venue_id: int) -> list[Hall]:
        return [Hall(**row) for row in await self._postgres.fetch(Q.halls_of_venue, venue_id)]

    async def shows_of_venue(self, venue_id: int) -> list[Any]:
        return await self._postgres.fetch(Q.shows_of_venue, venue_id, SHOWS_OF_PAGE_MAX)

    async def show_detail(self, show_id: int) -> Any:
        if row := await self._postgres.fetchrow(Q.show_detail, show_id):
            return row
        raise NoSuchShow(show_id=show_id)

    async def timezones(self, show_ids: Collection[int]) -> dict[int, str]:
        """In which each of these shows takes place."""
        rows = await self._postgres.fetch(Q.timezones, list(show_ids))
        return {row["show_id"]: row["timezone"] for row in rows}

    async def _load_show(self, show_id: int) -> ShowOnSale | None:
        """None is cached too: requests for unknown shows cost the ledger at most one query per second."""
        row = await self._postgres.fetchrow(Q.show_on_sale, show_id)
        if row is None:
            return None
        layout = await self.layout(row["layout_hash"])
        price_of = dict(zip(row["categories"], row["prices"], strict=True))
        prices, terms = tuple(price_of[category.name] for category in layout.categories), parse_terms(row)
        known = {
            "show_id": show_id,
            "layout": layout,
            "prices": prices,
            "lines": tuple(terms.lines(price) for price in prices),
            "terms": terms,
            "orphan_rule": OrphanRule(row["orphan_rule"]),
            "moving": parse_next_prices(row["coming"]),
        }
        values = dict(row) | known
        return ShowOnSale(**{f.name: values[f.name] for f in fields(ShowOnSale)})

    async def _load_terms(self, key: tuple[int, int]) -> Terms:
        row = await self._postgres.fetchrow(Q.terms, *key)
        return DEFAULT_TERMS if row is None else parse_terms(row)

    async def _load_layout(self, layout_hash: str) -> Layout:
        body = await self._postgres.fetchval(Q.layout_body, layout_hash)
        if body is None:
            raise NoSuchLayout(layout=layout_hash)
        # A stadium takes a good part of a second and would block all other requests.
        return await run_aside(lambda: Layout.build(msgspec.json.decode(body, type=LayoutBody)))


async def store_layout(tx: Queryable, layout: Layout) -> None:
    body = encode_canonical(layout.source()).decode()
    await tx.execute(Q.add_layout, layout.hash, layout.name, body, layout.seat_count)


def parse_terms(row: Any) -> Terms:
    """The terms in a row of show_terms, or of show_detail."""
    values = {name: row[name] for name in Terms.__struct_fields__}
    return Terms(**values | {"refund_policy": parse_refund_policy(row)})


def parse_next_prices(coming: str | None) -> dict[str, NextPrice | None]:
    """The next price change by time of each category with rules, from price_plan.coming."""
    return msgspec.json.decode(coming, type=dict[str, NextPrice | None]) if coming else {}


def parse_refund_policy(row: Any) -> RefundPolicy:
    return msgspec.json.decode(row["refund_policy"], type=RefundPolicy)


def parse_event(row: Any) -> Event:
    values = {name: row[name] for name in Event.__struct_fields__}
    return Event(**values | {"kind": Kind(row["kind"]), "refund_policy": parse_refund_policy(row)})
