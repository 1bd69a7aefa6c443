"""A ledger with a synchronous standby: nothing is acknowledged without it, and a demoted server is left."""

import asyncio
import signal
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

import pytest

from holdfast.app import App, open_app
from holdfast.bookings import Booking
from holdfast.catalogue.responses import EventsQuery
from holdfast.cli.doctor import findings
from holdfast.config import Config
from holdfast.engines.errors import EngineDown, OperatorError
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import CONNECT_TIMEOUT_S, Postgres, require_row
from holdfast.engines.standbys import StandbyGauge
from holdfast.engines.startup_checks import connect
from holdfast.errors import Busy
from holdfast.runtime.check_settings import Finding, Severity
from tests.support import shows as cast
from tests.support.cli_process import free_port
from tests.support.documented_commands import documented_commands
from tests.support.own_engines import hold
from tests.support.postgres_server import Server, a_pair, url_of
from tests.support.second_ledger import beside
from tests.support.show_fixture import Till, an_owner
from tests.support.wait import until

TIMEOUT_S = 1
SERVER = "SELECT inet_server_port()"
WAITING = "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@pytest.fixture(scope="module")
async def pair() -> AsyncIterator[tuple[Server, Server]]:
    """The last test demotes the first of them."""
    async with a_pair() as made:
        yield made


@pytest.fixture(scope="module")
async def own_config(shared_config: Config, pair: tuple[Server, Server]) -> Config:
    own = await beside(shared_config, url_of(*pair), 8)
    return replace(own, ledger_standbys_min=1, postgres_timeout_s=TIMEOUT_S, map_fresh_ms=10)


async def holds_once(app: App, show: int, owner: int, seat: int) -> Booking | None:
    """With the same request id each time; None: no acknowledgement."""
    try:
        return await hold(app, show, owner, seat, request_id="once-and-again")
    except (EngineDown, Busy):
        return None


async def is_held(app: App, show: int, owner: int, seat: int) -> bool:
    return await holds_once(app, show, owner, seat) is not None


async def test_a_hold_is_not_acknowledged_or_visible_while_no_standby_has_it(
    pair: tuple[Server, Server], own_config: Config
) -> None:
    """A cancelled wait would show the booking, and mail its ticket, though only the primary has it."""
    primary, standby = pair
    async with open_app(own_config) as app:
        show, owner = await cast.a_show(app, 20), an_owner()
        await hold(app, show, an_owner(), 1)

        standby.signal(signal.SIGSTOP)
        try:
            tries = [await holds_once(app, show, owner, 2) for _ in range(2)]
            is_waiting = await primary.sql(WAITING)
            taken = await Till(app, show).taken()
        finally:
            standby.signal(signal.SIGCONT)
        assert tries == [None, None]
        assert (is_waiting, set(taken)) == (True, {1})

        await until(partial(is_held, app, show, owner, 2))
        assert (await Till(app, show).taken()).keys() == {1, 2}
        assert await Till(app, show).violations() == []


async def test_statements_that_were_left_end_on_the_server(own_config: Config) -> None:
    """They are not cancelled, so the server must notice by itself that their client is gone."""
    postgres = Postgres(own_config.database_url, pool_max=2, timeout_s=TIMEOUT_S, has_standbys=True)
    other = Postgres(own_config.database_url, pool_max=1, timeout_s=5)
    sleeping = "SELECT count(*) = 0 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(40)'"
    try:
        with pytest.raises(EngineDown):
            await postgres.execute("SELECT pg_sleep(40)")

        assert await postgres.fetchval("SELECT 1") == 1
        await until(lambda: other.fetchval(sleeping), within_s=10)
    finally:
        await asyncio.gather(postgres.close(), other.close())


async def test_the_sale_continues_without_a_standby_when_the_operator_says_so(
    pair: tuple[Server, Server], own_config: Config
) -> None:
    primary, standby = pair
    async with open_app(own_config) as app:
        show, owner = await cast.a_show(app, 20), an_owner()
        await hold(app, show, an_owner(), 1)
        await standby.stop()
        (sell_on,) = documented_commands("operating/standby.md", "When the standby dies")
        try:
            missing = await standby_finding(own_config)
            waited = await holds_once(app, show, owner, 2)
            await primary.run(sell_on, PRIMARY=primary.url)
            await until(partial(is_held, app, show, owner, 2))
        finally:
            await standby.start()
            await primary.wait_for_standby()
    assert waited is None
    assert (missing.health, "0 of 1" in missing.fix) == (Severity.FAIL, True), missing


async def standby_finding(config: Config) -> Finding:
    (found,) = [one async for one in findings(config) if one.what == "standbys"]
    return found


async def test_the_doctor_compares_the_standbys_with_what_is_expected(own_config: Config) -> None:
    found = [await standby_finding(replace(own_config, ledger_standbys_min=least)) for least in (0, 1, 2)]

    assert [one.health for one in found] == [Severity.WARN, Severity.OK, Severity.FAIL], found
    assert "HOLDFAST_LEDGER_STANDBYS_MIN=1" in found[0].fix
    assert "wait for 1 of 2" in found[2].fix


async def test_the_doctor_looks_at_the_replica(pair: tuple[Server, Server], own_config: Config) -> None:
    primary, standby = pair
    away = f"postgresql://holdfast@127.0.0.1:{free_port()}/holdfast"
    found = [
        one
        for url in (standby.url, primary.url, away)
        async for one in findings(replace(own_config, replica_url=url))
        if one.what == "replica"
    ]

    assert [one.health for one in found] == [Severity.OK, Severity.WARN, Severity.WARN], found
    assert "HOLDFAST_REPLICA_URL" in found[2].fix


