"""Load generator: purchases at a fixed rate, however long each takes. A buyer holds a seat, then pays for it.

python -m bench.paced_purchase_load URL RATE TOKENS SHOW SEATS
TOKENS and SEATS are files with one token or label per line. Prints one line of JSON. A hold is timed from
when it was due, so that waiting for a connection counts too.
"""

import asyncio
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvloop

from bench.load_generator import content_length

PAY = b'{"method":"tok_ok"}'
CONNECTIONS = 64


class Buyers:
    def __init__(self, url: str, tokens: list[str], show: int) -> None:
        address = urlsplit(url)
        self._host, self._port = address.hostname, address.port
        self._tokens = tokens
        self._show = show
        self._free: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
        self.statuses: Counter[int] = Counter()
        self.hold_s: list[float] = []
        self.pay_s: list[float] = []

    async def connect(self) -> None:
        for _ in range(CONNECTIONS):
            self._free.put_nowait(await asyncio.open_connection(self._host, self._port))

    async def buy(self, number: int, label: str, due_at: float) -> None:
        token, body = self._tokens[number % len(self._tokens)], json.dumps({"seats": [label]}).encode()
        status, booking = await self._post(f"/shows/{self._show}/holds", body, token)
        self.hold_s.append(time.perf_counter() - due_at)
        if status == 201:
            began = time.perf_counter()
            await self._post(f"/bookings/{booking['booking_id']}/pay", PAY, token)
            self.pay_s.append(time.perf_counter() - began)

    async def _post(self, path: str, body: bytes, token: str) -> tuple[int, dict[str, Any]]:
        reader, writer = await self._free.get()
        writer.write(
            f"POST /api/v1{path} HTTP/1.1\r\nHost: {self._host}\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = await reader.readuntil(b"\r\n\r\n")
        response = await reader.readexactly(content_length(head))
        self._free.put_nowait((reader, writer))
        status = int(head[9:12])
        self.statuses[status] += 1
        return status, json.loads(response)


async def main(url: str, rate: float, tokens: list[str], show: int, seats: list[str]) -> None:
    buyers = Buyers(url, tokens, show)
    await buyers.connect()
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number, label in enumerate(seats):
            due_at = began + number / rate
            await asyncio.sleep(max(0.0, due_at - time.perf_counter()))
            group.create_task(buyers.buy(number, label, due_at))
    times = {"hold_ms": buyers.hold_s, "pay_ms": buyers.pay_s}
    found = {name: [round(each * 1000, 3) for each in sorted(taken_s)] for name, taken_s in times.items()}
    print(json.dumps({**found, "statuses": dict(buyers.statuses)}))


if __name__ == "__main__":
    url, rate, tokens, show, seats = sys.argv[1:]
    uvloop.run(
        main(
            url,
            float(rate),
            Path(tokens).read_text().split(),
            int(show),
            Path(seats).read_text().splitlines(),
        )
    )
