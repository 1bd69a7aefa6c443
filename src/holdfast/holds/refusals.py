"""What a client gets for a "no" of Redis or of PostgreSQL. No I/O."""

from typing import assert_never

from holdfast.bookings import OpeningRefused
from holdfast.claim import LimitReached, NotEnoughUnits, PoolClosed
from holdfast.config import Config
from holdfast.errors import Busy, KeyReused, Refusal
from holdfast.holds.errors import CoolDown, HoldOpen, LeavesOrphan, OverLimit, RangeLimit, SoldOut
from holdfast.holds.request import (
    CoolingDown,
    HasHold,
    HoldRequest,
    Orphan,
    OverALimit,
    RangeFull,
    not_on_sale,
)

RANGE_RETRY_S = 30  # a seat may come free at any moment, and at the latest when the holds end
HOUR_S = 3600


def refuse_claim(
    request: HoldRequest, outcome: Orphan | OverALimit | NotEnoughUnits | PoolClosed, config: Config
) -> Refusal:
    match outcome:
        case NotEnoughUnits(free):
            return SoldOut(free=free)
        case Orphan(better):
            return LeavesOrphan(better=[request.show.layout.labels[seat] for seat in better])
        case LimitReached(has):
            return OverLimit(limit=request.show.owner_seats_max, has=has)
        case HasHold():
            return HoldOpen()
        case RangeFull():
            return _range_limit(request, config)
        case CoolingDown(wait_ms):
            return _cool_down(-(-wait_ms // 1000), config)
        case PoolClosed():
            return not_on_sale(request)
    assert_never(outcome)


def refuse_opening(request: HoldRequest, outcome: OpeningRefused, config: Config) -> Refusal | None:
    """None: the catalogue was outdated or the sale not marked, and the request is tried again."""
    match outcome.reason:
        case "limit":
            return OverLimit(limit=request.show.owner_seats_max)
        case "has_hold":
            return HoldOpen()
        case "range_full":
            return _range_limit(request, config)
        case "cooling":
            return _cool_down(config.lapse_cooldown_s, config)
        case "closed":
            return not_on_sale(request)
        case "locked":
            return Busy(retry_after_s=1)
        case "key_reused":
            return KeyReused()
    return None


def _range_limit(request: HoldRequest, config: Config) -> RangeLimit:
    limit, window_s = config.range_seats_max, request.show.hold_ttl_s
    return RangeLimit(policy="range", limit=limit, window_s=window_s, retry_after_s=RANGE_RETRY_S)


def _cool_down(wait_s: int, config: Config) -> CoolDown:
    limit = config.lapses_per_hour_max
    return CoolDown(policy="lapses", limit=limit, window_s=HOUR_S, retry_after_s=max(1, wait_s))
