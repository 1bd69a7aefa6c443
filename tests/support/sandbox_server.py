"""A sandbox gateway for a test: in this process or in one of its own, and a shop that takes its notices."""

import asyncio
import json
import os
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from holdfast.config import Config
from holdfast.payments.gateway import ChargeOrder, Webhook
from holdfast.payments.gateways.sandbox import SandboxGateway
from holdfast.sandbox.process import SandboxSetup, open_sandbox
from holdfast.sandbox.webhook import api_key
from tests.conftest import served
from tests.support.wait import until

SECRET = "whsec_sandbox_test"
TIMEOUT_MS = 10_000  # a loaded machine answers in time
IMPATIENT_MS = 300  # for tests of answers that never come
# Of a sandbox that is in a hurry: what takes seconds for people takes less for tests.
QUICK: dict[str, Any] = {
    "late_s": 1.0,
    "slow_s": 0.5,
    "out_of_order_s": 0.5,
    "hold_s": 30.0,
    "retry_s": [0.05, 0.1, 0.1],
}


def an_order(method: str = "tok_ok", **changes: Any) -> ChargeOrder:
    given = {"key": f"key-{secrets.token_hex(8)}", "amount_minor": 4500, "currency": "EUR", "method": method}
    return ChargeOrder(**{**given, "description": "2 seats, Hamlet", **changes})


def an_adapter(url: str, **changes: Any) -> SandboxGateway:
    given = {"gateway_url": url, "gateway_secret": SECRET, "gateway_timeout_ms": TIMEOUT_MS}
    return SandboxGateway(Config(**{**given, **changes}))


@dataclass
class Desk:
    """The sandbox's API, called as a merchant, and the adapter beside it."""

    url: str
    gateway: SandboxGateway
    impatient: SandboxGateway  # the same, for charges whose reply is lost
    session: aiohttp.ClientSession

    async def ask(self, method: str, path: str, body: Any = None, key: str = "") -> tuple[int, Any]:
        """Status and page; (0, why) when there was no answer."""
        headers = {"Authorization": f"Bearer {api_key(SECRET)}"} | ({"Idempotency-Key": key} if key else {})
        try:
            async with self.session.request(method, self.url + path, json=body, headers=headers) as answer:
                return answer.status, await answer.json()
        except (aiohttp.ClientError, TimeoutError) as error:
            return 0, repr(error)

    async def charge(self, method: str = "tok_ok", key: str = "", **changes: Any) -> tuple[int, Any]:
        given = {"amount_minor": 4500, "currency": "EUR", "reference": key or secrets.token_hex(8)}
        return await self.ask("POST", "/v1/payments", {**given, "method": method, **changes}, key)

    async def control(self, **settings: Any) -> dict[str, Any]:
        status, page = await self.ask("POST", "/v1/control", settings)
        assert status == 200, page
        return dict(page)

    async def state(self, payment_id: str) -> str:
        _, page = await self.ask("GET", f"/v1/payments/{payment_id}")
        return str(page["state"])

    async def becomes(self, payment_id: str, state: str) -> None:
        async def is_so() -> bool:
            return await self.state(payment_id) == state

        await until(is_so)


@asynccontextmanager
async def a_desk(url: str) -> AsyncIterator[Desk]:
    timeout = aiohttp.ClientTimeout(total=10)
    gateway, impatient = an_adapter(url), an_adapter(url, gateway_timeout_ms=IMPATIENT_MS)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        try:
            yield Desk(url, gateway, impatient, session)
        finally:
            await gateway.close()
            await impatient.close()


@asynccontextmanager
async def a_sandbox(folder: Path, notify_url: str = "", **setup: Any) -> AsyncIterator[Desk]:
    """In this process, and in a hurry."""
    wanted = SandboxSetup(**{"folder": folder, "secret": SECRET, "notify_url": notify_url, **setup})
    async with open_sandbox(wanted) as application, served(application) as url, a_desk(url) as desk:
        await desk.control(**QUICK)
        yield desk


@dataclass
class Shop:
    """Where notices are taken, or not."""

    port: int = 0
    taken: list[Webhook] = field(default_factory=list)  # those whose signature was good, in order
    answers: list[int] = field(default_factory=list)  # statuses of the next answers; none left: 200
    at: dict[str | None, float] = field(default_factory=dict)  # when the latest about a payment came
    _runner: web.AppRunner | None = None
    _gateway: SandboxGateway = field(default_factory=lambda: an_adapter(""))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/webhooks/sandbox?from=test"

    async def open(self) -> None:
        """On the port it had before, if it had one."""
        application = web.Application()
        application.router.add_post("/webhooks/sandbox", self._take)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _take(self, request: web.Request) -> web.Response:
        raw = await request.read()
        headers = {name.lower().encode(): value.encode() for name, value in request.headers.items()}
        status = self.answers.pop(0) if self.answers else 200
        if status == 200:
            notice = self._gateway.parse_webhook(raw, headers, time.time())
            self.taken.append(notice)
            self.at[notice.key] = time.time()
        return web.Response(status=status)

    def about(self, key: str) -> list[str]:
        """Kinds of the notices about a payment, in the order in which they came."""
        return [notice.kind for notice in self.taken if notice.key == key]

    async def hears(self, key: str, *kinds: str) -> None:
        async def has() -> bool:
            return self.about(key) == list(kinds)

        await until(has)


@asynccontextmanager
async def a_shop() -> AsyncIterator[Shop]:
    shop = Shop()
    await shop.open()
    try:
        yield shop
    finally:
        await shop.close()


class Ended(Exception):
    """It ended before it printed its address."""

    def __init__(self, code: int) -> None:
        super().__init__(f"ended with {code}")
        self.code = code


class Process:
    """`holdfast sandbox`, killed and started again at the will of the test."""

    def __init__(self, folder: Path, notify_url: str = "") -> None:
        self._words = ("sandbox", "--data", str(folder), "--notify", notify_url, "--json")
        self._port = 0
        self._process: asyncio.subprocess.Process | None = None
        self.url = ""

    async def start(self) -> None:
        ours = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "holdfast", *self._words, "--port", str(self._port)),
            env={**ours, "HOLDFAST_GATEWAY_SECRET": SECRET},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), 20)
        if not line:
            raise Ended(await self._process.wait())
        self.url = json.loads(line)["url"]
        self._port = int(self.url.rpartition(":")[2])  # the same when it is started again

    async def kill(self) -> None:
        await self.end(signal.SIGKILL)

    async def end(self, sign: signal.Signals = signal.SIGTERM) -> int:
        assert self._process is not None
        if self._process.returncode is None:
            with suppress(ProcessLookupError):  # it has ended, and asyncio has not noticed yet
                os.kill(self._process.pid, sign)  # not send_signal(): it looks, and takes the code from us
        return await self._process.wait()


@asynccontextmanager
async def a_process(folder: Path, notify_url: str = "") -> AsyncIterator[Process]:
    process = Process(folder, notify_url)
    await process.start()
    try:
        yield process
    finally:
        await process.kill()
