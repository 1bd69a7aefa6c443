"""Relays and consumers are killed, the bus is emptied during a sale: every fact arrives (R28, S14, L4)."""

from pathlib import Path

from tests.support.box_office import Office
from tests.support.killed_consumers import two_workers
from tests.support.storm_shows import a_programme, assert_promises_hold, on_sale
from tests.support.wait import until

ROUNDS, ROUNDS_FULL = 1, 12
CONSUMED_WITHIN_S = 90.0


async def test_every_fact_is_delivered_and_applied_once_in_order_despite_crashes(
    stage: Office, is_full: bool, tmp_path: Path
) -> None:
    programme = await a_programme(stage)
    ledger = stage.app.postgres

    async with two_workers(stage, tmp_path) as workers:
        async with on_sale(stage, programme) as crowd:
            for _ in range(ROUNDS_FULL if is_full else ROUNDS):
                await workers.kill_one()
                await crowd.held(crowd.progress.held + 150)
                await stage.app.redis.call("FLUSHALL")
                await crowd.held(crowd.progress.held + 150)
                killed = stage.kill("work-1")
                await stage.back("work-1", after=killed)
                await crowd.held(crowd.progress.held + 150)
            crowd.go_home()
            storm = await crowd.report()
        last = int(await ledger.fetchval("SELECT max(id) FROM outbox"))

        async def all_consumed() -> bool:
            query = "SELECT checkpoint FROM consumer_group WHERE name = $1"
            return int(await ledger.fetchval(query, workers.group) or 0) >= last

        await until(all_consumed, within_s=CONSUMED_WITHIN_S)

        consumed = await workers.load_consumed(stage, 0, last)

    print(f"{len(consumed.facts)} facts, {len(consumed.delivered)} deliveries, {len(consumed.acted)} applied")
    assert consumed.undelivered == set()
    assert len(consumed.acted) == len(consumed.facts)
    assert consumed.shuffled == []
    await assert_promises_hold(stage, programme, storm)
