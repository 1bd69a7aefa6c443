"""Seat maps: read from Redis, or from PostgreSQL while Redis is down; rebuilt when lost (R7, R19)."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import replace

from holdfast.bookings import (
    VERSIONS_PER_EPOCH,
    Bookings,
    LockedSale,
    bookings_on_map,
    build_seat_states,
    lapses_on_map,
    lock_sale_for_rebuild,
    raise_epoch,
)
from holdfast.catalogue import Catalogue, NoSuchShow
from holdfast.claim import Blueprint, Claims, PoolMap
from holdfast.engines.aside import run_aside
from holdfast.engines.cache import Cache
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import Postgres
from holdfast.layouts import Layout
from holdfast.seatmap.contents import MapContents
from holdfast.seatmap.snapshot import Offered, Snapshot, build_plans

LEDGER_FRESH_S = 1.0  # while Redis is down, PostgreSQL builds a map at most this often
MAPS_MAX = 100_000  # cached shows; their bytes are limited, and the one that changed first is dropped first
TRIES_MAX = 5
REBUILDS_AT_ONCE_MAX = 2
REST, REST_MAX_S = 4, 0.25  # after a rebuild its show rests so many times as long: time for other shows
OFFERED_FOR_S = 1.0  # alternatives of an earlier map; then better ones that came free are found, too
PLANS_MAX = 32  # layouts; half a megabyte each for a stadium


class SeatMap:
    def __init__(
        self,
        catalogue: Catalogue,
        bookings: Bookings,
        claims: Claims,
        postgres: Postgres,
        *,
        fresh_s: float,
        bytes_max: int,
    ) -> None:
        self._catalogue = catalogue
        self._bookings = bookings
        self.claims = claims
        self._postgres = postgres
        self._snapshots: Cache[int, Snapshot] = Cache(
            self._load, fresh_s=fresh_s, stale_max_s=0, size_max=MAPS_MAX
        )
        self._last: dict[int, Snapshot] = {}  # in order of change, the most recent at the end
        self._last_bytes, self._bytes_max = 0, bytes_max
        catalogue.on_layout_evicted = self._forget_layout
        self._from_ledger: Cache[int, Snapshot] = Cache(
            self._load_from_ledger, fresh_s=LEDGER_FRESH_S, stale_max_s=0, size_max=MAPS_MAX
        )
        self.fresh = self._snapshots.peek  # the map if it is fresh enough to be given at once
        self._rebuilds: Cache[int, int] = Cache(self._rebuild, fresh_s=0, stale_max_s=0)
        # A rebuild has a connection for its transaction and may need a second one for the catalogue: with
        # one rebuild per connection all of them would wait for each other.
        self._rebuilding = asyncio.Semaphore(REBUILDS_AT_ONCE_MAX)
        self._rests_until: dict[int, float] = {}  # by show
        # By hash of the layout; what hold.lua needs to choose seats: see choose.lua.
        self.plans: Cache[str, dict[str, bytes]] = Cache(
            self._load_plans, fresh_s=float("inf"), size_max=PLANS_MAX
        )

    async def snapshot(self, show_id: int) -> Snapshot:
        """At most `fresh_s` old; while both engines are down, the last one seen."""
        try:
            return await self._snapshots.get(show_id)
        except EngineDown:
            if last := self._last.get(show_id):
                return last
            raise

    async def newest(self, show_id: int) -> Snapshot:
        """Read now, however fresh the last one is."""
        return await self._snapshots.renew(show_id)

    async def snapshot_within(self, wait_s: float, show_id: int) -> Snapshot | None:
        """As snapshot(); None if that takes too long, or if no engine answers."""
        try:
            async with asyncio.timeout(wait_s):
                return await self._snapshots.get(show_id)
        except (EngineDown, TimeoutError):
            return None

    async def counts_many(self, show_ids: Iterable[int]) -> dict[int, dict[str, int]]:
        """Held, booked and blocked seats by code, for listings: one query for all."""
        return await self._bookings.counts_many(list(show_ids))

    async def free_categories(self, show_id: int, taken: int) -> frozenset[str]:
        """The categories with a free seat. `taken` seats too few to fill one: the map need not be read."""
        show = self._catalogue.recent_show(show_id) or await self._catalogue.show_on_sale(show_id)
        sizes = show.layout.category_sizes
        if taken < min(sizes.values()):
            return frozenset(sizes)
        snapshot = Snapshot(show_id, 0, await self._read_states(show_id, show.layout), show.layout)
        return frozenset(str(each["category"]) for each in snapshot.counts_by_category() if each["A"])

    async def _read_states(self, show_id: int, layout: Layout) -> bytes:
        """From Redis, or from PostgreSQL without marking the map: no viewer gets a version of this."""
        try:
            found = await self._read(show_id)
        except EngineDown:
            return build_seat_states(layout.seat_count, await self._bookings.live_bookings(show_id))
        return found.states if isinstance(found, Snapshot) else found.units

    async def rebuild(self, show_id: int, reason: str) -> int:
        """Rebuild the map from PostgreSQL, once for all callers in this process; its epoch."""
        metrics.add("map_rebuilds_total", reason=reason)
        return await self._rebuilds.renew(show_id)

    async def _load(self, show_id: int) -> Snapshot:
        show = self._catalogue.recent_show(show_id) or await self._catalogue.show_on_sale(show_id)
        try:
            found = await self._read(show_id)
        except EngineDown:
            return await self._from_ledger.get(show_id)
        if isinstance(found, Snapshot):
            return found
        last = self._last.get(show_id)
        if last is not None and found.version < last.version:
            # Redis came back with older data and is about to be rebuilt: viewers must not go back in time.
            return last
        # The hall has grown since the show was cached: with the old layout the new seats have no label.
        if len(found.units) != show.layout.seat_count:
            show = await self._catalogue.show_on_sale(show_id)
        return self._keep(Snapshot(show_id, found.version, found.units, show.layout))

    async def _read(self, show_id: int) -> PoolMap | Snapshot:
        """The map in Redis, or our last one if it has not changed."""
        for _ in range(TRIES_MAX):
            last = self._last.get(show_id)
            found = await self.claims.read(show_id, known=last.version if last else 0)
            if isinstance(found, PoolMap):
                return found
            if found is not None:
                assert last is not None, "read.lua returned 'same' without a known version"
                return last
            await self.rebuild(show_id, "missing")
        raise EngineDown("holds")

    async def _load_from_ledger(self, show_id: int) -> Snapshot:
        """Versions go on from the epoch the mark raised: above any map of Redis, below the next."""
        show = await self._catalogue.show_on_sale(show_id)
        # Marking raises the epoch: without it the versions below could be lower than those that viewers
        # have, and a Redis that comes back could go on selling from its old map.
        await self._bookings.mark_map_stale(show_id)
        sale = await self._bookings.sale(show_id)
        if sale is None:
            raise NoSuchShow(show=show_id)
        live = await self._bookings.live_bookings(show_id)
        version = sale.epoch * VERSIONS_PER_EPOCH + min(sale.age_ds, VERSIONS_PER_EPOCH - 1)
        return self._keep(
            Snapshot(show_id, version, build_seat_states(show.layout.seat_count, live), show.layout)
        )

    def _keep(self, snapshot: Snapshot) -> Snapshot:
        last = self._last.pop(snapshot.show_id, None)
        snapshot = replace(snapshot, offered=_carry_over(snapshot, last))
        # Two loads may finish in the other order: the older one must not replace the newer one.
        newest = snapshot if last is None or snapshot.version >= last.version else last
        self._last[snapshot.show_id] = newest
        self._last_bytes += newest.weight - (last.weight if last else 0)
        while self._last_bytes > self._bytes_max and len(self._last) > 1:
            self._drop(next(iter(self._last)))
        return newest

    def _drop(self, show_id: int) -> None:
        self._last_bytes -= self._last.pop(show_id).weight
        self._snapshots.drop(show_id)
        self._from_ledger.drop(show_id)

    def _forget_layout(self, layout: Layout) -> None:
        """Maps of this layout would keep it in memory."""
        for show_id in [show_id for show_id, last in self._last.items() if last.layout is layout]:
            self._drop(show_id)

    async def _rebuild(self, show_id: int) -> int:
        """The first one at once. A show that is rebuilt again and again gets a fifth of our time at most."""
        await asyncio.sleep(self._rests_until.get(show_id, 0) - time.monotonic())
        async with self._rebuilding:
            began = time.monotonic()
            try:
                return await self._replace_map(show_id)
            finally:
                now = time.monotonic()
                resting = {show: until for show, until in self._rests_until.items() if until > now}
                rest_s = min(REST * (now - began), REST_MAX_S)
                self._rests_until = resting | {show_id: now + rest_s}

    async def _replace_map(self, show_id: int) -> int:
        """Lock the sale against holds being opened, raise the epoch, read, publish, unlock.

        Everything that can be done before the lock is: holds of the show wait for as long as it lasts.
        """
        before = await self._bookings.sale(show_id)
        if before is None:
            raise NoSuchShow(show=show_id)
        show = await self._catalogue.show_at_revision(show_id, before.revision)
        fields = await self.plans.get(show.layout.hash)
        found, is_ours = await self.claims.epoch(show_id)
        async with self._postgres.transaction() as tx:
            sale = await lock_sale_for_rebuild(tx, show_id)
            if sale is None:
                raise NoSuchShow(show=show_id)
            is_done = sale.epoch > before.epoch or (is_ours and found == sale.epoch)
            if is_done and not sale.map_stale:
                return sale.epoch  # another process was faster
            if sale.revision != show.revision:
                # Changed a moment ago. The show may have grown, and the map needs a byte for every seat.
                show = await self._catalogue.show_at_revision(show_id, sale.revision)
                fields = await self.plans.get(show.layout.hash)
            # Above both: Redis may have a later epoch than PostgreSQL if an earlier rebuild published its
            # map and died before its commit.
            epoch = max(found, sale.epoch) + 1
            contents = MapContents(show.layout.seat_count)
            async for part in bookings_on_map(tx, show_id):
                contents.add(part)
            contents.lapses = await lapses_on_map(tx, show_id)
            await raise_epoch(tx, show_id, epoch)
            # Published before the commit that unlocks the sale: a hold that waited for the lock sees the
            # new epoch, knows that its claim is missing from this map, and adds it.
            if not await self.claims.build(show_id, _blueprint(epoch, sale, contents, fields)):
                raise EngineDown("holds")  # Redis has a later map: our epoch was read too early
        return epoch

    async def _load_plans(self, layout_hash: str) -> dict[str, bytes]:
        # Three orders of 50 000 seats take a tenth of a second.
        return await run_aside(build_plans, await self._catalogue.layout(layout_hash))


def _carry_over(snapshot: Snapshot, last: Snapshot | None) -> Offered:
    """The alternatives of the map before, unless they are old or of another layout."""
    now_s = time.monotonic()
    if last is None or last.layout is not snapshot.layout or now_s > last.offered.since_s + OFFERED_FOR_S:
        return Offered(now_s)
    return last.offered


def _blueprint(epoch: int, sale: LockedSale, contents: MapContents, fields: dict[str, bytes]) -> Blueprint:
    return Blueprint(
        epoch=epoch,
        units=contents.states,
        opens_in_ms=sale.opens_in_ms,
        closes_in_ms=0 if sale.is_closed else sale.closes_in_ms,
        claims=contents.claims,
        owners=contents.owners,
        fields=fields | ({"reserves": b"1"} if sale.has_waitlist else {}),
        lapses=contents.lapses,
    )
