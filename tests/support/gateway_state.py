"""The payment gateway as tests see it: captured and refunded payments, and how to make it misbehave."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import msgspec
from msgspec import Struct

from holdfast.config import Config
from holdfast.sandbox.webhook import api_key


class Taken(Struct, frozen=True):
    """A payment as the gateway has it."""

    id: str
    reference: str  # ours: booking_nonce_attempt
    amount_minor: int
    state: str
    refunded_minor: int

    @property
    def booking_id(self) -> str:
        return self.reference.partition("_")[0]

    @property
    def is_captured(self) -> bool:
        return self.state == "captured"

    @property
    def retained_minor(self) -> int:
        return self.amount_minor - self.refunded_minor if self.is_captured else 0


class Bank:
    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def payments(self, since_s: float = 0.0) -> list[Taken]:
        """All there are, oldest first."""
        found: list[Taken] = []
        after: str | None = None
        while True:
            parameters: dict[str, float | str] = {
                "since": since_s,
                "limit": 100,
                **({"after": after} if after else {}),
            }
            page = (await self._client.get("/v1/payments", params=parameters)).json()
            found += msgspec.convert(page["payments"], list[Taken])
            if (after := page["next"]) is None:
                return found

    async def of(self, booking_id: str, since_s: float = 0.0) -> list[Taken]:
        return [one for one in await self.payments(since_s) if one.booking_id == booking_id]

    async def by_key(self, key: str) -> list[Taken]:
        page = (await self._client.get("/v1/payments", params={"reference": key})).json()
        return msgspec.convert(page["payments"], list[Taken])

    async def decides(self, payment: Taken, method: str = "tok_ok") -> None:
        """A payment the bank was still thinking about is captured or, as the method says, declined."""
        answer = await self._client.post(f"/v1/payments/{payment.id}/confirm", json={"method": method})
        assert answer.status_code in (200, 402), answer.text

    async def disputes(self, payment: Taken, state: str) -> None:
        """The payer disputes it with their bank, or the dispute ends: open, won, lost."""
        answer = await self._client.post(f"/v1/payments/{payment.id}/dispute", json={"state": state})
        assert answer.status_code == 200, answer.text

    async def returns(self, refund_id: str) -> None:
        """The payer's bank returns a refund that had succeeded."""
        answer = await self._client.post(f"/v1/refunds/{refund_id}/fail", json={})
        assert answer.status_code == 200, answer.text

    async def behaves(self, **settings: Any) -> None:
        answer = await self._client.post("/v1/control", json=settings)
        assert answer.status_code == 200, answer.text


@asynccontextmanager
async def bank_of(config: Config) -> AsyncIterator[Bank]:
    key = api_key(config.gateway_secret.partition(",")[0].strip())
    async with httpx2.AsyncClient(
        base_url=config.gateway_url, headers={"Authorization": f"Bearer {key}"}, timeout=30
    ) as client:
        yield Bank(client)
