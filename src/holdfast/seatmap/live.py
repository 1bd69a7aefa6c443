"""Every change of the watched shows, from Redis to the viewers of this process.

    changes:{show} ──XREAD──► feed ──► one frame ──► every viewer's send        follow(), at an adaptive tick
    ends:{show}    ──release_expired.lua──► expired claims are released         look(), when the next one ends
    the ledger     ──► feed                                                     while Redis is away

One subscription and one connection per process; a frame is encoded once. Writing to viewers takes a share of
the process' time, and waits so long between two rounds that it stays a share: the tick.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence

from holdfast.catalogue import NoSuchShow
from holdfast.claim import pool_keys
from holdfast.config import Config
from holdfast.engines.cache import Cache
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.engines.open_redis import open_redis
from holdfast.engines.redis import Script
from holdfast.errors import Busy
from holdfast.seatmap.errors import TooManyStreams, TooManyViewers
from holdfast.seatmap.feed import (
    FRAMES_MAX,
    HEARTBEAT,
    Feed,
    MapChange,
    Viewer,
    epoch_of,
    follow_on,
    read_step,
    retry_frame,
)
from holdfast.seatmap.store import SeatMap

LOOK = Script("holdfast.seatmap", "release_expired")

LINKS_MAX = 3
BLOCK_MS_MAX = 200  # a wait for changes; a show that is watched for the first time joins the next one
STEPS_MAX = 500  # of one show in one round
TICK_MIN_S, TICK_MAX_S = 0.02, 0.25
PAUSE_FOR_WORK = 1.5  # for a second of writing, so many without: two fifths of a core, or a longer tick
SLICE = 128  # viewers written to before others get their turn
HEARTBEAT_S = 15.0
LOOK_S = 2.0  # at the latest: Redis may have lost its data without notice
LOOK_AFTER_HOLD_S = 0.5  # then the end of a new hold is known, and looked for when it comes
LOOKS_MAX = 200
AWAY_PAUSE_S = 0.5
AHEAD_S_MAX = 5.0  # a version that is not reached within this was invented
PAUSE_S, UNWATCHED_PAUSE_S = 0.05, 0.25  # of both jobs, with viewers and without
LINGER_S = 10.0  # a feed without viewers is dropped after this: viewers come back
REFUSED_S = 5
RETRIES_MS = (500, 700, 900, 1100, 1300, 1500, 1700, 1900)  # dealt out: not everybody comes back at once


class LiveMaps:
    def __init__(self, seatmap: SeatMap, config: Config) -> None:
        # Links of our own: a wait for changes takes one for as long as it lasts.
        timeout_s = config.redis_timeout_ms / 1000
        self._redis = open_redis(config.redis_url, links_max=LINKS_MAX, timeout_s=timeout_s)
        self._seatmap = seatmap
        self._viewers_max = config.viewers_max
        self._per_address_max = config.viewers_per_address_max
        self._block_ms = min(BLOCK_MS_MAX, max(1, config.redis_timeout_ms // 2))
        self._feeds: dict[int, Feed] = {}
        self._opening: Cache[int, Feed] = Cache(self._open, fresh_s=0, stale_max_s=0)
        self._places: Counter[str] = Counter()  # streams of an address
        self._count = self._number = 0
        self._away_until = 0.0
        self.is_draining = False

    # ── viewers ──────────────────────────────────────────────────────────────────────────────────────────

    def take_place(self, address: str) -> int:
        """Room for one more viewer, to be given back, and their number; or a refusal."""
        self._refuse_if_draining()
        if self._count >= self._viewers_max:
            raise TooManyViewers(limit=self._viewers_max, retry_after_s=REFUSED_S)
        if self._per_address_max and self._places[address] >= self._per_address_max:
            raise TooManyStreams(limit=self._per_address_max, retry_after_s=REFUSED_S)
        self._places[address] += 1
        self._count += 1
        self._number += 1
        metrics.set("viewers", self._count)
        return self._number

    def give_place_back(self, address: str) -> None:
        self._count -= 1
        self._places[address] -= 1
        if not self._places[address]:
            del self._places[address]
        metrics.set("viewers", self._count)

    def viewers_of(self, show_id: int) -> int:
        """Who follow the live map of this show in this process."""
        feed = self._feeds.get(show_id)
        return 0 if feed is None else len(feed.viewers) + len(feed.ahead)

    async def watch(self, show_id: int, since: int) -> Feed:
        """The show's feed, with as much of its past as it takes to continue from `since`, if there is."""
        # Opened once for all viewers that arrive together: each feed reads the whole map.
        feed = self._feeds.get(show_id) or await self._opening.renew(show_id)
        is_past = since < feed.frames.base and epoch_of(since) == epoch_of(feed.frames.base)
        if is_past and not feed.has_past:
            await self._read_past(feed)
        return feed

    def join(self, feed: Feed, viewer: Viewer) -> bytes:
        """Add a viewer; its first frames. Without an await in between, or it would miss a change."""
        self._refuse_if_draining()
        self._feeds.setdefault(feed.show_id, feed)
        frames = feed.first_frames(viewer.since)
        if frames is None:
            feed.ahead[viewer] = time.monotonic()
        else:
            feed.viewers[viewer] = None
        return frames or b""

    def leave(self, feed: Feed, viewer: Viewer) -> None:
        feed.viewers.pop(viewer, None)
        feed.ahead.pop(viewer, None)
        feed.left_at = time.monotonic()

    def drain(self) -> None:
        """The process is about to stop: viewers are sent away, and come back elsewhere."""
        self.is_draining = True
        gone = [viewer for feed in self._feeds.values() for viewer in (*feed.viewers, *feed.ahead)]
        for number, viewer in enumerate(gone):
            viewer.end(retry(number))

    def _refuse_if_draining(self) -> None:
        if self.is_draining:
            raise Busy(retry_after_s=1)

    async def close(self) -> None:
        await self._redis.close()

    # ── jobs ───────────────────────────────────────────────────────────────────────────────────────────

    def pause_s(self) -> float:
        """Of both jobs: a process without viewers looks rarely whether there are some."""
        return PAUSE_S if self._feeds else UNWATCHED_PAUSE_S

    async def follow(self) -> int:
        """One round: wait for changes, send them, and wait a tick. 0 if there are no viewers."""
        self._forget_unwatched()
        if not self._feeds:
            return 0
        try:
            spent_s, away = await self._send_changes()
        except EngineDown:
            spent_s, away = await self._send_from_postgres(list(self._feeds.values())), []
            await asyncio.sleep(AWAY_PAUSE_S)
        now = time.monotonic()
        if away and now >= self._away_until:  # a node of a cluster; viewers of other shows do not wait for it
            self._away_until = now + AWAY_PAUSE_S
            spent_s += await self._send_from_postgres(away)
        for feed in list(self._feeds.values()):
            self._admit_waiting(feed, now)
            if now - feed.sent_at >= HEARTBEAT_S:
                spent_s += await self._send_to_all(feed, HEARTBEAT)
        await asyncio.sleep(min(TICK_MAX_S, max(TICK_MIN_S, spent_s * PAUSE_FOR_WORK)))
        return 1

    async def look(self) -> int:
        """Release expired claims of watched shows; rebuild lost maps."""
        now = time.monotonic()
        due = [feed for feed in self._feeds.values() if feed.look_at <= now][:LOOKS_MAX]
        for feed in due:
            try:
                left_ms = await self._look(feed)
                if left_ms < 0:
                    await self._seatmap.rebuild(feed.show_id, "missing")
            except EngineDown:  # follow() serves the viewers from PostgreSQL meanwhile
                feed.look_at = time.monotonic() + AWAY_PAUSE_S
            except NoSuchShow:  # it is gone, and its viewers keep what they saw last
                feed.look_at = time.monotonic() + LINGER_S
        return 0

    # ── from the engines ─────────────────────────────────────────────────────────────────────────────────

    async def _open(self, show_id: int) -> Feed:
        feed = Feed(await self._seatmap.snapshot(show_id))
        feed.sent_at = feed.left_at = time.monotonic()
        return self._feeds.setdefault(show_id, feed)

    async def _read_past(self, feed: Feed) -> None:
        try:
            entries = await self._redis.call(
                "XREVRANGE", changes_key(feed.show_id), f"{feed.frames.base}-0", "-", "COUNT", FRAMES_MAX
            )
        except EngineDown:  # a snapshot does as well
            return
        feed.has_past = True
        feed.frames.put_before([read_step(entry_id, fields[1]) for entry_id, fields in reversed(entries)])

    async def _look(self, feed: Feed) -> int:
        keys, args = pool_keys(feed.show_id), (round(LOOK_S * 1000),)
        left_ms = int(await self._redis.script(LOOK, keys, args))
        feed.look_at = time.monotonic() + max(left_ms, 0) / 1000
        return left_ms

    async def _send_changes(self) -> tuple[float, list[Feed]]:
        """Send what the stream has after the version of each feed; the seconds it took, and the feeds whose
        stream cannot be reached."""
        by_key = {changes_key(feed.show_id): feed for feed in self._feeds.values()}
        after = {key: f"{feed.version}-0" for key, feed in by_key.items()}
        read = await self._redis.read_streams(after, count=STEPS_MAX, block_ms=self._block_ms)
        spent_s = 0.0
        for key, entries in read.found:
            steps = [read_step(entry_id, fields[1]) for entry_id, fields in entries]
            spent_s += await self._go_on(by_key[key], steps)
        return spent_s, [by_key[key] for key in read.unread]

    async def _go_on(self, feed: Feed, steps: Sequence[MapChange]) -> float:
        if not follow_on(
            feed.version, steps
        ):  # rebuilt, or a gap: the stream has dropped steps that we missed
            return await self._send_to_all(feed, feed.turn_to(await self._seatmap.newest(feed.show_id)))
        if any("H" in step.changes.values() for step in steps):
            feed.look_at = min(feed.look_at, time.monotonic() + LOOK_AFTER_HOLD_S)
        metrics.add("changes_sent_total", len(steps) * len(feed.viewers))
        return await self._send_to_all(feed, feed.take(steps))

    async def _send_from_postgres(self, feeds: Sequence[Feed]) -> float:
        spent_s = 0.0
        for feed in feeds:
            try:
                spent_s += await self._send_to_all(
                    feed, feed.turn_to(await self._seatmap.snapshot(feed.show_id))
                )
            except (EngineDown, NoSuchShow):
                continue
        return spent_s

    # ── to the viewers ───────────────────────────────────────────────────────────────────────────────────

    async def _send_to_all(self, feed: Feed, body: bytes) -> float:
        """The same bytes to every viewer; the seconds of work it was."""
        if not body:
            return 0.0
        took = 0.0
        viewers = list(feed.viewers)  # later viewers have it in their first frames
        for first in range(0, len(viewers), SLICE):
            started = time.process_time()  # not by the wall: on a busy machine it would wait twice
            for viewer in viewers[first : first + SLICE]:
                viewer.push(body)
            await asyncio.sleep(0)  # the loop writes to the sockets now: most of what it costs
            took += time.process_time() - started
        feed.sent_at = time.monotonic()
        return took

    def _admit_waiting(self, feed: Feed, now: float) -> None:
        """Admit viewers that had seen more than this process, once it has caught up with them."""
        for viewer, since_s in list(feed.ahead.items()):
            frames = feed.first_frames(viewer.since)
            if frames is None and now - since_s > AHEAD_S_MAX:
                frames = feed.snapshot_frame
            if frames is not None:
                del feed.ahead[viewer]
                feed.viewers[viewer] = None
                if frames:
                    viewer.push(frames)

    def _forget_unwatched(self) -> None:
        now = time.monotonic()
        for feed in list(self._feeds.values()):
            if not feed.viewers and not feed.ahead and now - feed.left_at > LINGER_S:
                del self._feeds[feed.show_id]
                self._opening.drop(feed.show_id)


def changes_key(show_id: int) -> str:
    return pool_keys(show_id)[4]


def retry(number: int) -> bytes:
    """When to come back: another time for the next one."""
    return RETRY_FRAMES[number % len(RETRY_FRAMES)]


RETRY_FRAMES = [retry_frame(wait_ms) for wait_ms in RETRIES_MS]
