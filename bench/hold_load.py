"""Our own load generator, for machines without wrk: the same arguments, the same line of JSON at the end."""

import asyncio
import json
import sys
import time
from collections import Counter
from itertools import count
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import uvloop


class Caller(asyncio.Protocol):
    """One connection: a request, its answer, the next request."""

    def __init__(self, crowd: "Crowd") -> None:
        self._crowd = crowd
        self._buffer = b""
        self._asked_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by descent
        self._ask()

    def _ask(self) -> None:
        self._asked_at = time.perf_counter()
        self._transport.write(self._crowd.request())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        if len(rest) < size:
            return
        self._buffer = b""
        self._crowd.note(head[9:12].decode(), time.perf_counter() - self._asked_at)
        if self._crowd.is_over:
            self._transport.close()
        elif self._crowd.pause_s:
            asyncio.get_running_loop().call_later(self._crowd.pause_s, self._ask)
        else:
            self._ask()


class Crowd:
    def __init__(self, host: str, words: list[str]) -> None:
        self._tokens = Path(words[0]).read_text().split()
        self._first, self._shows, self._pairs, self._pairs_a_row = map(int, words[1:5])
        self._mode, self.pause_s = words[5], int(words[6]) / 1000
        self._host = host
        self._at = count()
        self.is_over = False
        self.answers: Counter[str] = Counter()
        self.times_s: list[float] = []

    def request(self) -> bytes:
        i = next(self._at)
        token = self._tokens[i % len(self._tokens)]
        nth = 0 if self._mode == "lose" else i // (8 if self._mode == "warm" else self._pairs) % self._shows
        path = f"/api/v1/shows/{self._first + nth}"
        if self._mode in ("warm", "seats"):
            return self._written("GET", f"{path}/seats", token, "")
        if self._mode.startswith("bytes"):
            return self._written("GET", f"/api/v1/bare/{self._mode[5:]}", token, "")
        body = json.dumps({"seats": labels(i % self._pairs, self._pairs_a_row)})
        return self._written("POST", "/api/v1/bare" if self._mode == "bare" else f"{path}/holds", token, body)

    def _written(self, method: str, path: str, token: str, body: str) -> bytes:
        return (
            f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        ).encode()

    def note(self, status: str, took_s: float) -> None:
        self.answers[status] += 1
        self.times_s.append(took_s)


def labels(pair: int, pairs_a_row: int) -> list[str]:
    """Two seats beside each other: A-1 and A-2, A-3 and A-4 …"""
    row, seat = pair // pairs_a_row, pair % pairs_a_row * 2 + 1
    first, last = divmod(row, 26)
    name = (chr(64 + first) if first else "") + chr(65 + last)
    return [f"{name}-{seat}", f"{name}-{seat + 1}"]


async def main(url: str, connections: int, seconds: int, words: list[str]) -> None:
    address = urlsplit(url)
    assert address.hostname
    assert address.port
    host, port = address.hostname, address.port
    crowd = Crowd(address.netloc, words)
    loop, began = asyncio.get_running_loop(), time.perf_counter()
    for _ in range(connections):
        await loop.create_connection(lambda: Caller(crowd), host, port)
    await asyncio.sleep(seconds)
    crowd.is_over = True
    times, took_s = sorted(crowd.times_s), time.perf_counter() - began
    found = {
        "requests": len(times),
        "seconds": took_s,
        "p50_ms": times[len(times) // 2] * 1000,
        "p99_ms": times[len(times) * 99 // 100] * 1000,
        "errors": 0,
        "answers": dict(crowd.answers),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))
