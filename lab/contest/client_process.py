"""A process with many clients: python -m lab.contest.client_process. The director sends it commands.

The director stops it for real (SIGSTOP) while its clients are in the middle of something.
"""

import asyncio
import os
import signal
import sys
import time
import traceback
from collections.abc import Awaitable, Callable

import asyncpg
import msgspec
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from holdfast.engines.errors import EngineDown
from lab.contest.load import run_load
from lab.contest.messages import (
    Command,
    Event,
    Go,
    Load,
    Note,
    Open,
    Point,
    Race,
    Reply,
    Rivals,
    Victims,
    What,
)
from lab.strategies import find_strategy
from lab.strategies.strategy import Hold, Strategy, Tools, promised_until

POOL = 20  # connections to each engine per process
REDIS_TIMEOUT_S = 0.5
# Replies have a descriptor of their own: what the product logs goes to the terminal.
REPLIES = os.dup(1)
PAUSE_S = 0.02  # of a rival between two tries
BROKEN = (OSError, TimeoutError, RedisError, asyncpg.PostgresError, asyncpg.InterfaceError, EngineDown)

Critical = Callable[[str, int, int], Awaitable[None]]


class Clients:
    """The clients of this process, on one strategy."""

    def __init__(self, setup: Open) -> None:
        self.setup = setup
        self.events: list[Event] = []
        self.notes: list[Note] = []
        self.critical: Critical = pass_by
        self.go = asyncio.Event()
        self.strategy: Strategy
        self.tools: Tools

    async def open(self) -> None:
        setup = self.setup
        lock_timeout = {"lock_timeout": f"{setup.times.wait_ms}ms"}
        self.tools = Tools(
            show_id=setup.show_id,
            times=setup.times,
            postgres=await asyncpg.create_pool(
                setup.database_url,
                min_size=POOL if setup.is_warm else 1,
                max_size=POOL,
                server_settings=lock_timeout,
                reset=leave_as_it_is,
            ),
            redis=connect(setup.redis_url),
            voters=[connect(url) for url in setup.voter_urls],
            database_url=setup.database_url,
            redis_url=setup.redis_url,
            critical=lambda step, seat, client: self.critical(step, seat, client),
            note=self.note,
        )
        self.strategy = find_strategy(setup.strategy)(self.tools)
        await self.strategy.open()

    async def close(self) -> None:
        await self.strategy.close()
        for redis in (self.tools.redis, *self.tools.voters):
            await redis.aclose()
        await self.tools.postgres.close()

    def note(self, client: int, text: str) -> None:
        self.notes.append(Note(time.monotonic(), name_of(client), text))

    def add(self, client: int, seat: int, what: What, until_s: float = 0.0) -> None:
        self.events.append(Event(time.monotonic(), client, seat, what, until_s))

    def reply(self) -> Reply:
        reply = Reply(events=self.events, notes=self.notes)
        self.events, self.notes = [], []
        return reply

    async def hold(self, seat: int, client: int) -> Hold | None:
        """None: refused, or an engine is away."""
        try:
            hold = await self.strategy.hold(seat, client)
        except BROKEN as error:
            self.add(client, seat, "error")
            self.note(client, f"gets an error instead of a hold: {type(error).__name__}")
            return None
        if hold is None:
            self.add(client, seat, "refused")
            return None
        self.add(client, seat, "held", promised_until(time.monotonic(), self.setup.times))
        self.note(client, f'gets "yes, you hold seat {seat}"')
        return hold

    async def buy(self, hold: Hold) -> None:
        """Pay, and confirm. While an engine is away: again, as a payment's webhook is repeated."""
        give_up_at = time.monotonic() + self.setup.times.hold_ttl_ms / 1000
        while True:
            try:
                if (paying := await self.strategy.start_payment(hold)) is None:
                    self.add(hold.client, hold.seat, "lapsed")
                    self.note(hold.client, "may not pay: the hold is over")
                    return
                is_sold = await self.strategy.confirm(paying)
                break
            except BROKEN as error:
                self.note(hold.client, f"gets an error instead of the sale: {type(error).__name__}")
                if time.monotonic() > give_up_at:
                    self.add(hold.client, hold.seat, "error")
                    return
                await asyncio.sleep(PAUSE_S)
        self.add(hold.client, hold.seat, "sold" if is_sold else "lost")
        outcome = f'gets "seat {hold.seat} is yours"' if is_sold else "is refused: the seat is gone"
        self.note(hold.client, outcome)


async def pass_by(step: str, seat: int, client: int) -> None:
    """Nothing stops a client in ordinary times."""


class Gate:
    """Stops every client at one point. When all are there, the director gets a line."""

    def __init__(self, clients: Clients, expected: int) -> None:
        self._clients = clients
        self._missing = expected

    async def stop(self, client: int, text: str) -> None:
        self._clients.note(client, text)
        self._missing -= 1
        if self._missing == 0:
            send(Reply(parked=True))
        await self._clients.go.wait()
        self._clients.note(client, "goes on where it was")

    def stop_process(self) -> None:
        """For a strategy that cannot wait in the middle: the process stops itself, once."""
        if self._missing > 0:
            self._missing = 0
            self._clients.note(0, f"process {os.getpid()} stops between Redis and PostgreSQL")
            send(Reply(parked=True))
            os.kill(os.getpid(), signal.SIGSTOP)


