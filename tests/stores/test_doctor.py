"""The doctor on real engines: certificates, other servers, workers, backups, and dependencies that hang."""

import asyncio
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.app import App
from holdfast.backup import load_backup_age, record_backup
from holdfast.cli.doctor import findings
from holdfast.config import Config
from holdfast.engines.errors import OperatorError
from holdfast.engines.postgres import Postgres
from holdfast.engines.turns import Turns
from holdfast.engines.worker_beat import beat, load_workers
from holdfast.runtime.bounded import CHECK_WITHIN_S
from holdfast.runtime.check_certificates import load_ends
from holdfast.runtime.check_redis import warn_of_other_servers
from holdfast.runtime.check_settings import Finding
from tests.support.certificates import tls_front, vouched_certificate
from tests.support.cli_process import free_port, run_holdfast
from tests.support.opened import engines_of
from tests.support.redis_servers import make_server, running


async def look(config: Config, *lines: str) -> list[Finding]:
    found = [one async for one in findings(config)]
    return [one for one in found if one.what in lines]


async def test_what_hangs_is_named_and_does_not_hang_the_doctor(tmp_path: Path) -> None:
    """Servers that accept a connection and say nothing: engines, gateway, mail, public address, bus."""
    with ExitStack() as stack:
        silent = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(6)]
        ledger, redis, gateway, mail, public, limits = (one.getsockname()[1] for one in silent)
        env = {
            "HOLDFAST_DATABASE_URL": f"postgresql://a@127.0.0.1:{ledger}/a",
            "HOLDFAST_REDIS_URL": f"redis://127.0.0.1:{redis}",
            "HOLDFAST_LIMITS_URL": f"redis://127.0.0.1:{limits}",
            "HOLDFAST_GATEWAY": "sandbox",
            "HOLDFAST_GATEWAY_URL": f"http://127.0.0.1:{gateway}",
            "HOLDFAST_GATEWAY_SECRET": "secret",
            "HOLDFAST_MAIL_URL": f"smtp://127.0.0.1:{mail}?starttls=0",
            "HOLDFAST_MAIL_FROM": "Box <a@b.example>",
            "HOLDFAST_PUBLIC_URL": f"https://127.0.0.1:{public}",
        }
        began = time.monotonic()
        ended = await run_holdfast("doctor", "--json", "--data", str(tmp_path), **env)
        took_s = time.monotonic() - began

    bad = {page["what"]: page["health"] for page in ended.page if page["health"] != "ok"}
    assert took_s < CHECK_WITHIN_S + 10
    assert {name: bad.get(name) for name in ("ledger", "holds", "answer of the gateway", "mail server")} == {
        "ledger": "fail",
        "holds": "fail",
        "answer of the gateway": "fail",
        "mail server": "fail",
    }
    assert bad["rate limits"] == bad["certificate of the public address"] == "warn"
    assert ended.code == 1
    assert [page for page in ended.page if page["health"] != "ok" and not page["fix"]] == []


async def test_rate_limits_and_the_bus_are_looked_at_and_a_start_warns(
    config: Config, tmp_path: Path
) -> None:
    server, away = make_server(tmp_path, "limits"), f"redis://127.0.0.1:{free_port()}"
    nats_away = f"nats://127.0.0.1:{free_port()}"
    async with running(server):
        fine = replace(config, limits_url=server.url, bus_url=server.url)
        bad = replace(config, limits_url=away, bus_url=nats_away)
        found = [await look(one, "rate limits", "bus") for one in (fine, bad)]
        warnings = [await warn_of_other_servers(one) for one in (fine, bad)]

    assert [[one.health for one in two] for two in found] == [["ok", "ok"], ["warn", "warn"]]
    assert ["HOLDFAST_LIMITS_URL" in found[1][0].fix, "HOLDFAST_BUS_URL" in found[1][1].fix] == [True, True]
    assert [len(some) for some in warnings] == [0, 2]
    with pytest.raises(OperatorError, match="HOLDFAST_LIMITS_URL cannot be parsed"):
        await warn_of_other_servers(replace(config, limits_url="sqlite:///x"))


