"""A consumer that records facts, and a worker's jobs, run by hand."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import asyncpg

from holdfast.app import App
from holdfast.outbox import Consumer, Fact, Outbox
from holdfast.outbox.relay import ConsumerWorker, Relay
from tests.support.opened import where_sold

ENOUGH_S = 20.0


@dataclass
class FactRecorder:
    """A group of its own; `fails` says for a fact whether its call goes wrong."""

    app: App
    group: str = field(default_factory=lambda: f"reader-{secrets.token_hex(4)}")
    kinds: tuple[str, ...] = ()
    fails: Callable[[Fact], bool] = lambda _fact: False
    received: list[Fact] = field(default_factory=list)
    tried: list[int] = field(default_factory=list)
    tries_max: int = 3
    meanwhile: Callable[[Fact], Awaitable[None]] | None = None  # before it is recorded

    def __post_init__(self) -> None:
        self.consumer_worker = self.another()

    def another(self, outbox: Outbox | None = None) -> ConsumerWorker:
        """The same consumer in another process."""
        consumer = Consumer(
            group=self.group,
            kinds=self.kinds,
            call=self.record,
            from_oldest=False,
            tries_max=self.tries_max,
        )
        return ConsumerWorker(outbox or self.app.outbox, consumer, self.app.config, wait_s=0.02)

    async def record(self, fact: Fact) -> None:
        self.tried.append(fact.id)
        if self.meanwhile is not None:
            await self.meanwhile(fact)
        if self.fails(fact):
            raise ValueError("not today")
        self.received.append(fact)

    async def open(self) -> "FactRecorder":
        """From now on: facts of tests before this one are of no interest."""
        await self.app.outbox.settle(1_000_000)
        await self.app.outbox.add_group(self.group, from_oldest=False)
        return self

    async def consume(self, consumer_worker: ConsumerWorker | None = None) -> None:
        """Until nothing comes any more."""
        async with asyncio.timeout(ENOUGH_S):
            while await (consumer_worker or self.consumer_worker).consume():
                pass

    def of(self, number: int) -> list[str]:
        return [fact.kind for fact in self.received if fact.number == number]

    @property
    def ids(self) -> list[int]:
        return [fact.id for fact in self.received]

    async def retry_now(self) -> None:
        """The pause before the next try is over."""
        await self.app.postgres.execute(
            "UPDATE parked_fact SET due_at = now() WHERE group_name = $1", self.group
        )


async def relayed(app: App, relay: Relay | None = None) -> Relay:
    """Everything there is, handed on to the bus."""
    relay = relay or Relay(app.outbox, app.config)
    await turns_are_free(app)
    async with asyncio.timeout(ENOUGH_S):
        while await relay.relay():
            pass
    return relay


async def skip_older_facts(app: App, group: str) -> None:
    """Start the group after the facts of all earlier tests."""
    await app.outbox.settle(1_000_000)
    await app.postgres.execute(
        "INSERT INTO consumer_group (name, checkpoint) SELECT $1, coalesce(max(id), 0) FROM outbox"
        " ON CONFLICT (name) DO UPDATE SET checkpoint = excluded.checkpoint",
        group,
    )


async def turns_are_free(app: App) -> None:
    """End every lease, as if its owner had died."""
    await app.postgres.execute("UPDATE consumer_group SET lease_until = '-infinity'")


async def checkpoint(app: App, group: str) -> int:
    query = "SELECT checkpoint FROM consumer_group WHERE name = $1"
    return int(await app.postgres.fetchval(query, group))


@asynccontextmanager
async def open_transaction(app: App) -> AsyncIterator[tuple[Any, Callable[[], Awaitable[None]]]]:
    """A connection in a transaction, and how to commit it."""
    connection = await asyncpg.connect(where_sold(app.config).database_url)
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield connection, transaction.commit
    finally:
        await connection.close()


def other_outbox(app: App, **config: Any) -> Outbox:
    """The outbox as another process has it. Close it."""
    return Outbox(app.postgres, replace(app.config, **config))
