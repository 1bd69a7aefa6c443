"""The embedded engines: started, supervised, stopped, and never two on one folder."""

import asyncio
import os
import pwd
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from redis.asyncio import Redis

from holdfast.engines.embedded import Engines, engines
from holdfast.engines.embedded.binaries import every_postgres, find_postgres, find_valkey
from holdfast.engines.embedded.folder import DataFolder
from holdfast.engines.embedded.postgres import EmbeddedPostgres
from holdfast.engines.embedded.supervise import Recipe, Supervisor
from holdfast.engines.errors import OperatorError
from holdfast.engines.startup_checks import connect, holds_facts, ledger_facts

NOTE = "CREATE TABLE IF NOT EXISTS note (words text)"


@pytest.fixture(scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engines]:
    async with engines(tmp_path_factory.mktemp("engines")) as started:
        yield started


async def written(database_url: str, words: str) -> None:
    connection = await connect(database_url)
    await connection.execute(NOTE)
    await connection.execute("INSERT INTO note VALUES ($1)", words)
    await connection.close()


async def read(database_url: str) -> list[str]:
    connection = await connect(database_url)
    rows = await connection.fetch("SELECT words FROM note")
    await connection.close()
    return [row["words"] for row in rows]


class TestBothEngines:
    async def test_they_are_fit_to_sell_from(self, running: Engines) -> None:
        connection = await connect(running.database_url)
        ledger, holds = await ledger_facts(connection), await holds_facts(running.redis_url)
        await connection.close()

        assert (ledger.faults, holds.faults) == ((), ())
        assert int(ledger.version.split(".")[0]) in range(15, 19)

    async def test_they_listen_on_sockets_that_only_their_owner_can_reach(self, running: Engines) -> None:
        connection = await connect(running.database_url)
        sockets = await connection.fetchval("SHOW unix_socket_directories")
        addresses = await connection.fetchval("SHOW listen_addresses")
        await connection.close()

        assert addresses == ""
        assert os.stat(sockets).st_mode & 0o077 == 0
        assert running.redis_url.startswith(f"unix://{sockets}/")

    async def test_the_ledger_does_not_run_as_root(self, running: Engines) -> None:
        owner = os.stat(f"/proc/{running.postgres.pid}").st_uid

        assert owner != 0
        assert os.geteuid() in (0, owner), f"it runs as {pwd.getpwuid(owner).pw_name}"

    async def test_a_killed_ledger_is_back_with_everything_that_was_committed(self, running: Engines) -> None:
        await written(running.database_url, "before the kill")
        first = running.postgres.pid

        os.kill(first, signal.SIGKILL)
        await asyncio.wait_for(running.postgres.up(after=first), 10)

        assert "before the kill" in await read(running.database_url)

    async def test_postgres_killed_repeatedly_restarts_each_time(self, running: Engines) -> None:
        for _ in range(3):
            first = running.postgres.pid
            running.postgres.kill()
            assert await asyncio.wait_for(running.postgres.up(), 10) != first

        await written(running.database_url, "after three")
        assert "after three" in await read(running.database_url)

    async def test_a_killed_valkey_is_back_and_empty(self, running: Engines) -> None:
        async with Redis.from_url(running.redis_url) as before:
            await before.set("map", "of the past")
        running.valkey.kill()
        await asyncio.wait_for(running.valkey.up(), 10)

        async with Redis.from_url(running.redis_url) as after:
            assert await after.dbsize() == 0

    async def test_a_held_valkey_stays_away_until_it_is_released(self, running: Engines) -> None:
        await running.valkey.hold()
        await asyncio.sleep(0.5)
        assert running.valkey.pid == 0
        assert running.postgres.pid

        await asyncio.wait_for(running.valkey.release(), 5)
        assert (await holds_facts(running.redis_url)).faults == ()

    async def test_a_hold_file_of_the_operator_keeps_a_killed_valkey_away(self, running: Engines) -> None:
        running.valkey.hold_file.touch()
        os.kill(running.valkey.pid, signal.SIGKILL)
        await asyncio.sleep(0.5)
        assert running.valkey.pid == 0

        running.valkey.hold_file.unlink()
        assert await asyncio.wait_for(running.valkey.up(), 5)

    async def test_their_process_ids_are_in_files(self, running: Engines) -> None:
        run = running.valkey.hold_file.parent

        assert int((run / "postgres.pid").read_text()) == running.postgres.pid
        assert int((run / "valkey.pid").read_text()) == running.valkey.pid


