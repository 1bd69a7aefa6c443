"""Waits until a pod has received what the home database has committed.

A consumer in a pod finds a buyer's address in the copy of the home database. A buyer may have typed it just
before; while replication is cut, hours before. Without waiting, their tickets would be mailed to no one.

    home: raise a number ──replication, in the order of commits──► pod: the number has arrived
"""

import asyncio
import math
import time
from collections.abc import Callable

from holdfast.engines.errors import EngineDown
from holdfast.engines.postgres import Postgres, Queries, Queryable
from holdfast.pods.waiting import wait_until

Q = Queries("holdfast.pods")
PAUSE_S = 0.2  # between two numbers: bounds the writes at home, however many facts there are
ARRIVES_WITHIN_S = 2.0


async def wait_for_home(home: Queryable, pod: Queryable, name: str, within_s: float) -> None:
    """Until the pod has received all that home has committed by now. Raises TimeoutError.

    Not in a transaction of home: the number that is waited for has to be committed.
    """
    number = await home.fetchval(Q.raise_mark, name)

    async def has_arrived() -> bool:
        return bool((await pod.fetchval(Q.mark, name) or 0) >= number)

    await wait_until(has_arrived, within_s)


class CatchUp:
    """Of one pod, in one process. Calls at the same time share a number."""

    def __init__(
        self, home: Postgres, pod: Postgres, name: str, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._home = home
        self._pod = pod
        self._name = name
        self._monotonic = monotonic
        self._lock = asyncio.Lock()
        self._complete_to = -math.inf  # what home had committed by then is in the pod

    async def wait(self) -> None:
        """Raises EngineDown: home cannot be reached, or the pod is behind. A consumer tries again later."""
        wanted = self._monotonic()
        async with self._lock:
            if self._complete_to >= wanted:
                return  # a call that began later has waited for us
            await asyncio.sleep(max(0.0, self._complete_to + PAUSE_S - self._monotonic()))
            began = self._monotonic()
            try:
                await wait_for_home(self._home, self._pod, self._name, ARRIVES_WITHIN_S)
            except TimeoutError:
                raise EngineDown("replication", retry_after_s=5) from None
            self._complete_to = began
