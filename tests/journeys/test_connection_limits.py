"""A worker reached without a proxy: endless heads, slow heads and floods of connections end early."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import uvicorn
from starlette.responses import PlainTextResponse

from holdfast.config import Config
from holdfast.web.connections import limited_http
from tests.support.uvicorn_server import EmbeddedServer
from tests.support.wait import until

HEAD_BYTES_MAX = 65_536
PATIENCE_S = 30
GET = b"GET / HTTP/1.1\r\nhost: a.example\r\n"
RESET = struct.pack("ii", 1, 0)  # close at once
HELLO = PlainTextResponse("hello")
Connect = Callable[[], Awaitable["Client"]]


class Client:
    """One connection, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    async def status(self) -> int:
        """Of the next answer; 0: the connection was closed without one."""
        async with asyncio.timeout(PATIENCE_S):
            line = await self.reader.readline()
        return int(line.split()[1]) if line else 0

    async def read_answer(self) -> bytes:
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split()[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length")
        )
        return await self.reader.readexactly(length)


@asynccontextmanager
async def a_worker(app: Any = HELLO, **settings: Any) -> AsyncIterator[Connect]:
    config = replace(Config(trusted_proxies="192.0.2.1"), **settings)
    made_by = uvicorn.Config(app, http=limited_http(config), lifespan="off", log_config=None, ws="none")
    server, clients = EmbeddedServer(made_by), list[Client]()
    with socket.create_server(("127.0.0.1", 0)) as port:

        async def connect() -> Client:
            client = Client(*await asyncio.open_connection(*port.getsockname()))
            clients.append(client)
            return client

        serving = asyncio.create_task(server.serve(sockets=[port]))
        await until(lambda: asyncio.sleep(0, server.started))
        try:
            yield connect
        finally:
            for client in clients:
                client.writer.close()
            server.should_exit = True
            await serving


async def test_requests_within_the_limits_are_answered_on_one_connection() -> None:
    async with a_worker() as connect:
        client = await connect()

        for _ in range(3):
            await client.send(GET[:10], GET[10:], b"\r\n")
            assert await client.read_answer() == b"hello"


async def test_a_client_that_left_before_it_was_accepted_is_not_served() -> None:
    """It has no address any more: as if it came through a unix socket it would be trusted like a proxy."""
    paths = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        paths.append(scope["path"])
        await HELLO(scope, receive, send)

    async with a_worker(app) as connect:
        here = await connect()
        with socket.create_connection(here.writer.get_extra_info("peername")) as gone:
            # Nothing is awaited here, so the worker accepts it when all of this has happened.
            gone.sendall(GET.replace(b"/ ", b"/gone ") + b"x-forwarded-for: 198.51.100.7\r\n\r\n")
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        for _ in range(20):  # by then the worker has turned to it
            await here.send(GET, b"\r\n")
            assert await here.read_answer() == b"hello"

        assert paths == ["/"] * 20


@pytest.mark.parametrize("ending", [b"", b"\r\n\r\n"], ids=["unfinished", "complete"])
async def test_a_head_that_is_too_long_is_refused(ending: bytes) -> None:
    async with a_worker() as connect:
        client = await connect()

        await client.send(GET + b"x: " + b"y" * (2 * HEAD_BYTES_MAX) + ending)

        assert await client.status() == 431


async def test_many_short_headers_are_refused_too() -> None:
    async with a_worker() as connect:
        client = await connect()

        await client.send(GET, *[b"x: %s\r\n" % (b"y" * 1000)] * 100)

        assert await client.status() == 431


async def test_a_second_head_on_a_connection_is_limited_too() -> None:
    async with a_worker() as connect:
        client = await connect()
        await client.send(GET + b"\r\n")
        await client.read_answer()

        await client.send(GET, *[b"x: %s\r\n" % (b"y" * 30_000)] * 20)

        assert await client.status() == 431


async def test_a_long_body_is_not_part_of_the_head() -> None:
    async with a_worker() as connect:
        client = await connect()
        body = b"b" * (3 * HEAD_BYTES_MAX)

        await client.send(
            b"POST / HTTP/1.1\r\nhost: a.example\r\ncontent-length: %d\r\n\r\n" % len(body), body
        )

        assert await client.status() == 200


async def test_half_a_head_is_not_waited_for_permanently() -> None:
    async with a_worker(head_timeout_s=1) as connect:
        client = await connect()

        await client.send(GET)

        assert await client.status() == 408


async def test_a_connection_that_sends_nothing_is_closed() -> None:
    async with a_worker(head_timeout_s=1) as connect:
        assert await (await connect()).status() == 0


@pytest.mark.parametrize(
    ("setting", "status"), [("connections_max", 503), ("connections_per_address_max", 429)]
)
async def test_a_connection_too_many_is_refused_and_the_others_go_on(setting: str, status: int) -> None:
    async with a_worker(**{setting: 2}) as connect:
        first, second, third = [await connect() for _ in range(3)]
        assert await third.status() == status
        for client in (first, second):
            await client.send(GET + b"\r\n")
            assert await client.read_answer() == b"hello"
        second.writer.close()
        third.writer.close()

        async def is_admitted() -> bool:
            client = await connect()
            await client.send(GET + b"\r\n")
            return await client.status() == 200

        await until(is_admitted)


async def test_a_trusted_proxy_has_as_many_connections_as_it_likes() -> None:
    async with a_worker(connections_per_address_max=1, trusted_proxies="127.0.0.1") as connect:
        for client in [await connect() for _ in range(3)]:
            await client.send(GET + b"\r\n")
            assert await client.read_answer() == b"hello"