class TestTheDataFolder:
    async def test_data_outlives_a_stop_and_nothing_else_does(self, tmp_path: Path) -> None:
        async with engines(tmp_path) as (database_url, _):
            sockets = database_url.partition("host=")[2]
            await written(database_url, "stored")
        left = sorted(path.name for path in (tmp_path / "run").iterdir())

        async with engines(tmp_path) as (database_url, _):
            assert await read(database_url) == ["stored"]
        assert left == ["lock"]
        assert Path(sockets).name not in os.listdir(tempfile.gettempdir())

    async def test_a_second_start_on_the_same_folder_is_refused_in_one_line(self, tmp_path: Path) -> None:
        async with engines(tmp_path):
            with pytest.raises(
                OperatorError, match=rf"in use by Holdfast process {os.getpid()}: stop it"
            ) as refused:
                async with engines(tmp_path):
                    pytest.fail("two on one folder")
        assert "\n" not in str(refused.value)

    async def test_running_engines_are_found_by_another_process(self, tmp_path: Path) -> None:
        assert DataFolder(tmp_path).running() is None
        async with engines(tmp_path) as started:
            found = DataFolder(tmp_path).running()
            assert found is not None
            assert (found.database_url, found.redis_url) == tuple(started)
        assert DataFolder(tmp_path).running() is None

    async def test_postgres_starts_despite_a_stale_lock_file_with_a_live_process_id(
        self, tmp_path: Path
    ) -> None:
        async with engines(tmp_path) as (database_url, _):
            await written(database_url, "stored")
        # As after a power cut, when the number now belongs to another process: to us, for example.
        (tmp_path / "postgres" / "postmaster.pid").write_text(f"{os.getpid()}\n{tmp_path}/postgres\n1\n")

        async with engines(tmp_path) as (database_url, _):
            assert await read(database_url) == ["stored"]

    async def test_half_a_folder_is_created_again(self, tmp_path: Path) -> None:
        draft = tmp_path / "postgres.draft"
        draft.mkdir()
        (draft / "PG_VERSION").write_text("18\n")

        async with engines(tmp_path) as (database_url, _):
            await written(database_url, "fresh")

    async def test_data_of_a_version_that_is_not_here_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "postgres").mkdir()
        (tmp_path / "postgres" / "PG_VERSION").write_text("9\n")

        with pytest.raises(OperatorError, match="no PostgreSQL 9 found"):
            async with engines(tmp_path):
                pytest.fail("version 9 started")

    async def test_a_folder_that_cannot_be_made_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()

        with pytest.raises(OperatorError, match="cannot make the data folder"):
            async with engines(tmp_path / "file" / "data"):
                pytest.fail("a folder in a file")

    async def test_a_long_path_works(self, tmp_path: Path) -> None:
        async with engines(tmp_path / ("long" * 30)) as (database_url, _):
            await written(database_url, "far away")

    async def test_the_operators_own_engine_is_left_alone(self, running: Engines, tmp_path: Path) -> None:
        async with engines(tmp_path, database_url=running.database_url) as mixed:
            assert mixed.database_url == running.database_url
            assert list(mixed.children) == ["valkey"]
        assert not (tmp_path / "postgres").exists()


PARENT = """
import asyncio, sys
from holdfast.engines.embedded import engines

async def run():
    async with engines(sys.argv[1]) as (database_url, _):
        print(database_url, flush=True)
        await asyncio.sleep(60)

asyncio.run(run())
"""


class TestDeathOfTheParent:
    async def test_no_child_outlives_a_killed_parent_and_the_next_start_works(self, tmp_path: Path) -> None:
        parent = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PARENT, str(tmp_path)), stdout=asyncio.subprocess.PIPE
        )
        assert parent.stdout is not None
        await written((await parent.stdout.readline()).decode().strip(), "stored")
        run = tmp_path / "run"
        children = [int((run / f"{name}.pid").read_text()) for name in ("postgres", "valkey")]
        parent.kill()
        await parent.wait()

        async with engines(tmp_path) as (database_url, _):
            assert await read(database_url) == ["stored"]
        assert not any(is_running(child) for child in children)


