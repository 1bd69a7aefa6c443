"""One moment in all databases of a house, while it sells.

    moves wait ─► facts of every pod wait ─► pods are looked at ─► home is looked at ─► all go on

What a person buys in a pod, they buy with an account that home had before; what home writes about a purchase
(an invoice), it writes after a fact of the pod. So between the two looks no pod may commit a fact: home then
has every account of a pod's bookings, and nothing about a purchase that the pod does not have. Moves wait,
because a show between two databases would be in both or in neither.

Buyers wait for milliseconds: for the writers under way, and for a round trip per database.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import asyncpg

from holdfast.engines.errors import OperatorError
from holdfast.engines.postgres import Queries
from holdfast.outbox import hold_facts

Q = Queries("holdfast.pods")
LOCK_WITHIN = "500ms"  # writers wait behind us for that long; then they go on, and we try again
TRIES = 100
PAUSE_S = 0.3
MOVES_WITHIN_S = 120.0
NO_LOCK = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)


@asynccontextmanager
async def one_moment(home: asyncpg.Connection, pods: Sequence[asyncpg.Connection]) -> AsyncIterator[None]:
    """Connections for this alone: each has a transaction until the block ends."""
    try:
        await home.execute(Q.hold_moves, timeout=MOVES_WITHIN_S)
    except TimeoutError:
        raise OperatorError(
            f"a show has been moving for {MOVES_WITHIN_S:.0f} s: wait for `holdfast pod move`, then try again"
        ) from None
    try:
        async with _facts_held(pods):
            yield
    finally:
        await home.execute(Q.let_moves)


@asynccontextmanager
async def _facts_held(pods: Sequence[asyncpg.Connection]) -> AsyncIterator[None]:
    for _ in range(TRIES):
        async with AsyncExitStack() as held:
            try:
                for pod in pods:
                    await held.enter_async_context(pod.transaction())
                    await pod.execute(Q.wait_for_lock_at_most, LOCK_WITHIN)
                    await hold_facts(pod)
            except NO_LOCK:
                is_held = False
            else:
                is_held = True
                yield
        if is_held:
            return
        await asyncio.sleep(PAUSE_S)
    raise OperatorError("a long transaction in a pod keeps us from one moment: see pg_stat_activity there")
