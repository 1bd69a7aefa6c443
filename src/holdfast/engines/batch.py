"""Many callers, one batch.

    caller ─┐                        ┌─► result
    caller ─┼─► waiting ─► batch ────┼─► result        one round trip for all of them
    caller ─┘   (≤ waiting_max)      └─► result

While a batch is under way, new callers gather; when it returns, they are sent. No caller waits for a timer:
an idle batcher adds no latency, and a busy one fills its batches by itself. Before it goes, the loop turns
a few times, so that callers that have already arrived are in it too. A batcher that follows another one also
waits for the batch that is under way there: its callers come on in a moment, and one round trip is for all.

Invariants
- `send` gets between 1 and `batch_max` items and returns as many results, in the same order.
- A caller who gives up does not stop the batch: the others are on it.
- If `send` raises, exactly the callers of that batch get that exception.
- A result may be `Onward(item, to)`: the caller is not woken, and waits on for a batch of `to`.
- A result that is an exception is raised to its caller alone.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context, copy_context
from typing import Any, Generic, TypeVar

from msgspec import Struct

from holdfast.engines.request_context import CURRENT_BATCH
from holdfast.engines.tracing import Span, tracer
from holdfast.errors import Busy

# Of the loop, before a batch goes; idle, they are some microseconds. Five and ten were equal, two and none
# five to eight hundredths slower (bench, 2026-11).
GATHER_TURNS = 6
# For the batch of the batcher that another one follows: longer than it takes, shorter than a caller notices.
FOLLOW_WAIT_S = 0.005

Item = TypeVar("Item")
Result = TypeVar("Result")


class Onward(Struct, frozen=True, gc=False):
    """Not a result yet: the caller waits on as `item` in another batcher."""

    item: Any
    to: "Batcher[Any, Any]"


class Batcher(Generic[Item, Result]):
    def __init__(
        self,
        send: Callable[[Sequence[Item]], Awaitable[Sequence[Result | Exception | Onward]]],
        *,
        batch_max: int,
        waiting_max: int,
    ) -> None:
        self._send = send
        self._batch_max = batch_max
        self._waiting_max = waiting_max
        self.name = getattr(send, "__name__", "").strip("_")  # of its spans
        self._waiting: deque[tuple[Item, asyncio.Future[Result], Context]] = deque()
        self._sender: asyncio.Task[None] | None = None
        self._under_way: asyncio.Future[None] | None = None  # done when the batch of now is
        self._followed: Batcher[Any, Any] | None = None
        self._follow_wait_s = 0.0

    def __call__(self, item: Item) -> asyncio.Future[Result]:
        """A future of the result; await it. Not a coroutine: a future less per caller is worth it here."""
        if len(self._waiting) >= self._waiting_max:
            raise Busy(retry_after_s=1)
        place: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._join(item, place, copy_context())
        return place

    def follow(self, other: "Batcher[Any, Any]", wait_s: float = FOLLOW_WAIT_S) -> None:
        """The callers of the other batcher come on to this one."""
        self._followed, self._follow_wait_s = other, wait_s

    def _join(self, item: Item, place: asyncio.Future[Result], caller: Context) -> None:
        self._waiting.append((item, place, caller))
        if self._sender is None:
            # Not in the context of its first caller: it serves others long after that one is answered.
            self._sender = asyncio.create_task(self._send_until_empty(), context=Context())

    async def _send_until_empty(self) -> None:
        try:
            while self._waiting:
                for _ in range(GATHER_TURNS):
                    await asyncio.sleep(0)
                if self._followed is not None and (under_way := self._followed._under_way) is not None:
                    await asyncio.wait((under_way,), timeout=self._follow_wait_s)
                size = min(len(self._waiting), self._batch_max)
                await self._send_one([self._waiting.popleft() for _ in range(size)])
        finally:
            # In the same step as the last check: a caller that arrives after it starts its own sender.
            self._sender = None

    async def _send_one(self, batch: list[tuple[Item, asyncio.Future[Result], Context]]) -> None:
        self._under_way = under_way = asyncio.get_running_loop().create_future()
        CURRENT_BATCH.set(batch)
        span: Span | None = tracer.begin_batch(self.name, batch) if tracer.is_on else None
        try:
            results = await self._send([item for item, _, _ in batch])
            assert len(results) == len(batch)
        except BaseException as error:
            if span is not None:
                span.fail(error)
            for _, place, _ in batch:
                if not place.done():
                    place.set_exception(error if isinstance(error, Exception) else Busy(retry_after_s=1))
            if not isinstance(error, Exception):
                raise
        else:
            for (_, place, caller), result in zip(batch, results, strict=True):
                if place.done():
                    continue
                if isinstance(result, Onward):
                    result.to._join(result.item, place, caller)
                elif isinstance(result, Exception):
                    place.set_exception(result)
                else:
                    place.set_result(result)
        finally:
            if span is not None:
                tracer.end(span)
            self._under_way = None
            under_way.set_result(None)