def is_running(process_id: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{process_id}/status").read_text()
    except FileNotFoundError:
        return False


async def at_once(_process_id: int) -> bool:
    return True


def exists(path: Path) -> Callable[[int], Awaitable[bool]]:
    async def ready(_process_id: int) -> bool:
        return path.name in os.listdir(path.parent)

    return ready


@pytest.fixture
async def supervisor(tmp_path: Path) -> AsyncIterator[Supervisor]:
    folder = DataFolder(tmp_path)
    folder.make()
    supervisor = Supervisor(folder)
    yield supervisor
    await supervisor.stop()


def shell(name: str, script: str, up: Path, stop_within_s: float = 5) -> Recipe:
    return Recipe(name=name, command=("/bin/sh", "-c", script), ready=exists(up), stop_within_s=stop_within_s)


class TestSupervisor:
    async def test_groups_stop_in_the_reverse_order_of_their_start(
        self, supervisor: Supervisor, tmp_path: Path
    ) -> None:
        stopped = tmp_path / "stopped"
        for name in ("first", "second"):
            last_act = f"sleep 0.1; echo {name} >> {stopped}; exit 0"
            script = f"trap '{last_act}' TERM; echo > {tmp_path / name}; while :; do sleep 0.02; done"
            await supervisor.start(shell(name, script, tmp_path / name))

        await supervisor.stop()

        assert stopped.read_text().split() == ["second", "first"]

    async def test_a_process_that_ignores_sigterm_is_killed_after_the_timeout(
        self, supervisor: Supervisor, tmp_path: Path
    ) -> None:
        script = f"trap '' TERM; echo > {tmp_path / 'up'}; while :; do sleep 0.02; done"
        [child] = await supervisor.start(shell("deaf", script, tmp_path / "up", stop_within_s=0.2))
        process_id = child.pid

        began = time.monotonic()
        await supervisor.stop()

        assert time.monotonic() - began < 2
        assert not is_running(process_id)

    async def test_a_process_that_ends_before_it_is_ready_is_reported_with_its_output(
        self, supervisor: Supervisor, tmp_path: Path
    ) -> None:
        with pytest.raises(OperatorError, match="broken did not start: the disk is full"):
            await supervisor.start(shell("broken", "echo the disk is full; exit 7", tmp_path / "never"))

    async def test_a_process_that_dies_repeatedly_is_restarted_with_growing_pauses(
        self, supervisor: Supervisor, tmp_path: Path
    ) -> None:
        lives = tmp_path / "lives"
        await supervisor.start(shell("frail", f"echo >> {lives}; sleep 0.05", lives))

        await asyncio.sleep(1.5)
        await supervisor.stop()

        # Two at once, then one after 0.2 s and one after 0.4 s; the next pause is 0.8 s.
        assert 3 <= len(lives.read_text().splitlines()) <= 5


class TestBinaries:
    def test_ours_come_first(self) -> None:
        assert find_postgres().is_ours
        assert find_valkey().is_ours

    async def test_every_postgres_on_this_machine_can_be_the_ledger(self, tmp_path: Path) -> None:
        for number, program in enumerate(every_postgres()):
            folder = DataFolder(tmp_path / str(number))
            folder.make()
            supervisor = Supervisor(folder)
            postgres = EmbeddedPostgres(folder, connections_max=10, program=program)
            try:
                await postgres.make()
                await supervisor.start(postgres.recipe())
                connection = await connect(postgres.url)
                facts = await ledger_facts(connection)
                await connection.close()
            finally:
                await supervisor.stop()
                folder.unlock()
            assert facts.version.startswith(program.version)
            assert facts.faults == ()


async def test_a_lost_connection_is_trouble_not_a_traceback(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="PostgreSQL cannot be reached"):
        await connect(f"postgresql://holdfast@/holdfast?host={tmp_path}")
    with pytest.raises(OperatorError, match="HOLDFAST_DATABASE_URL cannot be parsed"):
        await connect("mysql://holdfast")
    with pytest.raises(OperatorError, match="Redis cannot be reached"):
        await holds_facts(f"unix://{tmp_path}/none.sock")
    with pytest.raises(OperatorError, match="HOLDFAST_REDIS_URL cannot be parsed"):
        await holds_facts("http://localhost")
