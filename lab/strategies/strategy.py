"""What every strategy offers: hold a seat for a while, confirm the sale, release the seat.

    hold ─► None            refused: another client has the seat, or is just getting it
         └► Hold            acknowledged: the client may pay
              start_payment  most strategies have no such state; then nothing happens here
              confirm        True is acknowledged: the seat is sold to this client
              release        the client has changed its mind

A strategy raises what its engines raise: the caller then knows nothing about the outcome.
"""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import asyncpg
from msgspec import Struct
from redis.asyncio import Redis

from holdfast.engines.postgres import Queries, Row

if TYPE_CHECKING:
    Pool = asyncpg.Pool[asyncpg.Record]

Q = Queries("lab.strategies")

ON_ITS_WAY_MS = 50  # an answer


class Times(Struct, frozen=True):
    hold_ttl_ms: int  # what a hold promises
    lock_ttl_ms: int  # of a lock in Redis; it has to outlast the critical section
    wait_ms: int = 1000  # for a row or a lock that another client has


def promised_until(now_s: float, times: Times) -> float:
    """The end of a hold that was acknowledged now: the engine's clock began a moment before the answer."""
    return now_s + (times.hold_ttl_ms - ON_ITS_WAY_MS) / 1000


@dataclass(frozen=True)
class Hold:
    seat: int
    client: int
    hold_id: str = field(default_factory=lambda: secrets.token_hex(8))
    detail: Any = None


class Tools(Struct):
    """What a strategy works with; the same for all."""

    show_id: int
    times: Times
    postgres: "Pool"
    redis: "Redis"
    voters: Sequence["Redis"]  # the five servers of Redlock
    database_url: str
    redis_url: str
    # Called inside the critical section, between a check and the write that relies on it. The contest stops
    # clients there; otherwise it returns at once.
    critical: Callable[[str, int, int], Awaitable[None]]  # "hold" or "confirm", seat, client
    note: Callable[[int, str], None]  # a line of the log: client, what it did
    retries: int = 0


class Strategy(ABC):
    name: ClassVar[str]
    title: ClassVar[str]
    uses_redis: ClassVar[bool] = False
    has_seat_rows: ClassVar[bool] = True  # needs a row per seat before the sale

    def __init__(self, tools: Tools) -> None:
        self.tools = tools
        self.show_id = tools.show_id
        self.times = tools.times
        self.postgres = tools.postgres

    async def open(self) -> None:  # noqa: B027
        """Load what the first client must not wait for."""

    async def close(self) -> None:  # noqa: B027
        """Close what `open` has opened."""

    @abstractmethod
    async def hold(self, seat: int, client: int) -> Hold | None: ...

    @abstractmethod
    async def confirm(self, hold: Hold) -> bool: ...

    async def start_payment(self, hold: Hold) -> Hold | None:
        return hold

    def stop_inside(self, stop: Callable[[], None]) -> bool:
        """Call `stop` in the middle of the next hold, if `critical` is not called there; else False."""
        return False

    async def release(self, hold: Hold) -> None:
        await self.postgres.execute(Q.free_seat, self.show_id, hold.seat, hold.hold_id)

    def held_values(self, hold: Hold) -> tuple[Any, ...]:
        """The arguments of write_held and its variants."""
        return self.show_id, hold.seat, hold.hold_id, hold.client, self.times.hold_ttl_ms

    def sold_values(self, hold: Hold) -> tuple[Any, ...]:
        """The arguments of write_sold and its variants."""
        return self.show_id, hold.seat, hold.hold_id, hold.client


def is_free(seat: Row) -> bool:
    return bool(seat["state"] == "free" or (seat["state"] == "held" and not seat["is_current"]))


def is_held_by(seat: Row, hold: Hold) -> bool:
    return bool(seat["state"] == "held" and seat["is_current"] and seat["hold_id"] == hold.hold_id)
