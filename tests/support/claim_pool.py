"""A pool for the tests: twenty units that mean nothing, and short words for what is done with them."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from holdfast.claim import (
    Action,
    Blueprint,
    Claim,
    Claimed,
    ClaimOutcome,
    ClaimRequest,
    Claims,
    PoolMap,
    Settlement,
    pool_keys,
)
from holdfast.engines.redis import Redis

_pool_ids = count(5_000_000_000)  # far from every show
_claim_ids = count(1)
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Pool:
    claims: Claims
    redis: Redis
    pool_id: int

    async def build(
        self,
        states: str = "A" * 20,
        *,
        epoch: int = 1,
        window_ms: tuple[int, int] = (-1000, HOUR_MS),
        fields: Mapping[str, bytes] | None = None,
    ) -> bool:
        plan = Blueprint(
            epoch=epoch,
            units=states.encode(),
            opens_in_ms=window_ms[0],
            closes_in_ms=window_ms[1],
            claims=(),
            owners={},
            fields=fields or {"note": b""},
        )
        return await self.claims.build(self.pool_id, plan)

    async def ask(self, *units: int, **wish: Any) -> ClaimOutcome:
        """Claim these; or, with count=, any so many of `first` to `end`."""
        defaults: dict[str, Any] = {
            "claim_id": f"c{next(_claim_ids)}",
            "owner": 1,
            "ttl_ms": 60_000,
            "limit": 10,
        }
        (outcome,) = await self.claims.claim_many(
            self.pool_id, [ClaimRequest(units=units, **(defaults | wish))]
        )
        return outcome

    async def claim(self, *units: int, **wish: Any) -> Claim:
        outcome = await self.ask(*units, **wish)
        assert isinstance(outcome, Claimed), outcome
        return outcome.claim

    async def settle(self, action: Action, claim: Claim, ms: int = 0) -> None:
        assert await self.claims.settle_many(self.pool_id, [Settlement(action, claim, ms)]) is not None

    async def map(self) -> PoolMap:
        found = await self.claims.read(self.pool_id, with_claims=True)
        assert isinstance(found, PoolMap)
        return found

    async def states(self) -> str:
        return (await self.map()).units.decode()

    async def has(self, owner: int) -> int:
        """What the pool counts as this owner's."""
        return int(await self.redis.call("HGET", self.key("owners"), owner) or 0)

    async def changes(self) -> list[tuple[int, str]]:
        """(version, what changed) of everything in the stream."""
        entries = await self.redis.call("XRANGE", self.key("changes"), "-", "+")
        return [(int(name.split(b"-")[0]), fields[1].decode()) for name, fields in entries]

    async def now_ms(self) -> int:
        """Redis' own clock: the one that ends claims."""
        seconds, micros = await self.redis.call("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    def key(self, name: str) -> str:
        return next(key for key in pool_keys(self.pool_id) if key.startswith(name))


def a_pool(redis: Redis) -> Pool:
    """An unused id; there is no map yet."""
    return Pool(Claims(redis), redis, next(_pool_ids))
