"""People who found no seats and try again after exponential pauses, until their time is over.

Such a pause has no memory, so it is not simulated while nothing is free. When seats come free, one draw
tells when the next of all of them tries, another who it is. One whose time is over by then is skipped:
the tries of the others are still exact (thinning of a Poisson process), and the person leaves the pool.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from holdfast.simulation.population import BOT_RETRY_S, exponential, uniform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from holdfast.simulation.population import Population
    from holdfast.simulation.scenario import Scenario


class Hunters:
    """Pools by kind and party size, because a party of four does not compete for three seats."""

    def __init__(
        self, scenario: "Scenario", people: "Population", streams: dict[str, np.random.Generator]
    ) -> None:
        self._people = people
        self._retry_s = {False: scenario.retry_s, True: BOT_RETRY_S}
        self._pauses: Iterator[float] = exponential(streams["hunting"])
        self._picks: Iterator[float] = uniform(streams["picking"])
        self._pools: dict[tuple[bool, int], list[int]] = {}

    def add(self, person: int) -> None:
        key = (self._people.is_bot.item(person), self._people.size.item(person))
        self._pools.setdefault(key, []).append(person)

    def add_many(self, people: "NDArray[np.int64]") -> None:
        is_bot, size = self._people.is_bot[people], self._people.size[people]
        for bot in (False, True):
            for each in np.unique(size[is_bot == bot]).tolist():
                found = people[(is_bot == bot) & (size == each)]
                self._pools.setdefault((bot, each), []).extend(found.tolist())

    def next_try_s(self, free: int) -> float | None:
        """How long until one of those tries whose party fits; None: there is none."""
        tries_per_s = sum(rate for _, rate in self._fitting(free))
        return next(self._pauses) / tries_per_s if tries_per_s else None

    def pick(self, free: int) -> int:
        """Who it is: by how often each tries. Taken out of the pool."""
        fitting = self._fitting(free)
        bounds = list(accumulate(rate for _, rate in fitting))
        pool, _ = fitting[min(bisect_right(bounds, next(self._picks) * bounds[-1]), len(bounds) - 1)]
        place = int(next(self._picks) * len(pool))
        pool[place], pool[-1] = pool[-1], pool[place]
        return pool.pop()

    def _fitting(self, free: int) -> list[tuple[list[int], float]]:
        return [
            (pool, len(pool) / self._retry_s[is_bot])
            for (is_bot, size), pool in self._pools.items()
            if size <= free and pool
        ]
