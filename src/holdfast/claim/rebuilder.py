"""Rebuilds a map that Redis lost. Any number of processes may notice at once; one of them does it.

    begin_rebuild ─┬─► begun ─► load ─► rebuild ─┬─► published
                   │            (renewed          └─► refused: the permit is gone; from the start
                   │             meanwhile)
                   ├─► another process is at it: wait, then from the start
                   └─► there is a map by now

Which interleavings this prevents:
- Two processes load; one publishes and grants claims; the other would replace its map and lose them. There is
  one permit, and publishing uses it up.
- A process stops for a minute between loading and publishing, and Redis loses a second map meanwhile. Its
  permit was lost with that map: the outdated contents are refused, and it loads again.
- A process dies while it loads: its permit ends after `LEASE_MS`, and another process begins.
"""

import asyncio
from collections.abc import Awaitable, Callable
from secrets import token_hex
from typing import Literal

from holdfast.claim.claim import Blueprint, Contents
from holdfast.claim.store import Claims, PoolId

LEASE_MS = 2000  # of the permit: a process that dies while it loads costs the others this long
RENEW_S = 0.5
LOOK_S = 0.05  # between two looks at whether another process has finished

Load = Callable[[], Awaitable[Contents]]
Plan = Callable[[Contents], Blueprint]


class Rebuilder:
    def __init__(self, claims: Claims, key: PoolId, load: Load | None, plan: Plan) -> None:
        self._claims = claims
        self._key = key
        self._load = load
        self._plan = plan
        self._turn = asyncio.Lock()
        self.version = 0  # the highest this process has seen: a new map begins above it

    def note(self, version: int) -> None:
        self.version = max(self.version, version)

    async def rebuild(self, *, replace: bool = False) -> None:
        """Return when there is a map. Errors of `load` are raised: no map is better than a wrong one."""
        async with self._turn:  # callers of this process wait here; the first one rebuilds for all
            while True:
                token = token_hex(8)
                how: Literal["begin", "replace"] = "replace" if replace else "begin"
                begun = await self._claims.begin_rebuild(self._key, token, how, LEASE_MS)
                if begun is False or (begun is True and await self._publish(token)):
                    return
                if begun is not True:
                    await asyncio.sleep(min(begun, LOOK_S))

    async def _publish(self, token: str) -> bool:
        try:
            contents = await self._load_with_permit(token)
            plan = None if contents is None else self._plan(contents)
        except Exception:
            await self._claims.begin_rebuild(self._key, token, "renew", 0)  # given back: others may try
            raise
        if contents is None or plan is None:
            return False
        lowest = max(self.version, contents.fence) + 1
        version = await self._claims.rebuild(self._key, token, plan, lowest=lowest)
        self.note(version or 0)
        return version is not None

    async def _load_with_permit(self, token: str) -> Contents | None:
        """The permit is renewed for as long as the durable store takes. None: it was lost all the same."""
        if self._load is None:
            return Contents()
        loading = asyncio.ensure_future(self._load())
        try:
            while not (await asyncio.wait({loading}, timeout=RENEW_S))[0]:
                if await self._claims.begin_rebuild(self._key, token, "renew", LEASE_MS) is not True:
                    return None
            return loading.result()
        finally:
            loading.cancel()
