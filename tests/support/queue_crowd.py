"""People in a waiting room over HTTP: they join, redeem, hold a seat and go; failed calls are repeated."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.support.box_office import Office
from tests.support.shows import API, Fan, problem

PAUSE_S = 0.3
AT_ONCE_MAX = 64
# While Redis is away, people who want the best seats choose from the same map, and the ledger has one winner.
REPEATED = {"seats_taken", "still_processing"}


@dataclass
class QueueCrowd:
    office: Office
    show_id: int
    people: Sequence[Fan]
    pause_s: float = PAUSE_S  # between two looks at a place
    numbers: dict[int, int] = field(default_factory=dict)  # account → entrant number, as first answered
    other_numbers: list[tuple[int, int]] = field(default_factory=list)  # of a person who got a second one
    came_in: dict[int, float] = field(default_factory=dict)  # account → when
    slipped_in: list[int] = field(default_factory=list)  # who held a seat without a pass
    _at_once: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE_MAX))

    async def join_all(self) -> None:
        await asyncio.gather(*(self.join(fan) for fan in self.people))

    async def join(self, fan: Fan) -> None:
        answer = await self._call(fan, "POST", "/queue", (200, 201))
        number = self.numbers.setdefault(fan.account_id, answer["number"])
        if number != answer["number"]:
            self.other_numbers.append((fan.account_id, answer["number"]))

    async def visit_all(self) -> None:
        """Everyone waits for their turn, comes in, holds a seat and leaves."""
        await asyncio.gather(*(self._visit(fan) for fan in self.people))

    async def try_without_a_pass(self, fan: Fan) -> None:
        """Again and again, until cancelled."""
        while True:
            answer = await self._send(fan, "POST", "/holds", json={"best": {"count": 1}})
            if answer is not None and answer.status_code == 201:
                self.slipped_in.append(fan.account_id)
            await asyncio.sleep(PAUSE_S / 3)

    async def _visit(self, fan: Fan) -> None:
        while True:
            place = await self._call(fan, "GET", "/queue/place", (200,))
            if place["state"] in ("called", "inside"):
                break
            assert place["state"] in ("in_draw", "waiting"), place
            await asyncio.sleep(self.pause_s)
        admission = (await self._call(fan, "POST", "/queue/pass", (200,)))["text"]
        self.came_in[fan.account_id] = time.monotonic()
        await self._call(fan, "POST", "/holds", (201,), {"Admission": admission}, json={"best": {"count": 1}})
        await self._call(fan, "DELETE", "/queue/place", (204, 404))

    async def _call(
        self, fan: Fan, method: str, path: str, good: tuple[int, ...], headers: Any = None, **more: Any
    ) -> Any:
        """Repeated until the answer is a good one; a refusal that is not "try again" is an error."""
        headers = {"Idempotency-Key": f"{path}-{fan.account_id}", **(headers or {})}
        while True:
            answer = await self._send(fan, method, path, headers, **more)
            if answer is not None and answer.status_code in good:
                return answer.json() if answer.content else {}
            assert answer is None or _is_worth_repeating(answer), f"{method} {path}: {answer.text}"
            await asyncio.sleep(PAUSE_S)

    async def _send(
        self, fan: Fan, method: str, path: str, headers: Any = None, **more: Any
    ) -> httpx2.Response | None:
        """None: the connection broke."""
        url = f"{API}/shows/{self.show_id}{path}"
        async with self._at_once:
            try:
                return await self.office.api.request(
                    method, url, headers=fan.headers | (headers or {}), **more
                )
            except httpx2.TransportError:
                return None


def _is_worth_repeating(answer: httpx2.Response) -> bool:
    return answer.status_code in (502, 503) or problem(answer)["code"] in REPEATED
