"""Processes that relay and consume facts and are killed, and the facts that they must have consumed."""

import asyncio
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests.support.box_office import Office, started
from tests.support.consumer_process import Plan
from tests.support.fact_recorder import skip_older_facts

TABLE = (
    "CREATE TABLE IF NOT EXISTS storm_delivery"
    " (n bigserial, group_name text, fact_id bigint, key text, PRIMARY KEY (group_name, fact_id))"
)
FACTS = "SELECT id FROM outbox WHERE id > $1 AND id <= $2"
CONSUMED = (
    "SELECT fact_id, key FROM storm_delivery"
    " WHERE group_name = $1 AND fact_id > $2 AND fact_id <= $3 ORDER BY n"
)

Delivery = tuple[str, int]  # key of the booking, number of the fact


@dataclass(frozen=True)
class ConsumedFacts:
    """What became of the facts after one and up to another."""

    facts: set[int]
    delivered: list[Delivery]  # however often
    acted: list[Delivery]

    @property
    def again(self) -> int:
        """How many deliveries repeat an earlier one."""
        return len(self.delivered) - len(set(self.delivered))

    @property
    def undelivered(self) -> set[int]:
        return self.facts - {fact_id for _, fact_id in self.delivered}

    @property
    def shuffled(self) -> list[Delivery]:
        return out_of_order(self.acted) + out_of_order(dict.fromkeys(self.delivered))


class Workers:
    """Two processes for one group, killed and started again."""

    def __init__(self, stage: Office, folder: Path, bus_url: str = "") -> None:
        self.group = f"storm-{secrets.token_hex(3)}"
        self.deliveries = folder / "deliveries"
        self._plan = folder / "plan.json"
        config = stage.app.config
        plan = Plan(config.database_url, config.redis_url, self.group, str(self.deliveries), bus_url)
        self._plan.write_bytes(msgspec.json.encode(plan))
        self._processes: list[asyncio.subprocess.Process] = []

    async def start(self) -> None:
        self._processes.append(await started("-m", "tests.support.consumer_process", str(self._plan)))

    async def kill_one(self) -> None:
        """The older one; a new one comes."""
        victim = self._processes.pop(0)
        victim.kill()
        await victim.wait()
        await self.start()

    async def load_consumed(self, stage: Office, after: int, last: int) -> ConsumedFacts:
        ledger = stage.app.postgres
        lines = [line.split(" ") for line in self.deliveries.read_text().splitlines()]
        return ConsumedFacts(
            facts={row["id"] for row in await ledger.fetch(FACTS, after, last)},
            delivered=[(key, int(id)) for id, key in lines if after < int(id) <= last],
            acted=[
                (row["key"], row["fact_id"]) for row in await ledger.fetch(CONSUMED, self.group, after, last)
            ],
        )

    async def stop(self) -> None:
        for process in self._processes:
            process.kill()
            await process.wait()


@asynccontextmanager
async def two_workers(
    stage: Office, folder: Path, bus_url: str = "", *, news_only: bool = False
) -> AsyncIterator[Workers]:
    await stage.app.postgres.execute(TABLE)
    workers = Workers(stage, folder, bus_url)
    if news_only:
        await skip_older_facts(stage.app, workers.group)
    await workers.start()
    await workers.start()
    try:
        yield workers
    finally:
        await workers.stop()
        await stage.app.outbox.forget_group(workers.group)


def out_of_order(facts: Iterable[Delivery]) -> list[Delivery]:
    """Facts that arrived after a later one of the same booking."""
    latest: dict[str, int] = defaultdict(int)
    found = []
    for key, fact_id in facts:
        if fact_id < latest[key]:
            found.append((key, fact_id))
        latest[key] = max(latest[key], fact_id)
    return found
