"""The post: notices go out, and the books know which have arrived.

    books ── told ──► ready (≤ READY_MAX) ──► couriers ──► the shop
      ▲  └── due, when ready has room ──┘        │
      └──────── delivered, or put off ───────────┘

What is ready is a cache: every notice that is not delivered is in the books with its time, so that a killed
sandbox sends on where it was, at worst twice. While the shop cannot be reached at all, nothing is tried but
its door, and no notice is given up; one that is refused is tried again after `retry_s`, and then given up.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from time import time

import structlog
from msgspec.structs import replace

from holdfast.sandbox.database import Books
from holdfast.sandbox.gateway import Till
from holdfast.sandbox.http_client import Link, Target, Unreachable
from holdfast.sandbox.payment import Notice
from holdfast.sandbox.webhook import HEADER, Letter, signature

log = structlog.get_logger(__name__)

COURIERS = 16  # connections
READY_MAX = 4000  # notices in memory; more stay in the books until there is room
LOOK_S = 0.05  # between two looks at what is due
NOTE_DOWN_S = 0.05  # what arrived is noted down together
DOOR_PAUSE_FIRST_S = 0.1
DOOR_PAUSE_MAX_S = 2.0


class Post:
    def __init__(
        self,
        books: Books,
        till: Till,
        url: str,
        secrets: Sequence[str],
        *,
        ready_max: int = READY_MAX,
        letter: Letter | None = None,
    ) -> None:
        self._letter = letter
        self._books = books
        self._till = till
        self._target = Target.of(url)
        self._secrets = [secret.encode() for secret in secrets]
        self._ready_max = ready_max
        self.counts: Counter[str] = Counter()
        self._ready: deque[Notice] = deque()
        self._has_ready = asyncio.Event()
        self._held: set[int] = set()  # ready, under way, or delivered and not noted down yet
        self._arrived: list[int] = []
        self._next_due = 0.0  # the first look finds what an earlier life left
        self._is_behind = False
        self._door_opens_at = 0.0
        self._door_pause_s = 0.0

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Post"]:
        """Sending while the block runs. What is under way at its end is sent again by the next life."""
        async with AsyncExitStack() as stack:
            tasks = [
                asyncio.create_task(job)
                for job in (self._refill(), self._note_down(), *(self._carry() for _ in range(COURIERS)))
            ]
            stack.push_async_callback(_end, tasks)
            yield self
        await self._flush()

    def put(self, notices: Sequence[Notice]) -> None:
        """Fresh from a commit."""
        now = time()
        for notice in notices:
            assert notice.due_at is not None
            if notice.due_at > now + LOOK_S:
                self._next_due = min(self._next_due, notice.due_at)
            elif len(self._ready) < self._ready_max and not self._is_behind:
                self._hold(notice)
            else:
                self._is_behind = True

    async def send_now(self, notice: Notice) -> bool:
        """Out of turn, and waited for; if it is not taken, it goes the usual way."""
        link = Link(self._target)
        self._held.add(notice.seq)
        try:
            status = await link.post(*self._sealed(notice))
        except Unreachable:
            status = 0
        finally:
            link.close()
        if not 200 <= status < 300:
            self._held.discard(notice.seq)
            return False
        self._note(notice)
        await self._flush()
        return True

    @property
    def waiting(self) -> int:
        return self._books.notices_waiting()

    # ── couriers ──────────────────────────────────────────────────────────────────────

    async def _carry(self) -> None:
        link = Link(self._target)
        try:
            while True:
                notice = await self._next()
                try:
                    await self._sent(notice, await link.post(*self._sealed(notice)))
                except Unreachable as why:
                    self._ready.appendleft(notice)
                    self._shut_door(str(why))
                except Exception as error:  # the books are busy, say: they have it, and it is found again
                    log.warning("notice not sent", notice=notice.id, error=repr(error))
                    self._held.discard(notice.seq)
                    self._is_behind = True
        finally:
            link.close()

    async def _next(self) -> Notice:
        while True:
            if (wait_s := self._door_opens_at - time()) > 0:
                await asyncio.sleep(wait_s)
            elif self._ready:
                return self._ready.popleft()
            else:
                self._has_ready.clear()
                await self._has_ready.wait()

    async def _sent(self, notice: Notice, status: int) -> None:
        self._door_pause_s = 0.0
        if not 200 <= status < 300:
            self.counts["refused"] += 1
            await self._put_off(notice)
            return
        self.counts["sent"] += 1
        if notice.copies > 1:
            self._ready.append(replace(notice, copies=notice.copies - 1))
            self._has_ready.set()
        else:
            self._note(notice)

    async def _put_off(self, notice: Notice) -> None:
        pauses_s = self._till.settings.retry_s
        attempts = notice.attempts + 1
        due_at = time() + pauses_s[attempts - 1] if attempts <= len(pauses_s) else None
        if due_at is None:
            self.counts["given_up"] += 1
            log.warning("notice given up", notice=notice.id, attempts=attempts)
        await self._books.write(lambda w: w.put_off(notice.seq, due_at, notice.copies, attempts))
        self._held.discard(notice.seq)
        if due_at is not None:
            self._next_due = min(self._next_due, due_at)

    def _shut_door(self, why: str) -> None:
        """Nobody is there: all couriers wait, longer each time."""
        if time() < self._door_opens_at:
            return
        if not self._door_pause_s:
            log.warning("nobody takes our notices", why=why)
        self.counts["unreachable"] += 1
        self._door_pause_s = min(max(self._door_pause_s * 2, DOOR_PAUSE_FIRST_S), DOOR_PAUSE_MAX_S)
        self._door_opens_at = time() + self._door_pause_s

    def _sealed(self, notice: Notice) -> tuple[bytes, bytes]:
        """Headers and body, in our own words or another gateway's."""
        at = int(time())
        if self._letter is not None and (payment := self._books.payment(notice.payment_id)) is not None:
            return self._letter(notice, payment, self._secrets, at)
        return f"{HEADER}: {signature(self._secrets, notice.body, at)}\r\n".encode(), notice.body

    # ── what is ready, and what has arrived ───────────────────────────────────────────

    def _hold(self, notice: Notice) -> None:
        if notice.seq in self._held:  # found in the books before we were told
            return
        self._held.add(notice.seq)
        self._ready.append(notice)
        self._has_ready.set()

    def _note(self, notice: Notice) -> None:
        self._arrived.append(notice.seq)

    async def _refill(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            now = time()
            if len(self._ready) < self._ready_max // 4 and (self._is_behind or now >= self._next_due):
                self._take_due(now)

    def _take_due(self, now: float) -> None:
        limit = len(self._held) + self._ready_max // 2
        found = self._books.notices_due(now, limit)
        for notice in found:
            self._hold(notice)
        self._is_behind = len(found) == limit
        self._next_due = self._books.next_notice_due(now) or float("inf")

    async def _note_down(self) -> None:
        while True:
            await asyncio.sleep(NOTE_DOWN_S)
            await self._flush()

    async def _flush(self) -> None:
        if not self._arrived:
            return
        arrived, self._arrived = self._arrived, []
        try:
            await self._books.write(lambda writer: writer.delivered(arrived))
        except Exception as error:
            log.warning("notices not noted down", count=len(arrived), error=repr(error))
            self._arrived += arrived
        else:
            self._held.difference_update(arrived)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
