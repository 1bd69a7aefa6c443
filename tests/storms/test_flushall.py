"""FLUSHDB in the middle of a sale: Redis forgets everything, the ledger nothing (R19)."""

import time

from tests.support.box_office import Office
from tests.support.second_ledger import empty_valkey
from tests.support.storm_shows import a_programme, assert_promises_hold, first_sale_after, on_sale

TIMES = 4


async def test_nothing_is_sold_twice_when_redis_forgets_everything(stage: Office) -> None:
    programme = await a_programme(stage)
    flushed_at = []

    async with on_sale(stage, programme) as crowd:
        for _ in range(TIMES):
            flushed_at.append(time.monotonic())
            # With a link of its own: those of `stage.app` may be older than the server, which storms kill.
            await empty_valkey(stage.app.config.redis_url)
            await crowd.held(crowd.progress.held + 300)
        crowd.go_home()
        storm = await crowd.report()

    pauses_s = [first_sale_after(storm, moment) for moment in flushed_at]
    print("the first sale after each FLUSHDB:", ", ".join(f"{pause:.2f} s" for pause in pauses_s))
    assert max(pauses_s) < 10
    await assert_promises_hold(stage, programme, storm)
