"""A pool of units, as one process uses it: claim, extend, release, commit, free, read, follow.

Concurrent calls share round trips. A lost map is rebuilt before anything is granted from it. A lost reply
means that the outcome is unknown: the same requests are sent again with the same ids, and the same id gives
the same claim.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from itertools import count
from secrets import token_hex
from typing import TypedDict, TypeVar, Unpack

from holdfast.claim.changes import follow
from holdfast.claim.claim import (
    Action,
    Change,
    Claim,
    Claimed,
    ClaimRequest,
    MapMissing,
    PoolMap,
    PoolOutcome,
    Settlement,
)
from holdfast.claim.rebuilder import Rebuilder
from holdfast.claim.store import Claims, PoolId
from holdfast.engines.batch import Batcher
from holdfast.engines.errors import EngineDown
from holdfast.engines.redis import DOWN_FOR_S, Redis

TRIES_MAX = 4
PAUSE_S = DOWN_FOR_S + 0.01  # sooner than that, no connection is tried
WAITING_MAX = 20_000  # calls per pool; more raise Busy
NO_LIMIT = 2**53  # units
ID_LENGTH_MAX = 200

Found = TypeVar("Found")


class ClaimOptions(TypedDict, total=False):
    limit: int | None
    claim_id: str | None


class Pool:
    """Made by `Pools.open`. Any number of tasks may use it at once."""

    def __init__(
        self, key: PoolId, size: int, claims: Claims, *, rebuilder: Rebuilder, watchers: Redis, batch_max: int
    ) -> None:
        self.size = size
        self._key = key
        self._claims = claims
        self._rebuilder = rebuilder
        self._watchers = watchers
        self._ids = map((token_hex(8) + "-{:x}").format, count())  # no two processes share one
        self._claiming: Batcher[ClaimRequest, PoolOutcome] = Batcher(
            self._claim_many, batch_max=batch_max, waiting_max=WAITING_MAX
        )
        self._settling: Batcher[Settlement, bool] = Batcher(
            self._settle_many, batch_max=batch_max, waiting_max=WAITING_MAX
        )

    async def claim(
        self,
        units: Sequence[int],
        *,
        owner: int,
        ttl_s: float,
        limit: int | None = None,
        claim_id: str | None = None,
    ) -> PoolOutcome:
        """Claim all of these units, or none, for `ttl_s` seconds.

        `limit`: units that the owner may have in the pool, claimed and committed. `claim_id`: the same id
        gives the same claim, so a client may repeat its request.
        """
        request = ClaimRequest(
            next(self._ids) if claim_id is None else _check_id(claim_id),
            _check_owner(owner),
            _to_ms(ttl_s),
            NO_LIMIT if limit is None else limit,
            self._check_units(units),
        )
        return await self._claiming(request)

    async def claim_any(
        self,
        count: int,
        *,
        owner: int,
        ttl_s: float,
        first: int = 0,
        end: int | None = None,
        **options: Unpack[ClaimOptions],
    ) -> PoolOutcome:
        """Claim any `count` free units from `first` up to, but not including, `end`: the lowest ones.

        Options: `limit` and `claim_id`, as for `claim`.
        """
        end = self.size if end is None else end
        if count < 1 or not 0 <= first < end <= self.size:
            raise ValueError(f"cannot claim {count} of the units {first} to {end} in a pool of {self.size}")
        limit, claim_id = options.get("limit"), options.get("claim_id")
        request = ClaimRequest(
            next(self._ids) if claim_id is None else _check_id(claim_id),
            _check_owner(owner),
            _to_ms(ttl_s),
            NO_LIMIT if limit is None else limit,
            (),
            first,
            end,
            count,
        )
        return await self._claiming(request)

    async def extend(self, claim: Claim, *, ttl_s: float | None) -> bool:
        """The claim ends in `ttl_s` seconds from now; None: not by itself. False: it no longer exists."""
        return await self._settle("extend", claim, 0 if ttl_s is None else _to_ms(ttl_s))

    async def release(self, claim: Claim) -> bool:
        """Its units are free again. False: it had ended before, and nothing was changed; or it was released
        by an attempt whose reply was lost."""
        return await self._settle("release", claim)

    async def commit(self, claim: Claim) -> None:
        """The durable store has the row: its units do not come free until `free`.

        The durable store has decided, so this works even if the claim has ended or was lost with the map.
        Another claim on one of its units is removed.
        """
        await self._settle("commit", claim)

    async def free(self, committed: Claim | Sequence[int]) -> bool:
        """The durable store has given the row back: its units are free again. False: they were not committed
        (by this claim), and nothing was changed. Without the claim, all claims of the pool are searched for
        the units."""
        if isinstance(committed, Claim):
            return await self._settle("free", committed)
        units = self._check_units(committed)
        return await self._until_answered(lambda: self._claims.free_units(self._key, units)) > 0

    async def read(self, *, with_claims: bool = False) -> PoolMap:
        """The state of every unit now, without expired claims."""
        found = await self._read(0, with_claims=with_claims)
        assert isinstance(found, PoolMap)
        return found

    def changes(self, since: int = 0) -> AsyncGenerator[Change | PoolMap, None]:
        """Every change after the version `since`, without end. A `PoolMap` stands for all changes before it:
        it comes first for a version that is unknown or too long ago, and after a rebuild."""
        return follow(self._watchers, self._key, self._read, since)

    async def rebuild(self) -> None:
        """Replace the map with what `load` returns, as if Redis had lost it. Other claims end."""
        await self._rebuilder.rebuild(replace=True)

    # ── batches ──────────────────────────────────────────────────────────────────────────────────────────

    async def _claim_many(self, requests: Sequence[ClaimRequest]) -> list[PoolOutcome]:
        async def claim() -> list[PoolOutcome] | None:
            outcomes = await self._claims.claim_many(self._key, requests)
            found = [outcome for outcome in outcomes if not isinstance(outcome, MapMissing)]
            return found if len(found) == len(requests) else None  # one map for all of them, or none

        outcomes = await self._until_answered(claim)
        for outcome in outcomes:
            if isinstance(outcome, Claimed):  # all of a batch have the same
                self._rebuilder.note(outcome.fence)
                break
        return outcomes

    def _check_units(self, units: Sequence[int]) -> tuple[int, ...]:
        if not units or min(units) < 0 or max(units) >= self.size:
            raise ValueError(f"name units from 0 to {self.size - 1}, not {list(units)}")
        return tuple(units)

    async def _settle(self, action: Action, claim: Claim, ms: int = 0) -> bool:
        return await self._settling(Settlement(action, claim, ms))

    async def _settle_many(self, settlements: Sequence[Settlement]) -> list[bool]:
        return await self._until_answered(lambda: self._claims.settle_each(self._key, settlements))

    async def _read(self, known: int, *, with_claims: bool = False) -> PoolMap | int:
        async def read() -> PoolMap | int | None:
            return await self._claims.read(self._key, known=known, with_claims=with_claims)

        found: PoolMap | int = await self._until_answered(read)
        self._rebuilder.note(found if isinstance(found, int) else found.version)
        return found

    async def _until_answered(self, step: Callable[[], Awaitable[Found | None]]) -> Found:
        """The result of a step that finds a map. None: it found none, and the map is rebuilt first.

        A request that was sent and got no reply may have been carried out. It is sent again: claims by their
        ids and settlements by their claims have the same effect twice as once. (But a commit that comes again
        after another process has freed that claim takes its units back. The map then errs on the safe side,
        until it is rebuilt.) A request that was never sent is not repeated: its callers learn at once that
        Redis is down, and nothing has happened.
        """
        lost: EngineDown | None = None
        for _ in range(TRIES_MAX):
            try:
                found = await step()
                if found is not None:
                    return found
                await self._rebuilder.rebuild()
            except EngineDown as down:
                if not down.unknown and lost is None:
                    raise
                lost = lost or down  # from here on unknown, even if later tries do not reach the server
                await asyncio.sleep(PAUSE_S)
        raise lost or EngineDown("redis")


def _check_id(claim_id: str) -> str:
    """Ids that scripts would read in another way are refused: `|` separates, `@` and `~` have meanings."""
    if not claim_id or len(claim_id) > ID_LENGTH_MAX or claim_id[0] == "~" or set(claim_id) & set("|@"):
        raise ValueError(f"a claim id has 1 to {ID_LENGTH_MAX} characters, none of |@ and no ~ at its start")
    return claim_id


def _check_owner(owner: int) -> int:
    if owner < 0:
        raise ValueError(f"an owner is a number from 0, not {owner}")
    return owner


def _to_ms(ttl_s: float) -> int:
    if not ttl_s > 0:
        raise ValueError(f"a time to live is more than 0 seconds, not {ttl_s}")
    return max(1, round(ttl_s * 1000))
