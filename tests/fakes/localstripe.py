"""localstripe, an independent implementation of Stripe, as a process of its own on a free port.

It knows fewer parameters than Stripe and refuses the others; those are left out on the way to it. It has no
search and keeps no answers by key: what the adapter does without them is tried here, the rest at our sandbox.
"""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

import aiohttp
from aiohttp import web

from tests.support.wait import until

UNKNOWN_TO_IT = ("description", "automatic_payment_methods", "return_url", "created")
KEY = "sk_test_localstripe"


@dataclass
class LocalStripe:
    url: str  # to be used as Stripe's address
    own_url: str
    hooks: list[tuple[bytes, dict[bytes, bytes]]] = field(default_factory=list)  # webhooks that came

    async def post(self, path: str, **fields: str) -> None:
        """As the payer's browser would, or the dashboard."""
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as session:
            async with session.post(f"{self.own_url}{path}", data=fields) as response:
                assert response.status == 200, await response.text()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def local_stripe() -> AsyncIterator[LocalStripe]:
    port, front_port = free_port(), free_port()
    silent = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "localstripe",
        "--port",
        str(port),
        "--from-scratch",
        stdout=silent,
        stderr=silent,
    )
    it = LocalStripe(f"http://127.0.0.1:{front_port}", f"http://127.0.0.1:{port}")
    try:
        async with aiohttp.ClientSession() as session, _front(it, session, front_port):
            await until(lambda: _answers(session, it.own_url), within_s=30)
            yield it
    finally:
        process.terminate()
        await process.wait()


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url):
            return True
    except aiohttp.ClientError:
        return False


@asynccontextmanager
async def _front(it: LocalStripe, session: aiohttp.ClientSession, port: int) -> AsyncIterator[None]:
    async def hook(request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.raw_headers}
        it.hooks.append((await request.read(), headers))
        return web.Response()

    async def onward(request: web.Request) -> web.Response:
        headers = {"Authorization": request.headers["Authorization"]}
        url = f"{it.own_url}{request.path}?{_known(request.query_string)}"
        form = dict(parse_qsl(_known(await request.text())))
        async with session.request(request.method, url, data=form or None, headers=headers) as response:
            body = await response.read()
            return web.Response(body=body, status=response.status, content_type="application/json")

    app = web.Application()
    app.router.add_post("/hook", hook)
    app.router.add_route("*", "/{path:.*}", onward)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield
    finally:
        await runner.cleanup()


def _known(form: str) -> str:
    fields = parse_qsl(form)
    return urlencode([(name, value) for name, value in fields if name.partition("[")[0] not in UNKNOWN_TO_IT])
