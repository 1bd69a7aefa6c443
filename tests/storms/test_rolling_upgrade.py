"""A release is rolled out and back beside the one before it, while people buy: no purchase fails.

The releases are this tree and a copy of it with a higher version, steps that extend the busiest tables and
functions that all differ: what this program will be, one release from now, when the next one is rolled out
beside it. The wheel of the last release would prove less: its program cannot be changed any more.
"""

import asyncpg

from tests.support.engine_folder import engine_folder
from tests.support.releases import next_release, this_release
from tests.support.rolling_upgrade import a_stage, roll

PURCHASES, PURCHASES_FULL = 20, 1000  # per phase


async def test_no_purchase_fails_while_a_release_is_rolled_out_and_back(is_full: bool) -> None:
    with engine_folder("holdfast-roll-") as path:
        old, new = this_release(), next_release(path / "next")
        async with a_stage(path, old, new) as stage:
            sales = await stage.seed(seats=12_000 if is_full else 2000)
            await roll(stage, sales, PURCHASES_FULL if is_full else PURCHASES)
            found = await old.holdfast(stage.settings, "audit", "--map", "--gateway")
            ledger = await asyncpg.connect(stage.settings["HOLDFAST_DATABASE_URL"])
            confirmed = await ledger.fetchval("SELECT count(*) FROM booking WHERE state = 'confirmed'")
            programs = await ledger.fetch("SELECT DISTINCT program FROM schema_functions")
            await ledger.close()

    assert sales.failures == []
    assert confirmed == len(sales.bookings) == len(set(sales.bookings))
    assert found["total"] == 0, found
    assert [row["program"] for row in programs] == [old.name], "the functions of the old release are back"
