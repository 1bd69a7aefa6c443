"""The only file that searches. It has connections of its own: a search never takes one from a hold.

what was typed ──► as it is ──► misspelt words corrected ──► any of the words      the first that finds
with filters   ──► events in order ──► their shows ──► counts by facet (kept for half a minute)
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import asyncpg
import msgspec

from holdfast.catalogue import Kind
from holdfast.config import Config
from holdfast.engines.cache import Cache
from holdfast.engines.postgres import Postgres
from holdfast.engines.sql import Queries
from holdfast.search.correction import QueryCorrector
from holdfast.search.errors import NoSuchPostalCode, SearchTooSlow
from holdfast.search.parsed import ANYTHING, ParsedQuery
from holdfast.search.query import Filters, Point, ResultPosition, Search, Sort, match_all, match_any
from holdfast.search.results import PRICE_EDGES, Tally, build_tally

Q = Queries("holdfast.search")

TALLY_FRESH_S, TALLY_STALE_S = 30.0, 120.0
TALLY_WAIT_S = 0.25  # a page without counts is better than one that is late
COUNT_WITHIN_S = 60.0
COUNTS_AT_ONCE_MAX = 1  # the other connection is for who looks for something
KEPT_MAX = 1000
SHOWS_OF_HIT_MAX = 3
SHOWS_LOOKED_AT = 25  # for each of the soonest events that are wanted
VENUES_NEAR_MAX = 5000
POSTAL_LETTERS_MIN = 3  # a code that shares less with ours says nothing of where it is
COMPLETIONS_MAX = 10
SUGGESTED_OFTEN = 1000  # enough to find some among the most wanted, too many to look at all
OF_SHOWS = (Sort.SHOWTIME, Sort.PRICE, Sort.DISTANCE)  # orders that shows have, and events only by them
COMMON_KEY = -1e12  # keys of what is common are below this, and those of relevance above
REST_FROM = 5.0  # keys of relevance above this are of events that have some of the words in their description


@dataclass(frozen=True, slots=True)
class Hit:
    event_id: int
    key: float

    @property
    def place(self) -> ResultPosition:
        return ResultPosition(self.key, self.event_id)


@dataclass(frozen=True, slots=True)
class HitShow:
    show_id: int
    event_id: int
    venue_id: int
    shows_total: int


class SearchStore:
    def __init__(self, config: Config) -> None:
        self._reader = Postgres(
            config.database_url,
            pool_max=config.search_pool_max,
            timeout_s=config.postgres_timeout_s,
            settings={
                "statement_timeout": str(config.search_timeout_ms),
                "plan_cache_mode": "force_custom_plan",  # what is asked for decides how it is best looked for
                "random_page_cost": "1.1",  # what is searched is in memory
                "max_parallel_workers_per_gather": "0",  # halves of a query are read in order
                "work_mem": "64MB",  # counting by facet goes over all that matches several times
            },
        )
        self._tallies = Cache(
            self._count, fresh_s=TALLY_FRESH_S, stale_max_s=TALLY_STALE_S, size_max=KEPT_MAX
        )

        self._meant = QueryCorrector(self._fetch)
        self._counting = asyncio.Semaphore(COUNTS_AT_ONCE_MAX)

    async def close(self) -> None:
        await self._reader.close()

    # ── what is meant ──────────────────────────────────────────────────────────

    async def find(self, search: Search) -> tuple[ParsedQuery, list[Hit]]:
        """What is meant, and what is found: one more than the page has, if there are more."""
        if not search.words:
            return ANYTHING, await self.hits(search, ANYTHING)
        async for meaning in self._meant.meanings(search.words):
            hits = [] if meaning.is_hopeless else await self.hits(search, meaning)
            if hits or await self._is_meant(meaning, search):
                return meaning, hits
        raise AssertionError("the last meaning is always taken")

    async def meaning(self, words: tuple[str, ...]) -> ParsedQuery:
        """The same, whatever else is asked for."""
        if not words:
            return ANYTHING
        async for meaning in self._meant.meanings(words):
            if meaning.is_hopeless or meaning.match == "any" or await self._meant.is_found(meaning):
                return meaning
        raise AssertionError("the last meaning is always taken")

    async def _is_meant(self, meaning: ParsedQuery, search: Search) -> bool:
        """Though this page has none: nothing else is left to try, or a filter or the page keeps it out."""
        if meaning.is_hopeless or meaning.match == "any":
            return True
        is_whole_list = search.filters == Filters() and search.after is None and not search.offset
        return not is_whole_list and await self._meant.is_found(meaning)

    # ── where ──────────────────────────────────────────────────────────────────

    async def point(self, search: Search) -> Point | None:
        """The point to search near, if one was asked for."""
        if search.postal_code is None:
            return search.near
        code = search.postal_code
        shortest = min(len(code), POSTAL_LETTERS_MIN)
        beginnings = [code[:length] for length in range(len(code), shortest - 1, -1)]
        rows = await self._fetch(Q.place_of_postal_code, beginnings)
        if not rows:
            raise NoSuchPostalCode(field="postal_code", postal_code=code)
        return Point(rows[0]["lat"], rows[0]["lon"])

    async def at(self, search: Search, point: Point | None) -> Search:
        """The search with the venues that are near enough."""
        if point is None:
            return search
        rows = await self._fetch(Q.venues_near, point.lat, point.lon, search.radius_km, VENUES_NEAR_MAX)
        return search.at([(row["venue_id"], row["km"]) for row in rows])

    # ── what is found ──────────────────────────────────────────────────────────

    async def hits(self, search: Search, meaning: ParsedQuery) -> list[Hit]:
        """One more than the page has, if there are more."""
        if search.sort is not Sort.RELEVANCE:
            return await self._hits(search, meaning, "doc", search.size + 1, search.offset)
        if _is_common(search, meaning):
            return await self._common_hits(search, meaning)
        wanted, of = search.size + 1 + search.offset, search.filters
        if not of.look_at_shows:
            rows = await self._fetch(
                Q.hits_by_rank, *_of_events(meaning, of), of.city, *_page(search, wanted)
            )
            return _hits_in(rows)[search.offset :]
        first: list[Hit] = []
        if search.after is None or search.after.key < REST_FROM:
            first = await self._hits(search, meaning, "brief", wanted)
        rest: list[Hit] = []
        if len(first) < wanted:
            rest = await self._hits(search, meaning, "rest", wanted - len(first))
        return [*first, *rest][search.offset :]

    async def _common_hits(self, search: Search, meaning: ParsedQuery) -> list[Hit]:
        """So many have these words that to rank them all would take long: the most wanted come first.

        Their keys are below those of others, so that a cursor leads on in the order it came from.
        """
        after, wanted = search.after, search.size + 1 + search.offset
        since = None if after is None else ResultPosition(after.key - COMMON_KEY, after.event_id)
        by_popularity = replace(search, sort=Sort.POPULARITY, after=since)
        first = await self._hits(by_popularity, meaning, "brief", wanted)
        rest: list[Hit] = []
        if len(first) < wanted:
            rest = await self._hits(replace(search, after=None), meaning, "rest", wanted - len(first))
        return [*(Hit(hit.event_id, hit.key + COMMON_KEY) for hit in first), *rest][search.offset :]

    async def _hits(
        self, search: Search, meaning: ParsedQuery, where: str, limit: int, offset: int = 0
    ) -> list[Hit]:
        of, page = search.filters, _page(search, limit, offset)
        query, *sorts = _of_events(meaning, of)
        words = (query, where, *sorts)
        if not (of.look_at_shows or (of.city and search.sort in OF_SHOWS)):
            return _hits_in(await self._fetch(Q.hits, *words, of.city, search.sort, *page))
        asked = (search.sort, *of.of_shows, *page)
        if search.sort not in OF_SHOWS:
            return _hits_in(await self._fetch(Q.hits_with_show, *words, *asked))
        if search.sort is Sort.SHOWTIME and not (query or of.city or of.venues is not None):
            soon = await self._soon(search, limit + offset)
            if soon is not None:
                return soon[offset:]
        near = (list(of.venues or ()), list(of.distances_km or [0.0] * len(of.venues or ())))
        if query or any(sorts):
            return _hits_in(await self._fetch(Q.hits_by_show, *words, *asked, *near))
        return _hits_in(await self._fetch(Q.hits_of_shows, *asked, *near))

    async def _soon(self, search: Search, limit: int) -> list[Hit] | None:
        """The soonest of very many; None: a look at the next shows is not enough to tell."""
        of, looked_max = search.filters, limit * SHOWS_LOOKED_AT
        _city, _venues, *of_shows = of.of_shows
        asked = (of.kind, of.language, of.genre, *of_shows, *_page(search, looked_max)[:3])
        rows = await self._fetch(Q.hits_soon, *asked)
        if not rows:  # nothing at all, or nothing but what was told before
            return [] if search.after is None else None
        if rows[0]["looked_at"] < looked_max:
            return _hits_in(rows)[:limit]
        # At the last moment that was looked at there may be others, which were not.
        sure = [row for row in rows if row["key"] < row["up_to"]]
        return _hits_in(sure)[:limit] if len(sure) >= limit else None

    async def shows(self, event_ids: Sequence[int], search: Search, meaning: ParsedQuery) -> list[HitShow]:
        """The shows that a page tells of each event."""
        named = match_any(meaning.words) if meaning.words else None
        rows = await self._fetch(
            Q.shows_of_hits, named, list(event_ids), SHOWS_OF_HIT_MAX, *search.filters.of_shows
        )
        return [HitShow(**row) for row in rows]

    async def tally(self, filters: Filters, meaning: ParsedQuery) -> Tally | None:
        """Counts, from this process' memory if they are young; None: they take too long to count.

        Whoever asks first waits a little. After that the count goes on without them, for who asks next.
        """
        asked = (meaning.query, filters)
        try:
            return await asyncio.wait_for(self._tallies.get(asked), TALLY_WAIT_S)
        except (SearchTooSlow, TimeoutError):
            return self._tallies.stale(asked)

    async def _count(self, asked: tuple[str | None, Filters]) -> Tally:
        query, of = asked
        if query is None and of == Filters(kind=of.kind):  # everything, or all films: a job counts those
            rows = await self._fetch(Q.tally_kept, of.kind or "")
            if rows:
                return msgspec.json.decode(rows[0]["tally"], type=Tally)
        async with self._counting:
            return build_tally(await self._fetch(Q.facets, *_of_facets(query, of)))

    async def count_all(self) -> int:
        """A job: count what is asked for most and takes longest. Nothing is left to do then: always 0."""
        async with self._reader.transaction() as tx:
            await tx.execute(Q.take_time)
            if not await tx.fetchval(Q.try_lock_tallies):
                return 0
            for kind in (None, *Kind):
                rows = await tx.fetch(Q.facets, *_of_facets(None, Filters(kind=kind)), timeout=COUNT_WITHIN_S)
                await tx.execute(Q.keep_tally, kind or "", msgspec.json.encode(build_tally(rows)).decode())
        return 0

    # ── while typing ───────────────────────────────────────────────────────────

    async def suggested_events(self, words: Sequence[str], limit: int) -> list[Any]:
        """The most wanted events whose title or people have these words, the last one perhaps unfinished."""
        *whole, last = words
        rows = await self._fetch(Q.words_beginning, last, COMPLETIONS_MAX)
        completed = [row["word"] for row in rows]
        if not completed:
            return []
        if not whole and sum(row["uses"] for row in rows) > SUGGESTED_OFTEN:
            return await self._fetch(Q.common_events_suggested, match_any(completed), limit)
        query = " & ".join([*(match_any([word]) for word in whole), f"({match_any(completed, 'AB')})"])
        return await self._fetch(Q.events_suggested, query, limit)

    async def suggested_venues(self, words: Sequence[str], limit: int) -> list[Any]:
        return await self._fetch(Q.venues_suggested, match_all(words), limit)

    async def _fetch(self, sql: str, *args: object) -> list[Any]:
        async with self._reader.lease() as connection:
            try:
                return list(await connection.fetch(sql, *args))
            except asyncpg.QueryCanceledError:
                raise SearchTooSlow from None


def _is_common(search: Search, meaning: ParsedQuery) -> bool:
    """Whether popularity orders what is found; who follows a cursor stays in the order it came from."""
    return meaning.is_common if search.after is None else search.after.key < COMMON_KEY / 2


def _of_events(meaning: ParsedQuery, of: Filters) -> tuple[str | None, ...]:
    return (meaning.query, of.kind, of.language, of.genre)


def _page(search: Search, limit: int, offset: int = 0) -> tuple[Any, ...]:
    after = search.after
    return (*((after.key, after.event_id) if after else (None, None)), limit, 0 if after else offset)


def _hits_in(rows: Sequence[Any]) -> list[Hit]:
    return [Hit(row["event_id"], row["key"]) for row in rows]


def _of_facets(query: str | None, of: Filters) -> tuple[Any, ...]:
    look_at_shows = of.look_at_shows or of.city is not None
    return (query, of.kind, of.language, of.genre, *of.of_shows, look_at_shows, list(PRICE_EDGES))
