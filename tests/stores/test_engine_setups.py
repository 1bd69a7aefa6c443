"""Engines behind poolers, in clusters and after a failover: used correctly, or refused with the remedy."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from redis.asyncio import Redis

from holdfast.app import open_app
from holdfast.bookings import BookingState
from holdfast.config import Config
from holdfast.engines.embedded.binaries import find_valkey
from holdfast.engines.errors import EngineDown, OperatorError
from holdfast.engines.migrate import plan
from holdfast.engines.open_redis import open_redis
from holdfast.engines.postgres import Postgres
from holdfast.engines.redis import Redis as AnyRedis
from holdfast.engines.startup_checks import connect, holds_facts
from tests.fakes.pgbouncer import pgbouncer
from tests.support import shows as cast
from tests.support.paid_bookings import bought, violations
from tests.support.wait import is_listening, until


@asynccontextmanager
async def a_valkey(folder: Path, *options: str) -> AsyncIterator[str]:
    """The address of a Valkey with these options, which `holds_facts` can ask."""
    with socket.socket() as probe, socket.socket() as other:
        for one in (probe, other):
            one.bind(("127.0.0.1", 0))
        port, bus = probe.getsockname()[1], other.getsockname()[1]
    settings = folder / "valkey.conf"
    # The port of a cluster's bus is 10 000 above the other, which may be above all ports, unless it is given.
    settings.write_text(f"port {port}\nbind 127.0.0.1\nsave ''\ndir {folder}\ncluster-port {bus}\n")
    process = await asyncio.create_subprocess_exec(
        str(find_valkey().path), str(settings), *options, stdout=asyncio.subprocess.DEVNULL
    )

    try:
        await until(lambda: is_listening(port))
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        await process.wait()


async def is_served(redis: AnyRedis) -> bool:
    """A cluster serves its slots a moment after it got them."""
    try:
        return bool(await redis.call("SET", "key", "value"))
    except EngineDown:
        return False


class TestRedis:
    async def test_a_cluster_is_refused_with_the_remedy(self, tmp_path: Path) -> None:
        """By its own address a node would answer MOVED to most commands: sign-in and maps would fail."""
        async with a_valkey(tmp_path, "--cluster-enabled", "yes") as url:
            facts = await holds_facts(url)

        assert any("cluster_enabled" in fault and "redis+cluster://" in fault for fault in facts.faults)

    async def test_a_cluster_with_slots_that_no_node_has_is_refused(self, tmp_path: Path) -> None:
        async with a_valkey(tmp_path, "--cluster-enabled", "yes") as url:
            async with Redis.from_url(url) as node:
                await node.cluster("ADDSLOTS", 0, 1)
            facts = await holds_facts(url.replace("redis://", "redis+cluster://").removesuffix("/0"))

        assert any("16382 slots" in fault for fault in facts.faults)
        assert any("cluster-require-full-coverage" in warning for warning in facts.warnings)

    async def test_one_server_that_is_addressed_as_a_cluster_is_refused(self, tmp_path: Path) -> None:
        async with a_valkey(tmp_path) as url:
            with pytest.raises(OperatorError, match="does not answer as a cluster"):
                await holds_facts(url.replace("redis://", "redis+cluster://").removesuffix("/0"))

    async def test_a_sentinel_is_refused_with_the_remedy(self, tmp_path: Path) -> None:
        async with a_valkey(tmp_path, "--sentinel") as url:
            facts = await holds_facts(url)

        assert any("Sentinel" in fault and "redis+sentinel://" in fault for fault in facts.faults)

    async def test_user_and_password_are_sent_to_every_node_of_a_cluster(self, tmp_path: Path) -> None:
        user = ("--user", "ann", "on", ">p@ss", "~*", "&*", "+@all")
        async with a_valkey(tmp_path, "--cluster-enabled", "yes", "--requirepass", "other", *user) as url:
            place = url.removeprefix("redis://").removesuffix("/0")
            async with Redis.from_url(f"redis://ann:p%40ss@{place}") as node:
                await node.cluster("ADDSLOTSRANGE", 0, 16383)
            redis = open_redis(f"redis+cluster://ann:p%40ss@{place}", links_max=1, timeout_s=5)
            try:
                await until(redis.is_reachable)
                await until(lambda: is_served(redis))
            finally:
                await redis.close()
            with pytest.raises(OperatorError, match="Redis refused us"):
                await holds_facts(f"redis+cluster://ann:wrong@{place}")

    async def test_rate_limits_can_have_a_server_of_their_own(self, config: Config, tmp_path: Path) -> None:
        async with a_valkey(tmp_path) as url, open_app(replace(config, limits_url=url)) as app:
            await app.accounts.limits.take("guest", address="198.51.100.9")
            async with Redis.from_url(url) as other:
                assert await other.keys("limit:*")

    async def test_one_that_is_full_is_down_and_does_not_fail_its_callers(self, tmp_path: Path) -> None:
        """Sales go on in PostgreSQL then; other errors would be a 500."""
        async with a_valkey(tmp_path, "--maxmemory", "1") as url:
            redis = open_redis(url, links_max=1, timeout_s=5)
            try:
                with pytest.raises(EngineDown) as down:
                    await redis.call("SET", "key", "value")
            finally:
                await redis.close()

        assert not down.value.unknown


class TestPgBouncer:
    async def test_transaction_mode_is_refused_with_the_remedy(self, config: Config) -> None:
        async with pgbouncer(config.database_url, mode="transaction") as url:
            for _ in range(2):  # the second meets prepared statements that the first has left behind
                with pytest.raises(OperatorError, match="pool_mode = session"):
                    await connect(url)

    async def test_session_mode_needs_no_setting_of_the_pooler(self, config: Config) -> None:
        """PgBouncer refuses unknown startup parameters, so ours are set after connecting."""
        async with pgbouncer(config.database_url, mode="session") as url:
            connection = await connect(url)
            assert await plan(connection) == []
            await connection.close()
            postgres = Postgres(url, pool_max=2, timeout_s=5, settings={"work_mem": "7MB"})
            try:
                settings = "SELECT current_setting('jit'), current_setting('work_mem')"
                assert tuple(await postgres.fetchrow(settings) or ()) == ("off", "7MB")
            finally:
                await postgres.close()

    async def test_a_seat_is_held_and_paid_for_through_it(self, config: Config) -> None:
        async with pgbouncer(config.database_url, mode="session") as url:
            async with open_app(replace(config, database_url=url)) as app:
                booking = await bought(app, await cast.a_show(app), 3)
                found = await violations(app, booking.show_id)
        assert (booking.state, found) == (BookingState.CONFIRMED, [])

    async def test_transaction_mode_sells_if_the_server_itself_is_named_too(self, config: Config) -> None:
        """Clients share one session: a prepared statement or a setting in it would meet another client."""
        async with pgbouncer(config.database_url, mode="transaction") as url:
            shared = replace(config, database_url=url, database_direct_url=config.database_url)
            async with open_app(shared) as app, open_app(shared) as other:
                show = await cast.a_show(app)
                bookings = await asyncio.gather(
                    *(bought(one, show, seat) for seat, one in ((3, app), (5, other)))
                )
                found = await violations(app, show)
        assert {booking.state for booking in bookings} == {BookingState.CONFIRMED}
        assert found == []

    async def test_a_refused_startup_parameter_is_explained(self, config: Config) -> None:
        async with pgbouncer(config.database_url, mode="session") as url:
            with pytest.raises(OperatorError, match=r"startup parameter: geqo.*ignore_startup_parameters"):
                await connect(f"{url}?geqo=off")


async def test_connections_to_a_demoted_server_are_not_used_again(config: Config) -> None:
    """Behind a virtual address, a pool would otherwise stay on the old primary, which only reads."""
    postgres = Postgres(config.database_url, pool_max=2, timeout_s=5)
    try:
        async with postgres.lease() as one, postgres.lease() as two:
            demoted = set()
            for connection in (one, two):
                demoted.add(await connection.fetchval("SELECT pg_backend_pid()"))
                await connection.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")

        with pytest.raises(EngineDown):
            await postgres.execute("CREATE TABLE never (n int)")

        async with postgres.lease() as one, postgres.lease() as two:
            used = {
                await one.fetchval("SELECT pg_backend_pid()"),
                await two.fetchval("SELECT pg_backend_pid()"),
            }
        assert not used & demoted
    finally:
        await postgres.close()
