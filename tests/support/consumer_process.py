"""A process that relays and consumes facts and can be killed: python -m tests.support.consumer_process PLAN

It applies a fact in the ledger once (`storm_delivery`), and appends every delivery to a file.
"""

import asyncio
import sys
from pathlib import Path
from typing import TextIO

import msgspec

from holdfast.config import Config
from holdfast.engines.loop import every
from holdfast.engines.postgres import Postgres
from holdfast.outbox import Consumer, Fact, Outbox, consume_once
from holdfast.outbox.relay import ConsumerWorker, Relay

RECORD_FACT = "INSERT INTO storm_delivery (group_name, fact_id, key) VALUES ($1, $2, $3)"


class Plan(msgspec.Struct):
    database_url: str
    redis_url: str
    group: str
    deliveries: str  # the file
    bus_url: str = ""


async def main(plan: Plan, deliveries: TextIO) -> None:
    config = Config(database_url=plan.database_url, redis_url=plan.redis_url, bus_url=plan.bus_url)
    postgres = Postgres(plan.database_url, pool_max=4, timeout_s=5)
    outbox = Outbox(postgres, config)

    async def consume(fact: Fact) -> None:
        deliveries.write(f"{fact.id} {fact.key}\n")
        async with postgres.transaction() as tx:
            if await consume_once(tx, plan.group, fact.id):
                await tx.execute(RECORD_FACT, plan.group, fact.id, fact.key)

    consumer = Consumer(group=plan.group, kinds=(), call=consume)
    never = asyncio.Event()
    await asyncio.gather(
        every(0.05, Relay(outbox, config).relay, never),
        every(0.05, ConsumerWorker(outbox, consumer, config).consume, never),
    )


if __name__ == "__main__":
    its_plan = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Plan)
    with Path(its_plan.deliveries).open("a", buffering=1) as file:
        asyncio.run(main(its_plan, file))
