"""A proxy between us and the gateway that changes what was captured, in every response that contains it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

PASSED_ON = ("Authorization", "Idempotency-Key", "Content-Type")

Tamper = Callable[[dict[str, Any]], None]


def another_amount(payment: dict[str, Any]) -> None:
    payment["amount_minor"] = 1


def another_currency(payment: dict[str, Any]) -> None:
    payment["currency"] = "JPY"


def no_amount(payment: dict[str, Any]) -> None:
    payment["amount_minor"] = 0


@asynccontextmanager
async def a_tampering_proxy(upstream: str, tamper: Tamper) -> AsyncIterator[str]:
    """Its address. Everything but captured payments passes as it is."""
    timeout = aiohttp.ClientTimeout(total=30)
    async with aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as session:

        async def forward(request: web.Request) -> web.Response:
            headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
            async with session.request(
                request.method, upstream + request.path_qs, data=await request.read(), headers=headers
            ) as answer:
                body = msgspec.json.decode(await answer.read())
                for payment in _captured(body):
                    tamper(payment)
                return web.Response(
                    status=answer.status,
                    body=msgspec.json.encode(body),
                    headers={
                        name: answer.headers[name] for name in answer.headers if name.startswith("Idempot")
                    },
                    content_type="application/json",
                )

        application = web.Application()
        application.router.add_route("*", "/{path:.*}", forward)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


def _captured(body: Any) -> list[dict[str, Any]]:
    """The captured payments anywhere in a response."""
    found: list[dict[str, Any]] = []
    if isinstance(body, list):
        found = [one for part in body for one in _captured(part)]
    if isinstance(body, dict):
        found = [one for part in body.values() for one in _captured(part)]
        if body.get("state") == "captured":
            found.append(body)
    return found
