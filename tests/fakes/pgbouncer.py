"""A connection pooler in front of a real PostgreSQL that behaves like PgBouncer where it matters to clients.

    client ─► startup ─► refused: "unsupported startup parameter", or welcomed with a made-up process id
           ─► linked to a server connection from its first message until no transaction is open

In session mode each client has a server connection of its own. In transaction mode all clients share one, and
hold it only while a transaction is open: prepared statements of one client meet those of another.
"""

import asyncio
import struct
from asyncio import StreamReader as Reader
from asyncio import StreamWriter as Writer
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, urlsplit

TRACKED = {"user", "database", "client_encoding", "datestyle", "timezone", "application_name"}
TRACKED |= {"standard_conforming_strings"}
SSL_REQUEST, PROTOCOL = 80877103, 196608
READY_AND_IDLE = b"Z" + struct.pack("!I", 5) + b"I"
MADE_UP_KEY = b"K" + struct.pack("!III", 12, 0x7FFF0001, 7)


class Server:
    """A connection to PostgreSQL, and whose turn it is."""

    def __init__(self, reader: Reader, writer: Writer, greeting: bytes) -> None:
        self.reader, self.writer, self.greeting = reader, writer, greeting
        self.turn = asyncio.Lock()


class PgBouncer:
    def __init__(self, database_url: str, *, mode: str) -> None:
        url = urlsplit(database_url)
        self._socket = (
            f"{parse_qs(url.query)['host'][0]}/.s.PGSQL.{parse_qs(url.query).get('port', ['5432'])[0]}"
        )
        self._who = {"user": url.username or "", "database": url.path.lstrip("/")}
        self._mode = mode
        self._shared: Server | None = None
        self._opening = asyncio.Lock()
        self._open: set[Writer] = set()

    async def accept(self, reader: Reader, writer: Writer) -> None:
        self._open.add(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await self._serve(reader, writer)
        writer.close()

    def close(self) -> None:
        for writer in self._open:
            writer.close()

    async def _serve(self, reader: Reader, writer: Writer) -> None:
        parameters = await self._read_startup(reader, writer)
        if unsupported := sorted(name for name in parameters if name.lower() not in TRACKED):
            writer.write(error(f"unsupported startup parameter: {unsupported[0]}"))
            await writer.drain()
            return
        server = await self._server()
        writer.write(server.greeting)
        messages: asyncio.Queue[bytes] = asyncio.Queue()
        reading = asyncio.create_task(read_all(reader, messages))
        message = b""
        while (message := message or await messages.get())[:1] != b"X":
            async with server.turn:
                message = await link(message, messages, writer, server)
        await reading

    async def _read_startup(self, reader: Reader, writer: Writer) -> dict[str, str]:
        while True:
            length, code = struct.unpack("!II", await reader.readexactly(8))
            rest = await reader.readexactly(length - 8)
            if code != SSL_REQUEST:
                assert code == PROTOCOL
                words = rest.decode().split("\0")
                return dict(zip(words[:-2:2], words[1:-2:2], strict=True))
            writer.write(b"N")

    async def _server(self) -> Server:
        if self._mode == "session":
            return await self._connect()
        async with self._opening:
            self._shared = self._shared or await self._connect()
        return self._shared

    async def _connect(self) -> Server:
        reader, writer = await asyncio.open_unix_connection(self._socket)
        self._open.add(writer)
        words = "".join(f"{name}\0{value}\0" for name, value in self._who.items()).encode() + b"\0"
        writer.write(struct.pack("!II", len(words) + 8, PROTOCOL) + words)
        greeting = b""
        while True:
            message = await read_message(reader)
            greeting += MADE_UP_KEY if message[:1] == b"K" else message
            if message[:1] == b"Z":
                return Server(reader, writer, greeting)


async def read_message(reader: Reader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)


async def read_all(reader: Reader, messages: asyncio.Queue[bytes]) -> None:
    """Every message of a client, up to its farewell."""
    message = b""
    while message[:1] != b"X":
        try:
            message = await read_message(reader)
        except (asyncio.IncompleteReadError, ConnectionError):
            message = b"X"
        await messages.put(message)


async def link(message: bytes, messages: asyncio.Queue[bytes], answers: Writer, server: Server) -> bytes:
    """Pass messages on both ways until no transaction is open. Returns a message that came too late."""
    relaying = asyncio.create_task(relay(server.reader, answers))
    while True:
        if message[:1] == b"X":
            relaying.cancel()
            return message
        server.writer.write(message)
        following = asyncio.create_task(messages.get())
        await asyncio.wait((relaying, following), return_when=asyncio.FIRST_COMPLETED)
        if relaying.done():
            return following.result() if following.done() or not following.cancel() else b""
        message = following.result()


async def relay(server: Reader, client: Writer) -> None:
    """Every answer, until the server says that no transaction is open."""
    message = b""
    while message != READY_AND_IDLE:
        message = await read_message(server)
        client.write(message)
    await client.drain()


def error(words: str) -> bytes:
    fields = f"SFATAL\0C08P01\0M{words}\0\0".encode()
    return b"E" + struct.pack("!I", len(fields) + 4) + fields


@asynccontextmanager
async def pgbouncer(database_url: str, *, mode: str) -> AsyncIterator[str]:
    """The address of a pooler in front of this database."""
    pooler = PgBouncer(database_url, mode=mode)
    server = await asyncio.start_server(pooler.accept, "127.0.0.1", 0)
    url = urlsplit(database_url)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"postgresql://{url.username}@127.0.0.1:{port}{url.path}"
    finally:
        server.close()
        pooler.close()