async def run_victims(clients: Clients, command: Victims) -> None:
    clients.go.clear()
    gate = Gate(clients, len(command.seats))
    point: Point = command.point

    async def critical(step: str, seat: int, client: int) -> None:
        if step == point:
            what = "free" if step == "hold" else "held for it"
            await gate.stop(client, f"has seen that seat {seat} is {what}, and stops before it writes")

    async def one(seat: int, client: int) -> None:
        hold = await clients.hold(seat, client)
        if hold is None:
            return
        if point == "held":
            await gate.stop(client, f"holds seat {seat}, and stops before it pays")
        if point == "paying":
            paying = await clients.strategy.start_payment(hold)
            await gate.stop(client, f"pays for seat {seat}, and the bank takes its time")
            assert paying is not None, "the hold has just been acknowledged"
            clients.add(client, seat, "sold" if await clients.strategy.confirm(paying) else "lost")
            return
        await clients.buy(hold)

    if point == "hold" and clients.strategy.stop_inside(gate.stop_process):
        clients.go.set()
    else:
        clients.critical = critical
    await asyncio.gather(*(one(seat, command.first_client + i) for i, seat in enumerate(command.seats)))
    clients.critical = pass_by


async def run_rivals(clients: Clients, command: Rivals) -> None:
    give_up_at = time.monotonic() + command.within_s

    async def one(seat: int, client: int) -> None:
        while (hold := await clients.hold(seat, client)) is None:
            if time.monotonic() > give_up_at:
                clients.note(client, f"never gets seat {seat}")
                return
            await asyncio.sleep(PAUSE_S)
        await clients.buy(hold)

    await asyncio.gather(*(one(seat, command.first_client + i) for i, seat in enumerate(command.seats)))


async def run_race(clients: Clients, command: Race) -> None:
    meetings: dict[tuple[str, int], asyncio.Event] = {}

    async def meet(step: str, seat: int, client: int) -> None:
        """Both clients have read before either writes: unless a lock stops the second one."""
        is_second = (step, seat) in meetings
        both = meetings.setdefault((step, seat), asyncio.Event())
        if is_second:
            both.set()
        try:
            await asyncio.wait_for(both.wait(), command.wait_s)
        except TimeoutError:
            clients.note(client, "waited in vain for the other one")

    async def one(seat: int, client: int) -> None:
        if (hold := await clients.hold(seat, client)) is not None:
            await clients.buy(hold)

    clients.critical = meet
    first = command.first_client
    await asyncio.gather(
        *(one(seat, first + 2 * i + j) for i, seat in enumerate(command.seats) for j in (0, 1))
    )
    clients.critical = pass_by


async def leave_as_it_is(connection: object) -> None:
    """No strategy leaves anything behind in a session. Cleaning up would cost each of them a round trip."""


def connect(url: str) -> Redis:
    """Without retries: a lost answer is unknown, and only the strategy may repeat a command."""
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=POOL,
        timeout=None,
        retry=Retry(NoBackoff(), 0),
        socket_timeout=REDIS_TIMEOUT_S,
        socket_connect_timeout=REDIS_TIMEOUT_S,
    )
    return Redis.from_pool(pool)


def name_of(client: int) -> str:
    return f"client {client}" if client else "–"


def send(reply: Reply) -> None:
    line = msgspec.json.encode(reply) + b"\n"
    while line:
        line = line[os.write(REPLIES, line) :]


async def serve() -> None:
    """One command at a time; only `Go` comes while another one is carried out."""
    decode = msgspec.json.Decoder(Command).decode
    reader = asyncio.StreamReader(limit=2**24)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    clients: Clients | None = None
    running: asyncio.Task[None] | None = None
    while line := await reader.readline():
        match decode(line):
            case Go() if clients is not None:
                clients.go.set()
            case Open() as setup:
                if clients is not None:
                    await clients.close()
                clients = Clients(setup)
                await clients.open()
                send(Reply())
            case command if clients is not None:
                running = asyncio.create_task(carry_out(clients, command))
    if running is not None:
        await running
    if clients is not None:
        await clients.close()


async def carry_out(clients: Clients, command: Command) -> None:
    try:
        await answer(clients, command)
    except Exception:
        traceback.print_exc()
        os._exit(1)  # the director notices at once; a task's error would wait for the end


async def answer(clients: Clients, command: Command) -> None:
    match command:
        case Victims():
            await run_victims(clients, command)
        case Rivals():
            await run_rivals(clients, command)
        case Race():
            await run_race(clients, command)
        case Load():
            load = await run_load(clients.strategy, command, clients.add, BROKEN)
            send(msgspec.structs.replace(clients.reply(), load=load))
            return
    send(clients.reply())


if __name__ == "__main__":
    os.dup2(2, 1)
    asyncio.run(serve())
