"""A payer that behaves like a good client: without an answer, it repeats the request with the same key."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.support.shows import Fan

PATIENCE_S = 30.0
PAUSE_S = 0.05  # Retry-After is 1 s; tests need not wait that long
NOT_YET = {"still_processing", "payment_under_way"}


@dataclass(frozen=True)
class Payer:
    fan: Fan
    answers: list[httpx2.Response] = field(default_factory=list)  # every answer, the last one last
    patience_s: float = PATIENCE_S

    async def holds(self, show_id: int, *seats: str) -> str:
        """The booking's id. Seats that have just come free are on the map a moment later."""
        key = secrets.token_hex(8)
        async with asyncio.timeout(self.patience_s):
            while True:
                answer = await self.asks(lambda: self.fan.holds(show_id, *seats, key=key))
                if answer.status_code == 201:
                    return str(answer.json()["booking_id"])
                assert answer.json()["code"] == "seats_taken", answer.text
                await asyncio.sleep(PAUSE_S)

    async def pays(self, booking: str, method: str = "tok_ok", *, key: str = "", waits: bool = True) -> Any:
        """The last answer. `waits`: a 202 is not final."""
        key = key or f"pay-{method}-{booking}"
        return await self.asks(
            lambda: self.fan.post(f"/bookings/{booking}/pay", {"method": method}, key=key), waits=waits
        )

    async def lets_go(self, path: str) -> httpx2.Response:
        """DELETE: a booking, or with /payment the payment of one. It has no key and needs none."""
        return await self.asks(lambda: self.fan.delete(path))

    async def state_of(self, booking: str) -> str:
        return str((await self.asks(lambda: self.fan.get(f"/bookings/{booking}"))).json()["state"])

    async def asks(
        self, ask: Callable[[], Awaitable[httpx2.Response]], *, waits: bool = True
    ) -> httpx2.Response:
        """Until there is an answer that is one."""
        async with asyncio.timeout(self.patience_s):
            while True:
                with suppress(httpx2.TransportError):  # the process that should answer is dead
                    answer = await ask()
                    self.answers.append(answer)
                    if is_final(answer, waits):
                        return answer
                await asyncio.sleep(PAUSE_S)


def is_final(answer: httpx2.Response, waits: bool) -> bool:
    if answer.status_code >= 500:
        assert answer.status_code == 503, answer.text  # "not now", and nothing else
        return False
    if answer.status_code == 202:
        return not waits
    return answer.status_code < 400 or answer.json()["code"] not in NOT_YET
