"""Buyers: each connection holds a pair of seats, pays for it, and goes on to the next pair.

python -m bench.purchase_load URL CONNECTIONS SECONDS PURCHASES TOKENS FIRST_SHOW SHOWS PAIRS PAIRS_A_ROW
Ends after SECONDS or PURCHASES (0: no limit), and prints one line of JSON.
"""

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

from bench.hold_load import labels

PAY = b'{"method":"tok_ok"}'


class Buyer(asyncio.Protocol):
    """One connection: a hold, its payment, the next hold."""

    def __init__(self, crowd: "Buyers") -> None:
        self._crowd = crowd
        self._buffer = b""
        self._began_at = 0.0
        self._is_paying = False
        self._token = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by descent
        self._hold()

    def _hold(self) -> None:
        if (wanted := self._crowd.next_pair()) is None:
            self._transport.close()
            self._crowd.gone()
            return
        self._token, path, body = wanted
        self._began_at, self._is_paying = time.perf_counter(), False
        self._send(path, body)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        if len(rest) < size:
            return
        self._buffer, status = b"", int(head[9:12])
        if status == 201 and not self._is_paying:
            self._is_paying = True
            self._send(f"/api/v1/bookings/{json.loads(rest)['booking_id']}/pay", PAY)
            return
        self._crowd.note(status, self._began_at, is_paid=self._is_paying and status == 200)
        self._hold()

    def _send(self, path: str, body: bytes) -> None:
        self._transport.write(
            f"POST {path} HTTP/1.1\r\nHost: {self._crowd.host}\r\nAuthorization: Bearer {self._token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )


class Buyers:
    def __init__(self, host: str, seconds: float, purchases: int, words: list[str]) -> None:
        self.host = host
        self._stop_at = time.perf_counter() + seconds
        self._most = purchases
        self._tokens = Path(words[0]).read_text().split()
        self._first, self._shows, self._pairs, self._pairs_a_row = map(int, words[1:5])
        self._at = count()
        self._under_way = 0
        self.over = asyncio.Event()
        self.answers: Counter[int] = Counter()
        self.paid: list[tuple[float, float]] = []  # when, and how long hold and payment took

    def came(self) -> None:
        self._under_way += 1

    def gone(self) -> None:
        self._under_way -= 1
        if not self._under_way:
            self.over.set()

    def next_pair(self) -> tuple[str, str, bytes] | None:
        i = next(self._at)
        show, pair = divmod(i, self._pairs)
        if time.perf_counter() > self._stop_at or (self._most and i >= self._most) or show >= self._shows:
            return None
        body = json.dumps({"seats": labels(pair, self._pairs_a_row)}).encode()
        return self._tokens[i % len(self._tokens)], f"/api/v1/shows/{self._first + show}/holds", body

    def note(self, status: int, began_at: float, *, is_paid: bool) -> None:
        self.answers[status] += 1
        if is_paid:
            now = time.perf_counter()
            self.paid.append((now, now - began_at))


async def main(url: str, connections: int, seconds: float, purchases: int, words: list[str]) -> None:
    address = urlsplit(url)
    assert address.hostname
    assert address.port
    crowd, loop = Buyers(address.netloc, seconds, purchases, words), asyncio.get_running_loop()
    began = time.perf_counter()
    for _ in range(connections):
        crowd.came()
        await loop.create_connection(lambda: Buyer(crowd), address.hostname, address.port)
    await crowd.over.wait()
    took = sorted(took_s for _, took_s in crowd.paid)
    found = {
        "paid": len(took),
        "seconds": max((at for at, _ in crowd.paid), default=began) - began,
        "p50_ms": took[len(took) // 2] * 1000 if took else 0,
        "p99_ms": took[len(took) * 99 // 100] * 1000 if took else 0,
        "answers": dict(crowd.answers),
        "at_s": [round(at - began, 3) for at, _ in crowd.paid],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), sys.argv[5:]))
