"""A contest under load: so many clients, so many seats on offer, for less than a second; and its figures."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

import asyncpg
from msgspec import Struct

from bench.cpu import BACKENDS, BACKGROUND, VALKEY, find_groups, read_cpu_us
from holdfast.engines.postgres import Queries
from lab.contest.duel import Arena
from lab.contest.messages import Load, Open, Reply
from lab.contest.oracle import Verdict, jain_index, judge
from lab.contest.servers import Servers, Valkey
from lab.strategies.strategy import Times

Q = Queries("lab.contest")

TIMES = Times(hold_ttl_ms=20_000, lock_ttl_ms=5_000)
SECONDS = 1.0
PROCESSES = 2  # with clients: as many as the machine has cores
STADIUM = 50_000
HALL = 10_000  # seats to sell one after the other, or 200 at a time
CLIENTS = "clients"


@dataclass(frozen=True)
class Cell:
    offer: int  # seats on offer at the same time
    clients: int

    @property
    def seats(self) -> int:
        return STADIUM if self.offer == STADIUM else HALL


CELLS = (
    *(Cell(1, clients) for clients in (1, 10, 100, 1000)),
    *(Cell(200, clients) for clients in (1, 10, 100, 1000)),
    *(Cell(STADIUM, clients) for clients in (1, 100, 1000)),
)


class CrowdResult(Struct, frozen=True):
    offer: int
    clients: int
    answers_per_s: float
    sales_per_s: float  # a seat that was sold twice counts once
    p50_ms: float  # of the answer to a hold
    p99_ms: float
    retries_per_sale: float
    fairness: float  # Jain index over the clients' answers
    fairness_of_sales: float
    statements_per_sale: float
    redis_commands_per_sale: float
    cpu_us_per_sale: dict[str, float]
    errors: int
    verdict: Verdict


class Meter:
    """What the engines and processes have done so far."""

    def __init__(self, servers: Servers, process_ids: Sequence[int]) -> None:
        self._servers = servers
        self._process_ids = process_ids
        self._connection: asyncpg.Connection[asyncpg.Record]

    async def open(self) -> None:
        self._connection = await asyncpg.connect(self._servers.database_url)

    async def close(self) -> None:
        await self._connection.close()

    async def read(self) -> dict[str, float]:
        groups = find_groups()
        groups = {name: groups[name] for name in (BACKENDS, BACKGROUND, VALKEY)}
        found: dict[str, float] = read_cpu_us({**groups, CLIENTS: list(self._process_ids)})
        found["statements"] = await self._connection.fetchval(Q.statements)
        servers = (self._servers.main, *self._servers.voters)
        found["commands"] = sum(await asyncio.gather(*(count_commands(server) for server in servers)))
        return found


async def count_commands(server: Valkey) -> int:
    return int((await server.call("INFO", "stats"))["total_commands_processed"])


async def prepare_counters(servers: Servers) -> None:
    """PostgreSQL is started again, with its counter of statements."""
    connection = await asyncpg.connect(servers.database_url)
    await connection.execute(Q.count_statements)
    await connection.close()
    assert servers.postgres is not None
    await servers.postgres.hold()
    await servers.postgres.release()
    connection = await asyncpg.connect(servers.database_url)
    await connection.execute(Q.create_counter)
    await connection.close()


async def run_crowd(arena: Arena, meter: Meter, strategy: str, cell: Cell, folder: Path) -> CrowdResult:
    show_id = await arena.shows.create(
        strategy, cell.seats, hold_ttl_ms=TIMES.hold_ttl_ms, redis_url=arena.servers.redis_url
    )
    setup = Open(
        strategy=strategy,
        show_id=show_id,
        times=TIMES,
        database_url=arena.servers.database_url,
        redis_url=arena.servers.redis_url,
        voter_urls=tuple(voter.url for voter in arena.servers.voters) if strategy == "redlock" else (),
        is_warm=True,
    )
    sold_map = folder / "sold"
    sold_map.write_bytes(bytes(cell.seats))
    processes = arena.processes[: min(PROCESSES, cell.clients)]
    await asyncio.gather(*(process.call(setup) for process in processes))
    share, rest = divmod(cell.clients, len(processes))
    loads, first = [], 1
    for i in range(len(processes)):
        clients = share + (i < rest)
        loads.append(Load(first, clients, cell.offer, cell.seats, SECONDS, str(sold_map)))
        first += clients
    before = await meter.read()
    replies = await asyncio.gather(
        *(process.call(load) for process, load in zip(processes, loads, strict=True))
    )
    after = await meter.read()
    events = [event for reply in replies for event in reply.events]
    verdict = judge(events, await arena.shows.sold_rows(show_id))
    await arena.servers.empty()
    return summarise(cell, replies, verdict, {name: after[name] - before[name] for name in after})


def summarise(cell: Cell, replies: Sequence[Reply], verdict: Verdict, used: dict[str, float]) -> CrowdResult:
    loads = [reply.load for reply in replies if reply.load is not None]
    seconds, sales = max(load.seconds for load in loads), max(verdict.sales, 1)
    hold_ms = sorted(ms for load in loads for ms in load.hold_ms)
    cuts = quantiles(hold_ms, n=100) if len(hold_ms) > 1 else [0.0] * 99
    return CrowdResult(
        offer=cell.offer,
        clients=cell.clients,
        answers_per_s=round(sum(load.answers for load in loads) / seconds, 1),
        sales_per_s=round((verdict.sales - verdict.double_sales) / seconds, 1),
        p50_ms=round(cuts[49], 2),
        p99_ms=round(cuts[98], 2),
        retries_per_sale=round(sum(load.retries for load in loads) / sales, 2),
        fairness=round(jain_index(n for load in loads for n in load.answers_per_client), 3),
        fairness_of_sales=round(jain_index(n for load in loads for n in load.sales_per_client), 3),
        statements_per_sale=round(used["statements"] / sales, 2),
        redis_commands_per_sale=round(used["commands"] / sales, 2),
        cpu_us_per_sale={name: round(used[name] / sales) for name in (CLIENTS, BACKENDS, BACKGROUND, VALKEY)},
        errors=sum(load.errors for load in loads),
        verdict=verdict,
    )
