"""Load generator: each connection holds a pair of seats, pays for it and continues with the next pair.

python -m bench.purchase_load URL CONNECTIONS SECONDS PURCHASES TOKENS FIRST_SHOW SHOWS PAIRS PAIRS_PER_ROW
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

from bench.load_generator import content_length, label_pair

PAY = b'{"method":"tok_ok"}'


class Buyer(asyncio.Protocol):
    """One connection: a hold, its payment, the next hold."""

    def __init__(self, buyers: "Buyers") -> None:
        self._buyers = buyers
        self._buffer = b""
        self._began_at = 0.0
        self._is_paying = False
        self._token = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's class does not inherit from it
        self._hold()

    def _hold(self) -> None:
        if (request := self._buyers.next_hold()) is None:
            self._transport.close()
            self._buyers.leave()
            return
        self._token, path, body = request
        self._began_at, self._is_paying = time.perf_counter(), False
        self._send(path, body)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, body = self._buffer.partition(b"\r\n\r\n")
        if not end or len(body) < content_length(head):
            return
        self._buffer, status = b"", int(head[9:12])
        if status == 201 and not self._is_paying:
            self._is_paying = True
            self._send(f"/api/v1/bookings/{json.loads(body)['booking_id']}/pay", PAY)
            return
        self._buyers.add(status, self._began_at, is_paid=self._is_paying and status == 200)
        self._hold()

    def _send(self, path: str, body: bytes) -> None:
        self._transport.write(
            f"POST {path} HTTP/1.1\r\nHost: {self._buyers.host}\r\nAuthorization: Bearer {self._token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )


class Buyers:
    def __init__(self, host: str, seconds: float, purchases: int, arguments: list[str]) -> None:
        self.host = host
        self._stop_at = time.perf_counter() + seconds
        self._purchases_max = purchases
        self._tokens = Path(arguments[0]).read_text().split()
        self._first, self._shows, self._pairs, self._pairs_per_row = map(int, arguments[1:5])
        self._numbers = count()
        self._connected = 0
        self.ended = asyncio.Event()
        self.statuses: Counter[int] = Counter()
        self.paid: list[tuple[float, float]] = []  # when, and how long hold and payment took

    def arrive(self) -> None:
        self._connected += 1

    def leave(self) -> None:
        self._connected -= 1
        if not self._connected:
            self.ended.set()

    def next_hold(self) -> tuple[str, str, bytes] | None:
        i = next(self._numbers)
        show, pair = divmod(i, self._pairs)
        if (
            time.perf_counter() > self._stop_at
            or (self._purchases_max and i >= self._purchases_max)
            or show >= self._shows
        ):
            return None
        body = json.dumps({"seats": label_pair(pair, self._pairs_per_row)}).encode()
        return self._tokens[i % len(self._tokens)], f"/api/v1/shows/{self._first + show}/holds", body

    def add(self, status: int, began_at: float, *, is_paid: bool) -> None:
        self.statuses[status] += 1
        if is_paid:
            now = time.perf_counter()
            self.paid.append((now, now - began_at))


async def main(url: str, connections: int, seconds: float, purchases: int, arguments: list[str]) -> None:
    address = urlsplit(url)
    buyers, loop = Buyers(address.netloc, seconds, purchases, arguments), asyncio.get_running_loop()
    began = time.perf_counter()
    for _ in range(connections):
        buyers.arrive()
        await loop.create_connection(lambda: Buyer(buyers), address.hostname or "", address.port or 80)
    await buyers.ended.wait()
    took = sorted(took_s for _, took_s in buyers.paid)
    found = {
        "paid": len(took),
        "seconds": max((at for at, _ in buyers.paid), default=began) - began,
        "p50_ms": took[len(took) // 2] * 1000 if took else 0,
        "p99_ms": took[len(took) * 99 // 100] * 1000 if took else 0,
        "statuses": dict(buyers.statuses),
        "at_s": [round(at - began, 3) for at, _ in buyers.paid],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), sys.argv[5:]))
