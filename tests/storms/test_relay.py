"""Relays and consumers killed, the bus emptied in the middle of a sale: every fact is told (R28, S14, L4)."""

import asyncio
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from tests.patience import until
from tests.storms.listener import Plan
from tests.storms.office import Office, started
from tests.storms.programme import a_programme, assert_promises_kept, on_sale

TABLE = (
    "CREATE TABLE IF NOT EXISTS heard"
    " (n bigserial, group_name text, fact_id bigint, key text, PRIMARY KEY (group_name, fact_id))"
)
ROUNDS, ROUNDS_FULL = 2, 12
HEARD_WITHIN_S = 30.0


class Workers:
    """Two processes for one group, killed and started again."""

    def __init__(self, stage: Office, folder: Path) -> None:
        self.group = f"storm-{secrets.token_hex(3)}"
        self.told = folder / "told"
        self._plan = folder / "plan.json"
        config = stage.box.config
        plan = Plan(config.database_url, config.redis_url, self.group, str(self.told))
        self._plan.write_bytes(msgspec.json.encode(plan))
        self._processes: list[asyncio.subprocess.Process] = []

    async def start(self) -> None:
        self._processes.append(await started("-m", "tests.storms.listener", str(self._plan)))

    async def kill_one(self) -> None:
        """The older one; a new one comes."""
        victim = self._processes.pop(0)
        victim.kill()
        await victim.wait()
        await self.start()

    async def stop(self) -> None:
        for process in self._processes:
            process.kill()
            await process.wait()


@asynccontextmanager
async def two_workers(stage: Office, folder: Path) -> AsyncIterator[Workers]:
    await stage.box.postgres.execute(TABLE)
    workers = Workers(stage, folder)
    await workers.start()
    await workers.start()
    try:
        yield workers
    finally:
        await workers.stop()
        await stage.box.outbox.forget_group(workers.group)


async def test_every_fact_is_told_and_acted_on_once_and_in_order_whatever_dies(
    stage: Office, is_full: bool, tmp_path: Path
) -> None:
    programme = await a_programme(stage)
    ledger = stage.box.postgres

    async with two_workers(stage, tmp_path) as workers:
        async with on_sale(stage, programme) as crowd:
            for _ in range(ROUNDS_FULL if is_full else ROUNDS):
                await workers.kill_one()
                await crowd.held(crowd.progress.held + 150)
                await stage.box.redis.call("FLUSHALL")
                await crowd.held(crowd.progress.held + 150)
                killed = stage.kill("work-1")
                await stage.back("work-1", after=killed)
                await crowd.held(crowd.progress.held + 150)
            crowd.go_home()
            storm = await crowd.report()
        last = int(await ledger.fetchval("SELECT max(id) FROM outbox"))

        async def all_heard() -> bool:
            query = "SELECT checkpoint FROM consumer_group WHERE name = $1"
            return int(await ledger.fetchval(query, workers.group) or 0) >= last

        await until(all_heard, within_s=HEARD_WITHIN_S)

    facts = {row["id"] for row in await ledger.fetch("SELECT id FROM outbox WHERE id <= $1", last)}
    rows = await ledger.fetch(
        "SELECT fact_id, key FROM heard WHERE group_name = $1 AND fact_id <= $2 ORDER BY n",
        *(workers.group, last),
    )
    told = [line.split(" ") for line in workers.told.read_text().splitlines()]
    print(f"{len(facts)} facts, told {len(told)} times, {len(rows)} acted on")
    assert facts - {int(id) for id, _ in told} == set()
    assert len(rows) == len(facts)
    assert out_of_order((row["key"], row["fact_id"]) for row in rows) == []
    assert out_of_order(first_tellings((key, int(id)) for id, key in told)) == []
    await assert_promises_kept(stage, programme, storm)


Telling = tuple[str, int]  # key of the booking, number of the fact


def first_tellings(told: Iterable[Telling]) -> list[Telling]:
    """Each fact where it was told first: a repetition may come at any time."""
    return list(dict.fromkeys(told))


def out_of_order(facts: Iterable[Telling]) -> list[Telling]:
    """Facts that were told after a later one of the same booking."""
    latest: dict[str, int] = defaultdict(int)
    found = []
    for key, fact_id in facts:
        if fact_id < latest[key]:
            found.append((key, fact_id))
        latest[key] = max(latest[key], fact_id)
    return found
