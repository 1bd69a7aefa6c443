"""The only file that searches. It has connections of its own: a search never takes one from a hold.

what was typed ──► as it is ──► misspelt words corrected ──► any of the words      the first that finds
with filters   ──► events in order ──► their shows ──► counts by facet (kept for half a minute)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg

from holdfast.config import Config
from holdfast.engines.cache import Cache
from holdfast.engines.postgres import Postgres
from holdfast.engines.sql import Queries
from holdfast.search.pages import PRICE_EDGES, Tally, tally_of
from holdfast.search.query import Filters, Place, Point, Search, Sort, all_of, any_of, some_of
from holdfast.search.refusals import NoSuchPostalCode, SearchTooSlow
from holdfast.search.spelling import edits_max, joined, keys_of, nearest

Q = Queries("holdfast.search")

WORDS_FRESH_S = 2.0
TALLY_FRESH_S, TALLY_STALE_S = 30.0, 120.0
KEPT_MAX = 1000
SHOWS_OF_HIT_MAX = 3
VENUES_NEAR_MAX = 5000
COMMON_USES = 20_000  # "any of the words" leaves more common ones out, if others are left
OFTEN_USES = 2_000  # enough to find some among the most wanted, too many to look at all
POSTAL_LETTERS_MIN = 3  # a code that shares less with ours says nothing of where it is
COMPLETIONS_MAX = 10
WHOLE_USES = 500
OF_SHOWS = (Sort.SHOWTIME, Sort.PRICE, Sort.DISTANCE)  # orders that shows have, and events only by them
REST_FROM = 5.0  # keys of relevance above this are of events that have some of the words in their description


@dataclass(frozen=True, slots=True)
class Meaning:
    """What is really looked for."""

    words: tuple[str, ...]
    query: str | None  # a tsquery; None: whatever the words
    match: str = "all"
    is_corrected: bool = False
    is_hopeless: bool = False  # nothing we have comes near


@dataclass(frozen=True, slots=True)
class Hit:
    event_id: int
    key: float

    @property
    def place(self) -> Place:
        return Place(self.key, self.event_id)


@dataclass(frozen=True, slots=True)
class HitShow:
    show_id: int
    event_id: int
    venue_id: int
    shows_total: int


class Finder:
    def __init__(self, config: Config) -> None:
        self._reader = Postgres(
            config.database_url,
            pool_max=config.search_pool_max,
            timeout_s=config.postgres_timeout_s,
            settings={
                "statement_timeout": str(config.search_timeout_ms),
                "plan_cache_mode": "force_custom_plan",  # what is asked for decides how it is best looked for
                "random_page_cost": "1.1",  # what is searched is in memory
                "work_mem": "64MB",  # counting by facet goes over all that matches several times
            },
        )
        self._meanings = Cache(self._understand, fresh_s=WORDS_FRESH_S, stale_max_s=0, size_max=KEPT_MAX)
        self._tallies = Cache(
            self._count, fresh_s=TALLY_FRESH_S, stale_max_s=TALLY_STALE_S, size_max=KEPT_MAX
        )

    async def close(self) -> None:
        await self._reader.close()

    # ── what is meant ──────────────────────────────────────────────────────────

    async def meaning(self, words: tuple[str, ...]) -> Meaning:
        """As typed if anything has it; else with misspelt words corrected; else any of the words."""
        return await self._meanings.get(words) if words else Meaning((), None)

    async def _understand(self, words: tuple[str, ...]) -> Meaning:
        uses = await self._uses([*words, *joined(words)])
        typed = all_of(words, is_whole=_is_whole(words, uses))
        if (await self._found([typed]))[0]:
            return Meaning(words, typed)
        corrected = await self._corrected(words, uses)
        if not corrected:
            return Meaning(words, None, is_hopeless=True)
        is_corrected = corrected != words
        uses |= await self._uses(corrected)
        query = all_of(corrected, is_whole=_is_whole(corrected, uses))
        if is_corrected and (await self._found([query]))[0]:
            return Meaning(corrected, query, is_corrected=True)
        telling = [word for word in corrected if uses.get(word, 0) <= COMMON_USES]
        chosen = tuple(telling) or (min(corrected, key=lambda word: uses.get(word, 0)),)
        some = some_of(chosen, is_whole=_is_whole(chosen, uses))
        return Meaning(chosen, some, "any", is_corrected)

    async def _corrected(self, words: tuple[str, ...], uses: dict[str, int]) -> tuple[str, ...]:
        """Words that we know as they are, the nearest one for others; what nothing comes near is left out."""
        if pairs := [pair for pair in joined(words) if pair in uses]:
            words = _with_pair(words, pairs[0])
        asked = [word for word in words if word not in uses]
        has_it = await self._found(
            [all_of([word]) if word == words[-1] else any_of([word]) for word in asked]
        )
        unknown = [word for word, known in zip(asked, has_it, strict=True) if not known]
        near = await self._near(unknown)
        found = {word: nearest(word, near) or await self._completed(word) for word in unknown}
        return tuple(meant for word in words if (meant := found.get(word, word)))

    async def _completed(self, word: str) -> str | None:
        """The most used word that begins so: “orch” is short for something."""
        rows = await self._fetch(Q.words_beginning, word, 1)
        return rows[0]["word"] if rows else None

    async def _near(self, words: Sequence[str]) -> dict[str, int]:
        keys = {key for word in words if edits_max(word) for key in keys_of(word)}
        rows = await self._fetch(Q.words_near, sorted(keys)) if keys else []
        return {row["word"]: row["uses"] for row in rows}

    async def _uses(self, words: Sequence[str]) -> dict[str, int]:
        return {row["word"]: row["uses"] for row in await self._fetch(Q.words_known, list(words))}

    async def _found(self, queries: Sequence[str | None]) -> list[bool]:
        return [row["found"] for row in await self._fetch(Q.found, list(queries))]

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

    async def hits(self, search: Search, meaning: Meaning) -> list[Hit]:
        """One more than the page has, if there are more."""
        if search.sort is not Sort.RELEVANCE:
            return await self._hits(search, meaning, "doc", search.size + 1, search.offset)
        wanted = search.size + 1 + search.offset
        first: list[Hit] = []
        if search.after is None or search.after.key < REST_FROM:
            first = await self._hits(search, meaning, "brief", wanted)
        rest: list[Hit] = []
        if len(first) < wanted:
            rest = await self._hits(search, meaning, "rest", wanted - len(first))
        return [*first, *rest][search.offset :]

    async def _hits(
        self, search: Search, meaning: Meaning, where: str, limit: int, offset: int = 0
    ) -> list[Hit]:
        of, after = search.filters, search.after
        page = (*((after.key, after.event_id) if after else (None, None)), limit, 0 if after else offset)
        words = (meaning.query, where, of.kind, of.language, of.genre)
        if not (of.look_at_shows or (of.city and search.sort in OF_SHOWS)):
            rows = await self._fetch(Q.hits, *words, of.city, search.sort, *page)
            return [Hit(row["event_id"], row["key"]) for row in rows]
        near = (list(of.venues or ()), list(of.distances_km or [0.0] * len(of.venues or ())))
        asked = (search.sort, *of.of_shows, *page, *near)
        if search.sort in OF_SHOWS and not any((meaning.query, of.kind, of.language, of.genre)):
            rows = await self._fetch(Q.hits_of_shows, *asked)
        else:
            rows = await self._fetch(Q.hits_by_show, *words, *asked)
        return [Hit(row["event_id"], row["key"]) for row in rows]

    async def shows(self, event_ids: Sequence[int], search: Search, meaning: Meaning) -> list[HitShow]:
        """The shows that a page tells of each event."""
        named = any_of(meaning.words) if meaning.words else None
        rows = await self._fetch(
            Q.shows_of_hits, named, list(event_ids), SHOWS_OF_HIT_MAX, *search.filters.of_shows
        )
        return [HitShow(**row) for row in rows]

    async def tally(self, filters: Filters, meaning: Meaning) -> Tally | None:
        """Counts, from this process' memory if they are young; None: they take too long to count."""
        try:
            return await self._tallies.get((meaning.query, filters))
        except SearchTooSlow:
            return self._tallies.stale((meaning.query, filters))

    async def _count(self, asked: tuple[str | None, Filters]) -> Tally:
        query, of = asked
        look_at_shows = of.look_at_shows or of.city is not None
        words = (query, of.kind, of.language, of.genre)
        return tally_of(await self._fetch(Q.facets, *words, *of.of_shows, look_at_shows, list(PRICE_EDGES)))

    # ── while typing ───────────────────────────────────────────────────────────

    async def suggested_events(self, words: Sequence[str], limit: int) -> list[Any]:
        """The most wanted events whose title or people have these words, the last one perhaps unfinished."""
        *whole, last = words
        rows = await self._fetch(Q.words_beginning, last, COMPLETIONS_MAX)
        completed = [row["word"] for row in rows]
        if not completed:
            return []
        if not whole and sum(row["uses"] for row in rows) > OFTEN_USES:
            return await self._fetch(Q.common_events_suggested, any_of(completed), limit)
        query = " & ".join([*(any_of([word]) for word in whole), f"({any_of(completed, 'AB')})"])
        return await self._fetch(Q.events_suggested, query, limit)

    async def suggested_venues(self, words: Sequence[str], limit: int) -> list[Any]:
        return await self._fetch(Q.venues_suggested, all_of(words), limit)

    async def _fetch(self, sql: str, *args: object) -> list[Any]:
        async with self._reader.lease() as connection:
            try:
                return list(await connection.fetch(sql, *args))
            except asyncpg.QueryCanceledError:
                raise SearchTooSlow from None


def _is_whole(words: Sequence[str], uses: Mapping[str, int]) -> bool:
    """A last word that is used so often is not the beginning of another one; looking for those costs much."""
    return uses.get(words[-1], 0) >= WHOLE_USES


def _with_pair(words: tuple[str, ...], pair: str) -> tuple[str, ...]:
    """The two neighbours that make this word, as one."""
    for at in range(len(words) - 1):
        if words[at] + words[at + 1] == pair:
            return (*words[:at], pair, *words[at + 2 :])
    return words
