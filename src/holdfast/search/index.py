"""Writes the tables of search: reads due events from the catalogue and rewrites their listings.

    fact ──► listing_due ──► listing, listing_show, listing_venue, listing_word
             one row for many facts

One process writes at a time. It reads the due rows, then the catalogue, writes, and removes the due rows
whose version has not changed meanwhile: neither a change during the write nor a crash loses an update.
Marking never waits for the writer, which takes further connections while it works.
"""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol

import msgspec

from holdfast.engines.postgres import Postgres, Queries, Transaction
from holdfast.search.listing import (
    ListedShow,
    ShowCounts,
    build_listed_show,
    build_listed_venue,
    build_listing,
    cheapest_price,
)
from holdfast.search.words import build_spelling_keys

Q = Queries("holdfast.search", "index")
SOURCE = Queries("holdfast.search", "source")


class SearchSource:
    """Reads events, upcoming shows and venues from the catalogue."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def event_count(self) -> int:
        return int(await self._postgres.fetchval(SOURCE.event_count))

    async def event_ids_after(self, event_id: int, limit: int) -> list[int]:
        return [row["id"] for row in await self._postgres.fetch(SOURCE.event_ids_after, event_id, limit)]

    async def events(self, event_ids: Sequence[int]) -> list[Any]:
        return await self._postgres.fetch(SOURCE.events, list(event_ids))

    async def shows(self, event_ids: Sequence[int]) -> list[Any]:
        """The soonest show first."""
        return await self._postgres.fetch(SOURCE.shows, list(event_ids))

    async def prices(self, show_ids: Sequence[int]) -> list[Any]:
        """Seats and prices by category of these shows."""
        return await self._postgres.fetch(SOURCE.prices, list(show_ids))

    async def venues(self, venue_ids: Sequence[int]) -> list[Any]:
        return await self._postgres.fetch(SOURCE.venues, list(venue_ids))

    async def event_of_show(self, show_id: int) -> list[int]:
        """Empty if the show does not exist."""
        return [row["event_id"] for row in await self._postgres.fetch(SOURCE.event_of_show, show_id)]

    async def events_at(self, *, venue_id: int = 0, city_id: int = 0) -> list[int]:
        """Events with upcoming shows at a venue, or anywhere in a city."""
        return [row["event_id"] for row in await self._postgres.fetch(SOURCE.events_at, venue_id, city_id)]


EVENTS_AT_ONCE = 200
MARKED_AT_ONCE = 1000
COUNTS_AT_ONCE = 500
PAST_MAX = 1000
COUNTS_WAIT_S = 2.0  # minimum time between two writes of the counts of one show

Progress = Callable[[str, int, int], None]  # what, done, of how many
Write = Callable[[Any, list[int]], Awaitable[None]]


class SeatCounts(Protocol):
    """The part of the seat map that the index uses."""

    async def counts_many(self, show_ids: Iterable[int]) -> dict[int, dict[str, int]]: ...

    async def free_categories(self, show_id: int, taken: int) -> frozenset[str]: ...


class SearchIndex:
    def __init__(self, postgres: Postgres, source: SearchSource, seatmap: SeatCounts) -> None:
        self._postgres = postgres
        self._source = source
        self._seatmap = seatmap

    async def mark_events(self, event_ids: Sequence[int]) -> None:
        """Mark events as changed; a worker rewrites them within about a second."""
        if event_ids:
            await self._postgres.execute(Q.mark, "event", list(event_ids), 0.0)

    async def mark_show(self, show_id: int) -> None:
        await self.mark_events(await self._source.event_of_show(show_id))

    async def mark_at(self, *, venue_id: int = 0, city_id: int = 0) -> None:
        """Mark the events at a venue, or in a city."""
        await self.mark_events(await self._source.events_at(venue_id=venue_id, city_id=city_id))

    async def mark_counts(self, show_id: int) -> bool:
        """True: it was not due before, so the write after COUNTS_WAIT_S includes all changes until then."""
        return bool(await self._postgres.fetchval(Q.mark, "counts", [show_id], COUNTS_WAIT_S) == 1)

    async def mark_past(self) -> int:
        return int((await self._postgres.execute(Q.mark_past, PAST_MAX)).rsplit(" ", 1)[-1])

    async def write_due(self) -> int:
        """Write due events; returns how many. 0 while another process writes."""
        return await self._one_at_a_time("event", EVENTS_AT_ONCE, self._write, wait=False)

    async def write_counts(self) -> int:
        """Write the taken seats of the shows with changes."""
        return await self._one_at_a_time("counts", COUNTS_AT_ONCE, self._write_counts, wait=False)

    async def reindex(self, progress: Progress = lambda _what, _done, _total: None) -> int:
        """Rebuild all listings while search keeps working; returns the number of events."""
        total, done, last = await self._source.event_count(), 0, 0
        await self._postgres.execute(Q.mark_listed)
        while event_ids := await self._source.event_ids_after(last, MARKED_AT_ONCE):
            last = event_ids[-1]
            await self.mark_events(event_ids)
            while count := await self._one_at_a_time("event", EVENTS_AT_ONCE, self._write, wait=True):
                done += count
                progress("events", min(done, total), total)
        return done

    async def _one_at_a_time(self, what: str, limit: int, write: Write, *, wait: bool) -> int:
        async with self._postgres.transaction() as tx:
            if wait:
                await tx.execute(Q.lock_listings)
            elif not await tx.fetchval(Q.try_lock_listings):
                return 0
            rows = await tx.fetch(Q.due, what, limit)
            ids = [row["id"] for row in rows]
            if ids:
                await write(tx, ids)
                await tx.execute(Q.done, what, ids, [row["version"] for row in rows])
        return len(ids)

    async def _write_counts(self, tx: Transaction, show_ids: list[int]) -> None:
        counts = await self._count_seats(await self._source.prices(show_ids))
        columns = [(i, each.taken, each.wanted, each.from_price_minor) for i, each in counts.items()]
        rows = await tx.fetch(Q.write_counts, *map(list, zip(*columns, strict=True))) if columns else []
        await tx.execute(Q.write_totals, sorted({row["event_id"] for row in rows}))

    async def _count_seats(self, rows: Sequence[Any]) -> dict[int, ShowCounts]:
        """Taken seats and the cheapest free one, by show; `rows` have the prices."""
        by_state = await self._seatmap.counts_many([row["show_id"] for row in rows])
        counts = {}
        for row in rows:
            state = by_state[row["show_id"]]
            wanted = state.get("H", 0) + state.get("B", 0)
            taken = wanted + state.get("X", 0)
            price = await self._cheapest_free(row, taken)
            counts[row["show_id"]] = ShowCounts(taken=taken, wanted=wanted, from_price_minor=price)
        return counts

    async def _cheapest_free(self, row: Any, taken: int) -> int | None:
        """The seat map is read only for shows of which a part is sold."""
        if taken >= row["seats"]:
            return None
        is_partly_sold = taken > 0 and len(row["prices"]) > 1
        free = await self._seatmap.free_categories(row["show_id"], taken) if is_partly_sold else ()
        return cheapest_price(row, free or row["categories"])

    async def from_prices(self, show_ids: Sequence[int]) -> dict[int, int | None]:
        """The price of the cheapest free seat of each indexed show, seconds old; None: no seat was free."""
        rows = await self._postgres.fetch(Q.from_prices, list(show_ids))
        return {row["show_id"]: row["from_price_minor"] for row in rows}

    async def _write(self, tx: Transaction, event_ids: list[int]) -> None:
        events = await self._source.events(event_ids)
        rows = await self._source.shows(event_ids)
        venues = {
            row["venue_id"]: row
            for row in await self._source.venues(sorted({row["venue_id"] for row in rows}))
        }
        counts = await self._count_seats(rows)
        shows: dict[int, list[ListedShow]] = defaultdict(list)
        for row in rows:
            shows[row["event_id"]].append(build_listed_show(row, counts[row["show_id"]]))
        listings = [
            build_listing(event, shows[event["event_id"]], venues)
            for event in events
            if event["event_id"] in shows
        ]
        before = [word for row in await tx.fetch(Q.words_before, event_ids) for word in row["words"]]
        await tx.execute(Q.write_venues, _json([build_listed_venue(venue) for venue in venues.values()]))
        await tx.execute(Q.write_listings, _json(listings))
        listed = {listing.event_id for listing in listings}
        await tx.execute(Q.forget_listings, [i for i in event_ids if i not in listed])
        await tx.execute(Q.forget_shows, event_ids, [row["show_id"] for row in rows])
        await tx.execute(Q.write_shows, _json([show for some in shows.values() for show in some]))
        await _count_words(tx, before, (word for listing in listings for word in listing.words.split(" ")))


async def _count_words(tx: Transaction, before: Iterable[str], after: Iterable[str]) -> None:
    uses = Counter(after)
    uses.subtract(Counter(before))
    changed = {word: count for word, count in uses.items() if count}
    if not changed:
        return
    rows = await tx.fetch(Q.count_known_words, list(changed), list(changed.values()))
    known = {row["word"] for row in rows}
    if new := [word for word in changed if word not in known]:
        keys = [" ".join(build_spelling_keys(word)) for word in new]
        await tx.execute(Q.add_words, new, [changed[word] for word in new], keys)
    if fewer := [word for word, count in changed.items() if count < 0]:
        await tx.execute(Q.forget_words, fewer)


def _json(rows: Sequence[msgspec.Struct]) -> str:
    return msgspec.json.encode(rows).decode()
