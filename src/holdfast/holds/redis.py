"""The only file in holds/ that talks to Redis."""

from collections import Counter
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import msgspec

from holdfast.claim import pool_keys
from holdfast.engines.batch import Batcher
from holdfast.engines.lua import Script
from holdfast.engines.metrics import metrics
from holdfast.engines.redis import Redis
from holdfast.holds.outcome import (
    Again,
    Ask,
    Best,
    Few,
    Held,
    Limit,
    Orphan,
    Outcome,
    Places,
    Seats,
    Shut,
    Taken,
    Unbuilt,
)

HOLD = Script("holdfast.holds", "hold")

pack = msgspec.msgpack.encode
unpack = msgspec.msgpack.decode


class HoldScripts:
    """hold() for a caller, hold_many() for the wire. Same outcomes; the tests run both."""

    def __init__(self, redis: Redis, *, batch_max: int, waiting_max: int) -> None:
        self._redis = redis
        self.hold: Batcher[Ask, Outcome] = Batcher(
            self.hold_many, batch_max=batch_max, waiting_max=waiting_max
        )

    async def hold_many(self, asks: Sequence[Ask]) -> list[Outcome]:
        """One script call a show; asks of one show travel together."""
        by_show: dict[int, list[int]] = {}
        for place, ask in enumerate(asks):
            by_show.setdefault(ask.show_id, []).append(place)
        outcomes: list[Outcome] = [Unbuilt()] * len(asks)
        began = perf_counter()
        async with self._redis.lease() as link:
            for show_id, places in by_show.items():
                packed = pack([arguments(asks[place]) for place in places])
                reply = await link.script(HOLD, pool_keys(show_id), (link.run_id, packed))
                if reply != b"unbuilt":
                    epoch, _, answers = unpack(reply)
                    for place, one in zip(places, answers, strict=True):
                        outcomes[place] = outcome(epoch, one)
        for kind, count in Counter(map(type, outcomes)).items():
            metrics.add("holds_total", count, outcome=kind.__name__.lower())
        metrics.observe("hold_batch_size", len(asks))
        metrics.observe("hold_batch_seconds", perf_counter() - began)
        return outcomes


def arguments(ask: Ask) -> tuple[object, ...]:
    first = (ask.claim_id, ask.owner_id, ask.life_ms, ask.limit)
    match ask.what:
        case Seats(seats, rule, runs):
            return ("seats", *first, seats, rule, runs)
        case Places(start, end, count):
            return ("places", *first, start, end, count)
        case Best(count, category, prefer, accessible, together):
            return ("best", *first, count, -1 if category is None else category, prefer, accessible, together)


def outcome(epoch: int, reply: list[Any]) -> Outcome:
    match reply:
        case ["taken", seats]:
            return Taken(tuple(seats))
        case ["held", seats, better, together, single]:
            return Held(tuple(seats), epoch, tuple(better) if better else None, together, single)
        case ["few", free]:
            return Few(free)
        case ["again", seats]:
            return Again(tuple(seats), epoch)
        case ["limit", has]:
            return Limit(has)
        case ["orphan", better]:
            return Orphan(tuple(better))
        case ["shut"]:
            return Shut()
    raise AssertionError(f"hold.lua answered {reply!r}")
