"""Runs hold.lua. The only module in holds that talks to Redis."""

from collections import Counter
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import msgspec
import structlog
from msgspec.structs import astuple
from redis.exceptions import ResponseError

from holdfast.bookings import HoldLimits
from holdfast.claim import LimitReached, MapMissing, NotEnoughUnits, PoolClosed, UnitsTaken, pool_keys
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.engines.redis import Redis, Script
from holdfast.holds.choice import BestAvailable
from holdfast.holds.request import (
    AlreadyHeld,
    CoolingDown,
    HasHold,
    Held,
    HoldOutcome,
    HoldRequest,
    NamedSeats,
    Orphan,
    RangeFull,
    StandingPlaces,
)

log = structlog.get_logger(__name__)

HOLD = Script("holdfast.holds", "hold")

pack = msgspec.msgpack.encode
unpack = msgspec.msgpack.decode


class HoldScripts:
    def __init__(self, redis: Redis, limits: HoldLimits, *, claim_grace_ms: int) -> None:
        self._redis = redis
        self._limits = (*astuple(limits)[:-1], limits.cooldown_s * 1000)
        # A claim outlives its row: if it ended first, Redis would offer seats that PostgreSQL still refuses.
        self._claim_grace_ms = claim_grace_ms

    async def hold_many(self, requests: Sequence[HoldRequest]) -> list[HoldOutcome | EngineDown]:
        """One script call per show, all in one round trip (of a cluster, one per node): requests for the
        same show travel together."""
        by_show: dict[int, list[int]] = {}
        for position, request in enumerate(requests):
            by_show.setdefault(request.show.show_id, []).append(position)
        began = perf_counter()
        # hold.lua compares the run id of its server with the map's: a restarted server must not sell from a
        # map that another process of it wrote, because it may have lost claims.
        calls = [
            (pool_keys(show_id), (self._packed(requests, positions), *self._limits))
            for show_id, positions in by_show.items()
        ]
        replies = await self._redis.scripts(HOLD, calls)
        outcomes: list[HoldOutcome | EngineDown] = [MapMissing()] * len(requests)
        counts: Counter[str] = Counter()
        for (show_id, positions), reply in zip(by_show.items(), replies, strict=True):
            if reply == b"map_missing":
                counts["map_missing"] += len(positions)
            elif isinstance(reply, EngineDown):  # of a cluster, the node of this show
                counts["down"] += len(positions)
                for position in positions:
                    outcomes[position] = reply
            elif isinstance(reply, ResponseError):
                # Its keys are not what the scripts expect. Other shows of the batch are not concerned.
                log.error("a map cannot be read", show_id=show_id, error=str(reply))
                counts["broken"] += len(positions)
            else:
                epoch, _, answers = unpack(reply)
                counts.update([answer[0] for answer in answers])
                for position, answer in zip(positions, answers, strict=True):
                    outcomes[position] = _parse_outcome(epoch, answer)
        for word, count in counts.items():
            metrics.add("holds_total", count, outcome=word)
        metrics.observe("hold_batch_size", len(requests))
        metrics.observe("hold_batch_seconds", perf_counter() - began)
        return outcomes

    def _packed(self, requests: Sequence[HoldRequest], positions: Sequence[int]) -> bytes:
        return pack([self._arguments(requests[i]) for i in positions])

    def _arguments(self, request: HoldRequest) -> tuple[object, ...]:
        show, selection = request.show, request.selection
        ttl_ms = show.hold_ttl_s * 1000 + self._claim_grace_ms
        first = (request.claim_id, request.owner_id, ttl_ms, show.owner_seats_max, request.is_guest)
        match selection:
            case NamedSeats():
                seats = selection.seats
                return ("seats", *first, len(seats), seats, selection.orphan_rule, selection.runs)
            case StandingPlaces(start, end, count):
                return ("places", *first, count, start, end)
            case BestAvailable(count, category, prefer, accessible, together):
                number = -1 if category is None else category
                return ("best", *first, count, number, prefer, accessible, together)


def _parse_outcome(epoch: int, answer: list[Any]) -> HoldOutcome:
    match answer:
        case ["taken", seats]:
            return UnitsTaken(tuple(seats))
        case ["held", seats, better, together, single]:
            return Held(tuple(seats), epoch, tuple(better) if better else None, together, single)
        case ["not_enough", free]:
            return NotEnoughUnits(free)
        case ["already_held", seats]:
            return AlreadyHeld(tuple(seats), epoch)
        case ["over_limit", has]:
            return LimitReached(has)
        case ["orphan", better]:
            return Orphan(tuple(better))
        case ["closed"]:
            return PoolClosed()
        case ["cooling", wait_ms]:
            return CoolingDown(wait_ms)
        case ["has_hold"]:
            return HasHold()
        case ["range_full"]:
            return RangeFull()
    raise AssertionError(f"hold.lua returned {answer!r}")
