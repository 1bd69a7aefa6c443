"""Values cached for a while in this process.

A fresh answer is given at once. A stale one is given at once too, while one refill runs in the
background; so a stampede costs one load, and an engine that is down costs freshness, not answers.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import structlog

from holdfast.engines.errors import EngineDown

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

log = structlog.get_logger(__name__)


class Cache(Generic[Key, Value]):
    def __init__(
        self,
        load: Callable[[Key], Awaitable[Value]],
        *,
        fresh_s: float,
        stale_max_s: float = 3600.0,
        size_max: int = 10_000,
        weigh: Callable[[Value], int] | None = None,
        on_evict: Callable[[Value], None] = lambda value: None,
    ) -> None:
        """`size_max` values; or, with `weigh`, so many bytes, and the least recently used one goes first."""
        self._load = load
        self._fresh_s = fresh_s
        self._stale_max_s = stale_max_s
        self._size_max = size_max
        self._weigh = weigh
        self._on_evict = on_evict
        self._size = 0
        self._values: dict[Key, tuple[float, Value]] = {}
        self._loading: dict[Key, asyncio.Task[Value]] = {}

    def peek(self, key: Key, age_max_s: float | None = None) -> Value | None:
        """The value if it is fresh, or not older than `age_max_s`; never waits or loads. For the hot path."""
        cached = self._values.get(key)
        age_max_s = self._fresh_s if age_max_s is None else age_max_s
        if cached is not None and time.monotonic() - cached[0] <= age_max_s:
            return cached[1]
        return None

    def stale(self, key: Key) -> Value | None:
        """The cached value, however old; never waits."""
        cached = self._values.get(key)
        return cached[1] if cached is not None else None

    async def get(self, key: Key) -> Value:
        cached = self._values.get(key)
        age_s = time.monotonic() - cached[0] if cached else float("inf")
        if cached is not None and age_s <= self._fresh_s:
            if self._weigh is not None:  # used last: behind all others
                self._values[key] = self._values.pop(key)
            return cached[1]
        loading = self._loading.get(key) or self._start(key)
        if cached is not None and age_s <= self._stale_max_s:
            return cached[1]
        return await asyncio.shield(loading)

    async def renew(self, key: Key) -> Value:
        """Load now, even if a value is cached; joins a load under way."""
        return await asyncio.shield(self._loading.get(key) or self._start(key))

    def drop(self, key: Key) -> None:
        """What it stands for has changed."""
        # A load under way may have read the state before the change: later callers do not join it, and its
        # value is not cached.
        self._loading.pop(key, None)
        self._remove(key)

    def _remove(self, key: Key) -> None:
        if (cached := self._values.pop(key, None)) is not None:
            self._size -= self._weight(cached[1])

    def values(self) -> list[tuple[Key, Value]]:
        """What is cached now, however old."""
        return [(key, cached[1]) for key, cached in self._values.items()]

    def _weight(self, value: Value) -> int:
        return 1 if self._weigh is None else self._weigh(value)

    def _start(self, key: Key) -> "asyncio.Task[Value]":
        task = asyncio.create_task(self._fill(key))
        self._loading[key] = task
        task.add_done_callback(lambda done: self._ended(key, done))
        return task

    async def _fill(self, key: Key) -> Value:
        value = await self._load(key)
        if self._loading.get(key) is not asyncio.current_task():
            return value  # dropped meanwhile: see drop()
        self._remove(key)
        self._values[key] = (time.monotonic(), value)
        self._size += self._weight(value)
        # The newest stays even if it is too large alone: its caller has it in any case.
        while self._size > self._size_max and len(self._values) > 1:
            oldest = next(iter(self._values))
            evicted = self._values[oldest][1]
            self._remove(oldest)
            self._on_evict(evicted)
        return value

    def _ended(self, key: Key, task: "asyncio.Task[Value]") -> None:
        if self._loading.get(key) is task:
            del self._loading[key]
        # The callers get the exception from the task; reading it here prevents a warning about an unread one.
        if not task.cancelled() and (error := task.exception()) and not isinstance(error, EngineDown):
            log.debug("refill failed", key=repr(key), error=repr(error))
