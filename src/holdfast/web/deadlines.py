"""A time limit for every request at the cost of two dict operations.

    enter ──► running: task → started ──► leave
                  │ looked through a few times a second, oldest first
                  └─ too old ──► cancelled, and distinguished from every other cancellation

asyncio.timeout sets and clears a timer for each request, a fifth of all that this layer costs, for a limit
that one request in a million meets. All have the same limit, so a dict in order of arrival will do.
"""

import asyncio
from time import monotonic
from types import TracebackType

LOOKS_A_LIMIT = 8  # a request ends at most an eighth of its limit late


class Deadlines:
    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._running: dict[asyncio.Task[object], float] = {}
        self._late: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running[task] = monotonic()
        if self._timer is None:
            self._look_later()

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """TimeoutError for the one who was late; everybody else's exceptions pass."""
        task = asyncio.current_task()
        assert task is not None
        self._running.pop(task, None)
        if self._late and task in self._late:
            self._late.discard(task)
            if task.uncancel() == 0 and isinstance(error, asyncio.CancelledError):
                raise TimeoutError from error

    def _look_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._timeout_s / LOOKS_A_LIMIT, self._look)

    def _look(self) -> None:
        too_old = monotonic() - self._timeout_s
        for task, started in list(self._running.items()):
            if started > too_old:
                break
            del self._running[task]
            self._late.add(task)
            task.cancel()
        self._timer = None
        if self._running:
            self._look_later()
