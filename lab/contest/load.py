"""The load: clients choose a seat on the map, hold it and buy it; when refused, they choose again."""

import asyncio
import mmap
import random
import time
from collections.abc import Callable
from pathlib import Path

from lab.contest.messages import Load, LoadResult, What
from lab.strategies.strategy import Strategy, promised_until

RELEASED = 0.2  # share of the holds whose client changes its mind
LOOK_S = 0.02  # on average, for which a refused client looks at the map before it tries again
LATE_S_MAX = 10.0  # after the end, for answers that are still to come; a client without one is an error
SOLD = 1

Add = Callable[[int, int, What, float], None]
Errors = tuple[type[Exception], ...]


class SeatMap:
    """What buyers see: seats that are sold. They do not see holds, so several want the same seat."""

    def __init__(self, file: mmap.mmap, offer: int, seats: int) -> None:
        self._file = file
        self._offer = offer
        self._seats = seats
        self._end = min(offer, seats)  # of the seats that have been offered

    def choose(self) -> int | None:
        """A seat at random, of those on offer; for each that is sold, another one is offered."""
        first = self._file.find(b"\0")
        if first < 0:
            return None
        while self._end < self._seats and self._free(first) < self._offer:
            self._end = min(self._end + self._offer - self._free(first), self._seats)
        found = self._file.find(b"\0", random.randrange(first, max(self._end, first + 1)))
        return found if 0 <= found < self._end else first

    def _free(self, first: int) -> int:
        return self._file[first : self._end].count(b"\0")

    def mark_sold(self, seat: int) -> None:
        self._file[seat] = SOLD


class Crowd:
    def __init__(self, strategy: Strategy, seat_map: SeatMap, add: Add, broken: Errors) -> None:
        self._strategy = strategy
        self._map = seat_map
        self._add = add
        self._broken = broken
        self.hold_ms: list[float] = []
        self.errors = 0

    async def shop(self, client: int, stop_at_s: float) -> tuple[int, int]:
        """Answers and sales of one client."""
        answers = sales = 0
        while time.monotonic() < stop_at_s and (seat := self._map.choose()) is not None:
            try:
                is_sold = await self._attempt(client, seat)
            except self._broken:
                self.errors += 1
                await asyncio.sleep(0.01)
                continue
            answers += 1
            sales += is_sold
        return answers, sales

    async def _attempt(self, client: int, seat: int) -> bool:
        began = time.monotonic()
        hold = await self._strategy.hold(seat, client)
        now = time.monotonic()
        self.hold_ms.append(round(1000 * (now - began), 3))
        if hold is None:
            await asyncio.sleep(random.uniform(0.5, 1.5) * LOOK_S)
            return False
        self._add(client, seat, "held", promised_until(now, self._strategy.times))
        if random.random() < RELEASED:
            self._add(client, seat, "released", 0.0)
            await self._strategy.release(hold)
            return False
        if (paying := await self._strategy.start_payment(hold)) is None:
            self._add(client, seat, "lapsed", 0.0)
            return False
        is_sold = await self._strategy.confirm(paying)
        self._add(client, seat, "sold" if is_sold else "lost", 0.0)
        if is_sold:
            self._map.mark_sold(seat)
        return is_sold


def open_map(path: Path, seats: int) -> mmap.mmap:
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), seats)


async def run_load(strategy: Strategy, command: Load, add: Add, broken: Errors) -> LoadResult:
    with open_map(Path(command.sold_map), command.seats) as sold:
        crowd = Crowd(strategy, SeatMap(sold, command.offer, command.seats), add, broken)
        retries = strategy.tools.retries
        began = time.monotonic()
        shopping = [
            asyncio.create_task(crowd.shop(command.first_client + i, began + command.seconds))
            for i in range(command.clients)
        ]
        _, starved = await asyncio.wait(shopping, timeout=command.seconds + LATE_S_MAX)
        for task in starved:
            task.cancel()
        counts = [(0, 0) if task in starved else task.result() for task in shopping]
        return LoadResult(
            seconds=time.monotonic() - began,
            answers=sum(answers for answers, _ in counts),
            errors=crowd.errors + len(starved),
            retries=strategy.tools.retries - retries,
            hold_ms=crowd.hold_ms,
            answers_per_client=[answers for answers, _ in counts],
            sales_per_client=[sales for _, sales in counts],
        )