@pytest.mark.parametrize(
    ("settings", "health", "remedy"),
    [
        ({"replicaof": "127.0.0.1 1"}, "fail", "this Redis is a replica: point {setting} to the primary"),
        ({"requirepass": "secret"}, "fail", "look at {setting}"),
        (
            {"maxmemory-policy": "allkeys-lru"},
            "warn",
            "has maxmemory-policy allkeys-lru and would throw {held}",
        ),
    ],
    ids=["a replica", "a password", "evictions"],
)
async def test_a_server_for_limits_or_the_bus_that_is_not_fit_has_a_remedy(
    config: Config, tmp_path: Path, settings: dict[str, str], health: str, remedy: str
) -> None:
    """As the Redis of the holds has one, with the name of the setting that is wrong."""
    server = make_server(tmp_path, "unfit", **settings)
    async with running(server):
        unfit = replace(config, limits_url=server.url, bus_url=server.url)
        found = await look(unfit, "rate limits", "bus")
        warnings = await warn_of_other_servers(unfit)

    named = {
        "rate limits": remedy.format(setting="HOLDFAST_LIMITS_URL", held="counted tries"),
        "bus": remedy.format(setting="HOLDFAST_BUS_URL", held="facts"),
    }
    assert [one.health for one in found] == [health, health], found
    assert [one.what for one in found if named[one.what] not in one.fix] == [], found
    assert [named[what] in line for what, line in zip(named, warnings, strict=True)] == [True, True], warnings


async def test_days_left_of_certificates_of_redis_and_the_ledger(config: Config, tmp_path: Path) -> None:
    """The embedded PostgreSQL has no TLS: its first message, and its answer, are those of its protocol."""
    certificate = vouched_certificate(tmp_path, days=30)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readexactly(8) == b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
        writer.write(b"S")
        await writer.start_tls(certificate.server)

    server = make_server(tmp_path, "tls")
    async with (
        running(server),
        tls_front(certificate, lambda: server.port) as port,
        await asyncio.start_server(answer, "127.0.0.1", 0) as ledger,
    ):
        address = f"127.0.0.1:{ledger.sockets[0].getsockname()[1]}"
        ends = await load_ends(
            replace(
                config,
                database_url=f"postgresql://a@{address}/a",
                redis_url=f"rediss://127.0.0.1:{port}",
            )
        )

    assert {one.place: round(found) for one, found in ends if isinstance(found, float)} == {
        "ledger": 30,
        "holds": 30,
    }


async def test_a_worker_is_seen_by_its_lease_and_a_backup_by_its_record(app: App, postgres: Postgres) -> None:
    config = replace(app.config, gateway="none")
    await postgres.execute("DELETE FROM job_turn")
    await postgres.execute("DELETE FROM backup_made")
    before = await look(config, "workers", "backup")

    _, one_beat = beat(Turns(postgres))
    await one_beat()
    assert await record_backup(postgres, "a test")
    after = await look(config, "workers", "backup")

    assert health_of(before) == ["fail", "fail"], before
    assert health_of(after) == ["ok", "ok"], after
    assert (await load_workers(postgres)).is_alive
    assert (await load_backup_age(postgres) or 99) < 10


async def test_a_worker_that_was_restarted_is_waited_for(app: App, postgres: Postgres) -> None:
    """A doctor right after `systemctl restart` must not say that none runs."""
    _, one_beat = beat(Turns(postgres))
    await one_beat()
    await postgres.execute("UPDATE job_turn SET due_at = now() - interval '2 s'")

    looking = asyncio.create_task(look(replace(app.config, gateway="none"), "workers"))
    await asyncio.sleep(1)
    await one_beat()

    assert health_of(await looking) == ["ok"]


def health_of(found: Sequence[Finding]) -> list[str]:
    return [one.health.value for one in found]


async def test_a_recorded_backup_of_another_tool_counts(app: App, tmp_path: Path) -> None:
    await app.postgres.execute("DELETE FROM backup_made")
    env = engines_of(app.config)

    ended = await run_holdfast("backup", "record", "--by", "pg_basebackup", "--data", str(tmp_path), **env)

    assert (ended.code, ended.output) == (0, "recorded\n"), ended
    assert await app.postgres.fetchval("SELECT made_by FROM backup_made") == "pg_basebackup"
