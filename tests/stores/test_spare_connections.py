"""A connection goes from one lease to the next without the pool, and never when it must not."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from holdfast.config import Config
from holdfast.engines.errors import EngineDown
from holdfast.engines.postgres import Postgres
from holdfast.engines.spare_connections import SpareConnections
from tests.support.wait import until

PID = "SELECT pg_backend_pid()"


@pytest.fixture
async def two(config: Config) -> AsyncIterator[Postgres]:
    """A pool of two connections."""
    postgres = Postgres(config.database_url, pool_max=2, timeout_s=5)
    yield postgres
    await postgres.close()


async def test_the_next_lease_begins_without_a_turn_of_the_loop(two: Postgres) -> None:
    before = await two.fetchval(PID)

    lease = two.lease()
    for step in (lease.__aenter__(), lease.__aexit__(None, None, None)):
        with pytest.raises(StopIteration):  # the step came to its end without waiting for anything
            step.send(None)

    assert await two.fetchval(PID) == before


async def test_a_caller_that_waits_gets_the_next_free_connection(two: Postgres) -> None:
    async with two.lease():
        async with two.lease():
            waiting = asyncio.create_task(two.fetchval("SELECT 7"))
            await asyncio.sleep(0)
        assert await asyncio.wait_for(waiting, 4) == 7


async def test_a_connection_that_the_server_has_ended_is_not_used_again(two: Postgres) -> None:
    async with two.lease() as other:
        ended = await two.fetchval(PID)
        await other.execute("SELECT pg_terminate_backend($1)", ended)

    async def is_left() -> bool:
        try:
            return bool(await two.fetchval(PID) != ended)
        except EngineDown:  # the statement that met the end
            return False

    await until(is_left)
    assert {await two.fetchval(PID) for _ in range(4)}.isdisjoint({ended})


async def test_connections_to_a_demoted_primary_are_all_replaced(two: Postgres) -> None:
    async with two.lease() as first, two.lease() as second:
        before = {await first.fetchval(PID), await second.fetchval(PID)}

    async def write_to_a_standby() -> None:
        async with two.transaction() as tx:
            await tx.execute("SET TRANSACTION READ ONLY")
            await tx.execute("CREATE TABLE of_a_standby ()")

    with pytest.raises(EngineDown):
        await write_to_a_standby()

    async with two.lease() as first, two.lease() as second:
        assert before.isdisjoint({await first.fetchval(PID), await second.fetchval(PID)})


async def test_the_pool_ends_a_transaction_that_a_caller_has_left_open(two: Postgres) -> None:
    async with two.lease() as connection:
        await connection.execute("BEGIN")

    async with two.lease() as connection, connection.transaction():
        assert await connection.fetchval("SELECT 1") == 1


async def test_an_unused_connection_returns_to_the_pool(config: Config) -> None:
    async with asyncpg.create_pool(config.database_url, min_size=1, max_size=1) as pool:
        spare = SpareConnections(pool.release, spare_s=0.01)
        assert spare.put(await pool.acquire())
        assert pool.get_idle_size() == 0

        async def is_idle() -> bool:
            return pool.get_idle_size() == 1

        await until(is_idle)
        assert spare.take() is None


async def test_closing_does_not_wait_for_spare_connections(two: Postgres) -> None:
    async with two.lease(), two.lease():
        pass

    await asyncio.wait_for(two.close(), 1)
