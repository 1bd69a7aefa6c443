"""Runs searches on its own connections: a search never takes one from a hold.

query as typed ──► misspelt words corrected ──► any of the words        the first that has matches
with filters   ──► events in order ──► their shows ──► counts by facet (cached for half a minute)
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
from holdfast.engines.errors import EngineDown
from holdfast.engines.postgres import Postgres, Queries
from holdfast.engines.replica import ReplicaLag, ReplicaPostgres, ReplicaReader, RowReader
from holdfast.search.correction import QueryCorrector
from holdfast.search.errors import NoSuchPostalCode, SearchTooSlow
from holdfast.search.query import (
    ANYTHING,
    Filters,
    ParsedQuery,
    Point,
    ResultPosition,
    Search,
    Sort,
    match_all,
    match_any,
)
from holdfast.search.results import PRICE_EDGES, Tally, build_tally

Q = Queries("holdfast.search")

TALLY_FRESH_S, TALLY_STALE_S = 30.0, 120.0
TALLY_WAIT_S = 0.25  # a page without counts is better than a late one
COUNT_WITHIN_S = 60.0
COUNTS_AT_ONCE_MAX = 1  # the other connections are for searches
TALLIES_CACHED_MAX = 1000
SHOWS_OF_HIT_MAX = 3
SHOWS_LOOKED_AT = 25  # shows read per event of the page
VENUES_NEAR_MAX = 5000
POSTAL_LETTERS_MIN = 3  # a shorter common prefix does not locate a postal code
COMPLETIONS_MAX = 10
SUGGESTED_OFTEN = 1000  # enough to find some among the most popular, too many to rank all
OF_SHOWS = (Sort.SHOWTIME, Sort.PRICE, Sort.DISTANCE)  # orders by a property of shows
COMMON_KEY = -1e12  # keys of common words are below this, those of relevance above
REST_FROM = 5.0  # relevance keys above this belong to events that match only with their description


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
    def __init__(self, config: Config, lag: ReplicaLag | None = None) -> None:
        """`lag`: of the replica, if there is one to search on."""
        settings = {
            "statement_timeout": str(config.search_timeout_ms),
            "plan_cache_mode": "force_custom_plan",  # the best plan depends on the parameters
            "random_page_cost": "1.1",  # the tables fit into memory
            "max_parallel_workers_per_gather": "0",  # the parts of a query must be read in order
            "work_mem": "64MB",  # counting facets reads all matches several times
        }
        pool_max, timeout_s = config.search_pool_max, config.postgres_timeout_s
        self._postgres = Postgres(
            config.session_url, pool_max=pool_max, timeout_s=timeout_s, settings=settings
        )
        self._replica: ReplicaReader | None = None
        if lag is not None:
            replica = ReplicaPostgres(
                config.replica_url, pool_max=pool_max, timeout_s=timeout_s, settings=settings
            )
            self._replica = ReplicaReader(self._postgres, replica, lag)
        self._reader: RowReader = self._replica or self._postgres
        self._tallies = Cache(
            self._count, fresh_s=TALLY_FRESH_S, stale_max_s=TALLY_STALE_S, size_max=TALLIES_CACHED_MAX
        )

        self._corrector = QueryCorrector(self._fetch)
        self._counting = asyncio.Semaphore(COUNTS_AT_ONCE_MAX)

    async def close(self) -> None:
        await self._postgres.close()
        if self._replica is not None:
            await self._replica.close()

    # ── interpreting the query ──────────────────────────────────────────────────────────

    async def find(self, search: Search) -> tuple[ParsedQuery, list[Hit]]:
        """The query that was run, and its hits: one more than the page size if there are more."""
        if not search.words:
            return ANYTHING, await self.hits(search, ANYTHING)
        async for parsed in self._corrector.interpretations(search.words):
            hits = [] if parsed.has_no_match else await self.hits(search, parsed)
            if hits or await self._is_accepted(parsed, search):
                return parsed, hits
        raise AssertionError("the last interpretation is always taken")

    async def interpret(self, words: tuple[str, ...]) -> ParsedQuery:
        """The query that find() would run, ignoring filters."""
        if not words:
            return ANYTHING
        async for parsed in self._corrector.interpretations(words):
            if parsed.has_no_match or parsed.match == "any" or await self._corrector.is_found(parsed):
                return parsed
        raise AssertionError("the last interpretation is always taken")

    async def _is_accepted(self, parsed: ParsedQuery, search: Search) -> bool:
        """Whether to accept a query without hits: the last one, or filters or the page hide its hits."""
        if parsed.has_no_match or parsed.match == "any":
            return True
        is_whole_list = search.filters == Filters() and search.after is None and not search.offset
        return not is_whole_list and await self._corrector.is_found(parsed)

    # ── where ──────────────────────────────────────────────────────────────────

    async def point(self, search: Search) -> Point | None:
        """The point to search near, if the search has one."""
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
        """The search limited to the venues within its radius."""
        if point is None:
            return search
        rows = await self._fetch(Q.venues_near, point.lat, point.lon, search.radius_km, VENUES_NEAR_MAX)
        return search.at([(row["venue_id"], row["km"]) for row in rows])

    # ── what is found ──────────────────────────────────────────────────────────

    async def hits(self, search: Search, parsed: ParsedQuery) -> list[Hit]:
        """The hits of a page, and one more if there are more."""
        if search.sort is not Sort.RELEVANCE:
            return await self._hits(search, parsed, "doc", search.size + 1, search.offset)
        if _is_common(search, parsed):
            return await self._common_hits(search, parsed)
        wanted, of = search.size + 1 + search.offset, search.filters
        if not of.look_at_shows:
            rows = await self._fetch(
                Q.hits_by_rank, *_event_filters(parsed, of), of.city, *_page(search, wanted)
            )
            return _parse_hits(rows)[search.offset :]
        first: list[Hit] = []
        if search.after is None or search.after.key < REST_FROM:
            first = await self._hits(search, parsed, "brief", wanted)
        rest: list[Hit] = []
        if len(first) < wanted:
            rest = await self._hits(search, parsed, "rest", wanted - len(first))
        return [*first, *rest][search.offset :]

    async def _common_hits(self, search: Search, parsed: ParsedQuery) -> list[Hit]:
        """So many events match that ranking them all would be slow: the most popular come first.

        Their keys are below all others, so that a cursor continues in its own order.
        """
        after, wanted = search.after, search.size + 1 + search.offset
        since = None if after is None else ResultPosition(after.key - COMMON_KEY, after.event_id)
        by_popularity = replace(search, sort=Sort.POPULARITY, after=since)
        first = await self._hits(by_popularity, parsed, "brief", wanted)
        rest: list[Hit] = []
        if len(first) < wanted:
            rest = await self._hits(replace(search, after=None), parsed, "rest", wanted - len(first))
        return [*(Hit(hit.event_id, hit.key + COMMON_KEY) for hit in first), *rest][search.offset :]

    async def _hits(
        self, search: Search, parsed: ParsedQuery, where: str, limit: int, offset: int = 0
    ) -> list[Hit]:
        of, page = search.filters, _page(search, limit, offset)
        query, *sorts = _event_filters(parsed, of)
        words = (query, where, *sorts)
        if not (of.look_at_shows or (of.city and search.sort in OF_SHOWS)):
            return _parse_hits(await self._fetch(Q.hits, *words, of.city, search.sort, *page))
        filters = (search.sort, *of.of_shows, *page)
        if search.sort not in OF_SHOWS:
            return _parse_hits(await self._fetch(Q.hits_with_show, *words, *filters))
        if search.sort is Sort.SHOWTIME and not (query or of.city or of.venues is not None):
            soon = await self._soonest_hits(search, limit + offset)
            if soon is not None:
                return soon[offset:]
        near = (list(of.venues or ()), list(of.distances_km or [0.0] * len(of.venues or ())))
        if query or any(sorts):
            return _parse_hits(await self._fetch(Q.hits_by_show, *words, *filters, *near))
        return _parse_hits(await self._fetch(Q.hits_of_shows, *filters, *near))

    async def _soonest_hits(self, search: Search, limit: int) -> list[Hit] | None:
        """The soonest of very many; None: the next shows alone do not determine them."""
        of, looked_max = search.filters, limit * SHOWS_LOOKED_AT
        _city, _venues, *of_shows = of.of_shows
        parameters = (of.kind, of.language, of.genre, *of_shows, *_page(search, looked_max)[:3])
        rows = await self._fetch(Q.hits_soon, *parameters)
        if not rows:  # no shows at all, or only those of earlier pages
            return [] if search.after is None else None
        if rows[0]["looked_at"] < looked_max:
            return _parse_hits(rows)[:limit]
        # Further shows may start at the same instant as the last one that was read.
        sure = [row for row in rows if row["key"] < row["up_to"]]
        return _parse_hits(sure)[:limit] if len(sure) >= limit else None

    async def shows(self, event_ids: Sequence[int], search: Search, parsed: ParsedQuery) -> list[HitShow]:
        """The shows that a page lists for each event."""
        named = match_any(parsed.words) if parsed.words else None
        rows = await self._fetch(
            Q.shows_of_hits, named, list(event_ids), SHOWS_OF_HIT_MAX, *search.filters.of_shows
        )
        return [HitShow(**row) for row in rows]

    async def tally(self, filters: Filters, parsed: ParsedQuery) -> Tally | None:
        """Facet counts, cached in the process; None: counting takes too long.

        The first caller waits for a moment; then counting continues in the background for later callers.
        """
        key = (parsed.query, filters)
        try:
            return await asyncio.wait_for(self._tallies.get(key), TALLY_WAIT_S)
        except (SearchTooSlow, TimeoutError):
            return self._tallies.stale(key)

    async def _count(self, key: tuple[str | None, Filters]) -> Tally:
        query, of = key
        if query is None and of == Filters(kind=of.kind):  # everything, or all films: a job counts those
            rows = await self._fetch(Q.stored_tally, of.kind or "")
            if rows:
                return msgspec.json.decode(rows[0]["tally"], type=Tally)
        async with self._counting:
            return build_tally(await self._fetch(Q.facets, *_of_facets(query, of)))

    async def count_all(self) -> int:
        """A job: count the most frequent and slowest facets. Always returns 0: there is no backlog."""
        async with self._postgres.transaction() as tx:
            await tx.execute(Q.take_time)
            if not await tx.fetchval(Q.try_lock_tallies):
                return 0
            for kind in (None, *Kind):
                rows = await tx.fetch(Q.facets, *_of_facets(None, Filters(kind=kind)), timeout=COUNT_WITHIN_S)
                await tx.execute(Q.store_tally, kind or "", msgspec.json.encode(build_tally(rows)).decode())
        return 0

    # ── while typing ───────────────────────────────────────────────────────────

    async def suggested_events(self, words: Sequence[str], limit: int) -> list[Any]:
        """The most popular events whose title or people match; the last word may be incomplete."""
        *whole, last = words
        rows = await self._fetch(Q.words_beginning, last, COMPLETIONS_MAX)
        completed = [row["word"] for row in rows]
        if not completed:
            return []
        if not whole and sum(row["uses"] for row in rows) > SUGGESTED_OFTEN:
            return await self._fetch(Q.common_events_suggested, match_any(completed), limit)
        query = " & ".join([*(match_any([word]) for word in whole), f"({match_any(completed, 'AB')})"])
        return await self._fetch(Q.events_suggested, query, limit)

    async def corrected_events(self, parsed: ParsedQuery, limit: int) -> list[Any]:
        """The most popular events that match the corrected query."""
        sql = Q.common_events_suggested if parsed.is_common else Q.events_suggested
        return await self._fetch(sql, parsed.query, limit)

    async def suggested_venues(self, words: Sequence[str], limit: int) -> list[Any]:
        return await self._fetch(Q.venues_suggested, match_all(words), limit)

    async def _fetch(self, sql: str, *args: object) -> list[Any]:
        try:
            return await self._reader.fetch(sql, *args)
        except EngineDown as down:
            if isinstance(down.__cause__, asyncpg.QueryCanceledError):
                raise SearchTooSlow from None
            raise


def _is_common(search: Search, parsed: ParsedQuery) -> bool:
    """Whether hits are ordered by popularity; a cursor continues in its own order."""
    return parsed.is_common if search.after is None else search.after.key < COMMON_KEY / 2


def _event_filters(parsed: ParsedQuery, of: Filters) -> tuple[str | None, ...]:
    return (parsed.query, of.kind, of.language, of.genre)


def _page(search: Search, limit: int, offset: int = 0) -> tuple[Any, ...]:
    after = search.after
    return (*((after.key, after.event_id) if after else (None, None)), limit, 0 if after else offset)


def _parse_hits(rows: Sequence[Any]) -> list[Hit]:
    return [Hit(row["event_id"], row["key"]) for row in rows]


def _of_facets(query: str | None, of: Filters) -> tuple[Any, ...]:
    look_at_shows = of.look_at_shows or of.city is not None
    return (query, of.kind, of.language, of.genre, *of.of_shows, look_at_shows, list(PRICE_EDGES))
