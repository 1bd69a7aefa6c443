"""Floods of requests from many addresses, at the box office itself or at nginx in front of it."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import httpx2

from tests.support.nginx_front import Behind
from tests.support.shows import API

CONNECTIONS_MAX = 20  # per address
_networks = count(1)

Body = Mapping[str, str]


@dataclass(frozen=True)
class Flood:
    """What became of it."""

    sent: int
    reached: int  # the box office
    statuses: Counter[int]
    took_s: float

    def upper(self, quota: int, window_s: int, addresses: int = 1) -> float:
        """What a bucket of this size may have given out by the end of it."""
        return addresses * (quota + 1 + self.took_s * quota / window_s)


@dataclass(frozen=True)
class WayIn:
    name: str
    url: str
    behind: Behind

    async def flood(self, path: str, bodies: Sequence[Body], addresses: Sequence[str]) -> Flood:
        """Each body once, from the addresses in turn, all at the same time."""
        before, began = self.behind.count(API + path, "POST"), time.monotonic()
        answers = await asyncio.gather(
            *(
                self.send(path, bodies[place :: len(addresses)], address)
                for place, address in enumerate(addresses)
            )
        )
        statuses = Counter(status for some in answers for status in some)
        reached = self.behind.count(API + path, "POST") - before
        return Flood(len(bodies), reached, statuses, time.monotonic() - began)

    async def send(self, path: str, bodies: Sequence[Body], address: str) -> list[int]:
        """The status of each answer."""
        links = httpx2.Limits(max_connections=CONNECTIONS_MAX)
        transport = httpx2.AsyncHTTPTransport(local_address=address, limits=links)
        async with httpx2.AsyncClient(transport=transport, base_url=self.url, timeout=120) as client:
            answers = await asyncio.gather(*(client.post(API + path, json=body) for body in bodies))
        return [answer.status_code for answer in answers]


def new_addresses(how_many: int) -> list[str]:
    """Of this machine, in a network that no other flood has."""
    network = next(_networks)
    return [f"127.{100 + n // 250}.{network}.{1 + n % 250}" for n in range(how_many)]
