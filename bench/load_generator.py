"""Load generator for machines without wrk: the arguments and the line of JSON of wrk with bench/wrk/*.lua.

python -m bench.load_generator -c CONNECTIONS -d SECONDS holds URL TOKENS FIRST_SHOW SHOWS PAIRS \\
    PAIRS_PER_ROW MODE RANGES PAUSE_MS
python -m bench.load_generator -c CONNECTIONS -d SECONDS [-H "Name: value"] pages URL PATHS PAUSE_MS
It costs several times the CPU time of wrk, so that rates are lower where both share a machine.
"""

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import cast
from urllib.parse import SplitResult, urlsplit

import uvloop


class Connection(asyncio.Protocol):
    """Sends a request, waits for its response, sends the next one."""

    def __init__(self, generator: "Generator") -> None:
        self._generator = generator
        self._buffer = b""
        self._sent_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's class does not inherit from it
        self._send()

    def connection_lost(self, _: Exception | None) -> None:
        self._generator.errors += not self._generator.is_over

    def _send(self) -> None:
        if not self._transport.is_closing():
            self._sent_at = time.perf_counter()
            self._transport.write(self._generator.next_request())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, body = self._buffer.partition(b"\r\n\r\n")
        if not end or len(body) < content_length(head):
            return
        self._buffer = b""
        self._generator.add(head[9:12].decode(), time.perf_counter() - self._sent_at)
        if self._generator.is_over:
            self._transport.close()
        elif self._generator.pause_s:
            asyncio.get_running_loop().call_later(self._generator.pause_s, self._send)
        else:
            self._send()


class Generator:
    def __init__(self, next_request: Callable[[], bytes], pause_s: float) -> None:
        self.next_request = next_request
        self.pause_s = pause_s
        self.is_over = False
        self.errors = 0
        self._statuses: Counter[str] = Counter()
        self._times_s: list[float] = []

    def add(self, status: str, took_s: float) -> None:
        self._statuses[status] += 1
        self._times_s.append(took_s)

    async def run(self, address: SplitResult, connections: int, seconds: float) -> None:
        loop, began = asyncio.get_running_loop(), time.perf_counter()
        for _ in range(connections):
            await loop.create_connection(lambda: Connection(self), address.hostname or "", address.port or 80)
        await asyncio.sleep(seconds)
        self.is_over = True
        times, took_s = sorted(self._times_s), time.perf_counter() - began
        found = {
            "requests": len(times),
            "seconds": took_s,
            "p50_ms": times[len(times) // 2] * 1000 if times else 0,
            "p99_ms": times[len(times) * 99 // 100] * 1000 if times else 0,
            "errors": self.errors,
            "statuses": dict(self._statuses),
        }
        print(json.dumps(found))


class HoldRequests:
    """See bench/wrk/holds.lua for the modes."""

    def __init__(self, host: str, arguments: list[str]) -> None:
        self._tokens = [
            line.replace(" ", "\r\nAdmission: ") for line in Path(arguments[0]).read_text().splitlines()
        ]
        self._first, self._shows, self._pairs, self._pairs_per_row = map(int, arguments[1:5])
        self._mode, self._ranges = arguments[5], int(arguments[6])
        self._host = host
        self._numbers = count()

    def __call__(self) -> bytes:
        i = next(self._numbers)
        place = i % len(self._tokens)
        token = self._tokens[place]
        if self._ranges:
            token += f"\r\nX-Forwarded-For: 198.18.{(place + 1) % self._ranges}.7"
        per_show = 8 if self._mode == "warm" else self._pairs
        show = self._first + (0 if self._mode == "sold_out" else i // per_show % self._shows)
        if self._mode in ("warm", "seats"):
            return self._build("GET", f"/api/v1/shows/{show}/seats", token, "")
        if self._mode.startswith("bytes"):
            return self._build("GET", f"/api/v1/bare/{self._mode[5:]}", token, "")
        path = "/api/v1/bare" if self._mode == "bare" else f"/api/v1/shows/{show}/holds"
        return self._build(
            "POST", path, token, json.dumps({"seats": label_pair(i % self._pairs, self._pairs_per_row)})
        )

    def _build(self, method: str, path: str, token: str, body: str) -> bytes:
        return (
            f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        ).encode()


class PageRequests:
    """The paths of a file in turn."""

    def __init__(self, host: str, paths: list[str], headers: list[str]) -> None:
        lines = "".join(f"{line}\r\n" for line in (f"Host: {host}", *headers))
        self._requests = [f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode() for path in paths]
        self._numbers = count()

    def __call__(self) -> bytes:
        return self._requests[next(self._numbers) % len(self._requests)]


class PageGenerator(Generator):
    """Counts a response with a status from 400 on as an error, as wrk does."""

    def add(self, status: str, took_s: float) -> None:
        super().add(status, took_s)
        self.errors += status >= "400"


def content_length(head: bytes) -> int:
    return int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)


def label_pair(pair: int, pairs_per_row: int) -> list[str]:
    """Two adjacent seats: A-1 and A-2, A-3 and A-4 …"""
    row, seat = pair // pairs_per_row, pair % pairs_per_row * 2 + 1
    first, last = divmod(row, 26)
    name = (chr(64 + first) if first else "") + chr(65 + last)
    return [f"{name}-{seat}", f"{name}-{seat + 1}"]


def main() -> None:
    parser = argparse.ArgumentParser("bench.load_generator", description=__doc__)
    parser.add_argument("-c", dest="connections", type=int, required=True)
    parser.add_argument("-d", dest="seconds", type=float, required=True)
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("kind", choices=("holds", "pages"))
    parser.add_argument("url")
    parser.add_argument("arguments", nargs="+")
    options = parser.parse_args()
    address = urlsplit(options.url)
    pause_s = int(options.arguments[-1]) / 1000
    if options.kind == "holds":
        generator = Generator(HoldRequests(address.netloc, options.arguments), pause_s)
    else:
        paths = Path(options.arguments[0]).read_text().split()
        generator = PageGenerator(PageRequests(address.netloc, paths, options.headers), pause_s)
    uvloop.run(generator.run(address, options.connections, options.seconds))


if __name__ == "__main__":
    main()