async def test_the_gauges_count_the_standbys(own_config: Config) -> None:
    postgres = Postgres(own_config.database_url, pool_max=1, timeout_s=5)
    await StandbyGauge(postgres, 3).look()
    await postgres.close()

    lines = metrics.text().decode().splitlines()
    lag_s = [float(one.split()[1]) for one in lines if one.startswith("holdfast_ledger_standby_lag_seconds ")]
    assert {"holdfast_ledger_standbys 1.0", "holdfast_ledger_standbys_missing 2.0"} <= set(lines)
    assert 0 <= lag_s[0] < 10


class TestReplica:
    async def test_lists_come_from_it_except_for_those_who_just_changed_them(
        self, pair: tuple[Server, Server], own_config: Config
    ) -> None:
        _, standby = pair
        config = replace(own_config, replica_url=standby.url, replica_lag_max_s=60)
        async with open_app(config) as app:
            await until(partial(is_read_from, app, standby))
            await standby.sql("SELECT pg_wal_replay_pause()")
            try:
                show = await cast.a_show(app, 20)
                event = await app.postgres.fetchval("SELECT event_id FROM show WHERE id = $1", show)
                before = await app.catalogue.events_playing(EventsQuery())
                app.catalogue.clear_cached_responses()  # as an organiser's change does
                after = await app.catalogue.events_playing(EventsQuery())
            finally:
                await standby.sql("SELECT pg_wal_replay_resume()")
        assert event not in before
        assert event in after

    async def test_it_is_not_read_while_it_lags(
        self, pair: tuple[Server, Server], own_config: Config
    ) -> None:
        primary, standby = pair
        async with open_app(replace(own_config, replica_url=standby.url, replica_lag_max_s=1)) as app:
            assert await port_of(app) == primary.port  # nothing is known of it yet
            await until(partial(is_read_from, app, standby))
            await standby.sql("SELECT pg_wal_replay_pause()")
            try:
                await cast.a_show(app, 20)
                await until(partial(is_read_from, app, primary), within_s=10)
            finally:
                await standby.sql("SELECT pg_wal_replay_resume()")
            await until(partial(is_read_from, app, standby), within_s=10)

    async def test_the_ledger_answers_while_it_is_down(
        self, pair: tuple[Server, Server], own_config: Config
    ) -> None:
        primary, standby = pair
        async with open_app(replace(own_config, replica_url=standby.url, replica_lag_max_s=60)) as app:
            await until(partial(is_read_from, app, standby))
            await standby.stop()
            try:
                ports = {await port_of(app) for _ in range(5)}
                found = await app.catalogue.events_playing(EventsQuery())
            finally:
                await standby.start()
                await primary.wait_for_standby()
        assert (ports, bool(found)) == ({primary.port}, True)


async def port_of(app: App) -> int:
    """Of the server that answers lists."""
    assert app.replica is not None
    return int(require_row(await app.replica.fetchrow(SERVER))[0])


async def is_read_from(app: App, server: Server) -> bool:
    assert app.replica is not None
    await app.replica.look()
    return await port_of(app) == server.port


async def test_a_standby_alone_is_refused_with_the_remedy(pair: tuple[Server, Server]) -> None:
    _, standby = pair
    with pytest.raises(OperatorError, match="promote a standby"):
        await connect(url_of(standby, standby))

    alone = Postgres(standby.url, pool_max=1, timeout_s=5)
    with pytest.raises(EngineDown):  # it would answer with the past
        await alone.fetchval("SELECT 1")
    await alone.close()


async def test_a_silent_host_does_not_use_up_the_time_of_the_others(pair: tuple[Server, Server]) -> None:
    """A machine without power accepts no connection and refuses none. This one accepts, and says nothing."""
    primary, _ = pair
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        postgres = Postgres(primary.url.replace("@", f"@{address},"), pool_max=2, timeout_s=5)
        began = time.monotonic()
        first = await postgres.fetchval(SERVER)
        took_s = time.monotonic() - began
        async with postgres.lease(), postgres.lease() as second:
            assert await second.fetchval(SERVER) == first == primary.port
        await postgres.close()
    assert took_s < CONNECT_TIMEOUT_S
    assert time.monotonic() - began < took_s + 0.5 * CONNECT_TIMEOUT_S  # the second goes to the right host


async def test_a_demoted_primary_is_left_by_all_connections(
    pair: tuple[Server, Server], own_config: Config
) -> None:
    """It falls silent without closing a connection, and comes back as a standby, first in the URL."""
    old, new = pair
    async with open_app(own_config) as app, AsyncExitStack() as stack:
        show = await cast.a_show(app, 20)
        await hold(app, show, an_owner(), 1)
        for _ in range(3):
            leased = await stack.enter_async_context(app.postgres.lease())
            assert await leased.fetchval(SERVER) == old.port
        await stack.aclose()

        old.signal(signal.SIGSTOP)
        await new.promote()
        promoted_at, owner = time.monotonic(), an_owner()
        await until(partial(is_held, app, show, owner, 2))
        took_s = time.monotonic() - promoted_at
        print(f"first hold {took_s:.2f} s after the promotion, with a time-out of {TIMEOUT_S} s")
        await old.kill()
        await old.follow(new)
        await hold(app, show, an_owner(), 3)

        used = set()
        for _ in range(3):
            leased = await stack.enter_async_context(app.postgres.lease())
            used.add(await leased.fetchval(SERVER))
        await stack.aclose()
        is_standby = await old.sql("SELECT pg_is_in_recovery()")
    assert (used, is_standby) == ({new.port}, True)
    assert took_s < TIMEOUT_S + 2 * CONNECT_TIMEOUT_S
