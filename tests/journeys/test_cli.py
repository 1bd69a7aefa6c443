"""An operator at the terminal: a demo that starts, serves, survives and stops; trouble in one line (R34)."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator
from importlib.metadata import version
from pathlib import Path

import httpx2
import pytest

from holdfast.cli.output import welcome
from holdfast.engines.embedded.folder import DataFolder
from holdfast.runtime.launch import Launched
from tests.support.cli_process import (
    CommandResult,
    Demo,
    fetch_status,
    free_port,
    run_holdfast,
    serve_holdfast,
    start_demo,
    stop_demo,
)
from tests.support.shows import API

MEMORY_MAX_KB = (
    400_000  # with two web workers, in the midst of its start; bench/idle.py has the figure at rest
)


def assert_refused(ended: CommandResult, words: str) -> None:
    """One line that says what to do, and the exit code of expected trouble."""
    assert ended.code == 2, ended
    assert re.search(words, ended.words), ended.words
    assert len(ended.words.strip().splitlines()) == 1, ended.words
    assert ended.output == ""


@pytest.fixture(scope="module")
async def demo(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Demo]:
    demo = await start_demo(tmp_path_factory.mktemp("demo"), "--workers", "2")
    yield demo
    if demo.process.returncode is None:
        await stop_demo(demo)


class TestTheDemo:
    async def test_its_first_line_is_machine_readable_and_complete(self, demo: Demo) -> None:
        assert demo.facts["url"].startswith("http://127.0.0.1:")
        assert {account["role"] for account in demo.facts["accounts"]} >= {"fan", "organiser", "admin"}
        assert all(account["email"] and account["password"] for account in demo.facts["accounts"])
        assert {size for show in demo.facts["shows"] if (size := show["seats"]) >= 50_000}
        assert any(show["price"] == 0 for show in demo.facts["shows"])
        assert demo.facts["data"] == str(demo.data)

    async def test_it_serves(self, demo: Demo) -> None:
        show = demo.facts["shows"][0]["id"]

        assert await demo.status("/healthz") == 200
        assert await demo.status("/readyz") == 200
        assert await demo.status(f"/api/v1/shows/{show}") == 200

    async def test_every_address_in_the_welcome_works(
        self, demo: Demo, capsys: pytest.CaptureFixture[str]
    ) -> None:
        welcome(Launched(demo.url, str(demo.data), {}))
        printed = re.findall(r"http://\S+", capsys.readouterr().out)

        assert len(printed) == 2
        assert [await asyncio.to_thread(fetch_status, address) for address in printed] == [200, 200]

    async def test_the_size_is_limited(self, demo: Demo) -> None:
        assert sum(memory_kb(child) for child in family(demo.process.pid)) < MEMORY_MAX_KB

    async def test_a_killed_web_worker_is_replaced_and_the_other_serves_meanwhile(self, demo: Demo) -> None:
        first = demo.child("web-1")
        os.kill(first, signal.SIGKILL)

        assert await demo.restarted("web-1", after=first) != demo.child("web-2")

    async def test_a_killed_background_worker_is_replaced(self, demo: Demo) -> None:
        first = demo.child("work-1")
        os.kill(first, signal.SIGKILL)

        assert await demo.restarted("work-1", after=first)

    @pytest.mark.parametrize("engine", ["valkey", "postgres"])
    async def test_it_survives_a_killed_engine(self, demo: Demo, engine: str) -> None:
        first = demo.child(engine)
        os.kill(first, signal.SIGKILL)

        assert await demo.restarted(engine, after=first)

    async def test_a_second_one_on_the_same_folder_is_refused(self, demo: Demo) -> None:
        ended = await run_holdfast("demo", "--port", "0", "--data", str(demo.data))

        assert_refused(ended, rf"in use by Holdfast process {demo.process.pid}: stop it")

    async def test_a_second_one_on_the_same_port_is_refused(self, demo: Demo, tmp_path: Path) -> None:
        ended = await run_holdfast("demo", "--port", str(demo.port), "--data", str(tmp_path / "other"))

        assert_refused(ended, rf"127.0.0.1:{demo.port}: Address already in use; choose another port")

    async def test_the_doctor_finds_its_engines_and_nothing_wrong(self, demo: Demo) -> None:
        ended = await run_holdfast("doctor", "--json", "--data", str(demo.data))

        found = {finding["what"] for finding in ended.page}
        assert [finding for finding in ended.page if finding["health"] != "ok"] == []
        assert {"ledger", "holds", "clock of ledger", "clock of holds", "migrations"} <= found
        assert ended.code == 0, ended

    async def test_its_schema_is_up_to_date(self, demo: Demo) -> None:
        ended = await run_holdfast("migrate", "--plan", "--json", "--data", str(demo.data))

        assert ended.page == {"pending": []}

    async def test_an_audit_finds_no_violations(self, demo: Demo) -> None:
        ended = await run_holdfast("audit", "--map", "--json", "--data", str(demo.data))

        assert ended.code == 0, ended
        assert ended.page["violations"] == []

    async def test_maps_can_be_rebuilt(self, demo: Demo) -> None:
        show = demo.facts["shows"][0]["id"]
        ended = await run_holdfast("rebuild", str(show), "--json", "--data", str(demo.data))

        assert ended.page == {"rebuilt": 1}

    async def test_a_hall_is_brought_in_from_a_file(self, demo: Demo, tmp_path: Path) -> None:
        file = tmp_path / "Back_room.csv"
        file.write_text("section,row,number,category,x,y\nStalls,A,1,Gold,0,0\nStalls,A,2,Gold,0.6,0\n")
        words = ("venue", "import", str(file), "--json", "--data", str(demo.data))

        drawn = await run_holdfast("venue", "import", str(file), "--dry-run")
        tried = await run_holdfast(*words, "--dry-run")
        stored = await run_holdfast(*words, "--venue", "1")
        again = await run_holdfast(*words, "--venue", "1")

        assert (tried.page["name"], tried.page["seats"], tried.page["stored"]) == ("Back room", 2, False)
        assert tried.page["categories"] == [{"name": "Gold", "seats": 2}]
        assert "AA\n     2  A  Gold" in drawn.output
        assert tried.page["warnings"] == []
        assert stored.page == {**tried.page, "hall": stored.page["hall"], "stored": True}
        assert_refused(again, "name")

    async def test_another_server_joins_its_engines(self, demo: Demo) -> None:
        async with serve_holdfast("serve", "--port", "0", "--workers", "1", "--data", str(demo.data)) as page:
            assert await asyncio.to_thread(fetch_status, page["url"] + "/readyz") == 200
            assert page["url"] != demo.url

        assert await demo.status("/readyz") == 200

    async def test_commands_use_the_engines_they_are_given(self, demo: Demo, tmp_path: Path) -> None:
        found = DataFolder(demo.data).running()
        assert found is not None
        env = {"HOLDFAST_DATABASE_URL": found.database_url, "HOLDFAST_REDIS_URL": found.redis_url}
        env["HOLDFAST_GATEWAY"] = "sandbox"

        async with serve_holdfast("work", "--data", str(tmp_path), **env):
            async with serve_holdfast(
                "serve", "--port", "0", "--workers", "1", "--data", str(tmp_path), **env
            ) as page:
                assert await asyncio.to_thread(fetch_status, page["url"] + "/readyz") == 200
                assert {"web-1.pid", "work-1.pid"} <= set(os.listdir(tmp_path / "run"))

                # The next release starts on the same port before this one stops: no request is refused.
                same = ("--port", page["url"].rpartition(":")[2], "--workers", "1", "--data", str(tmp_path))
                async with serve_holdfast("serve", *same, **env) as second:
                    assert second["url"] == page["url"]

        assert "postgres" not in os.listdir(tmp_path)
        assert os.listdir(tmp_path / "run") == []

    async def test_stopped_and_started_again_it_has_its_data(self, demo: Demo) -> None:
        """Last in this class: it ends the demo that the others share."""
        children = family(demo.process.pid)
        await stop_demo(demo)
        assert demo.process.returncode == 0
        assert not [child for child in children if is_running(child)]

        again = await start_demo(demo.data)
        async with httpx2.AsyncClient(base_url=again.url) as client:
            found = [await client.get(f"{API}/shows/{show['id']}") for show in demo.facts["shows"]]
        await stop_demo(again)

        # Not the same list: a show about to open may have opened meanwhile, and another one is announced.
        assert [answer.status_code for answer in found] == [200] * len(demo.facts["shows"])
        assert again.facts["shows"][0]["id"] == demo.facts["shows"][0]["id"]


class TestTrouble:
    async def test_an_unknown_setting(self) -> None:
        assert_refused(
            await run_holdfast("doctor", HOLDFAST_HOLD_TTL="5"), "no such setting: HOLDFAST_HOLD_TTL"
        )

    async def test_a_ledger_that_is_not_there(self, tmp_path: Path) -> None:
        env = {
            "HOLDFAST_DATABASE_URL": f"postgresql://a@127.0.0.1:{free_port()}/b",
            "HOLDFAST_REDIS_URL": f"unix://{tmp_path}/none",
            "HOLDFAST_GATEWAY": "none",
        }
        for command in (("migrate",), ("audit",), ("serve", "--port", "0"), ("work",)):
            ended = await run_holdfast(*command, "--data", str(tmp_path), **env)
            assert_refused(ended, "PostgreSQL cannot be reached: .*HOLDFAST_DATABASE_URL")

    async def test_an_invalid_url_is_refused(self, tmp_path: Path) -> None:
        env = {"HOLDFAST_DATABASE_URL": "sqlite:///x", "HOLDFAST_REDIS_URL": "redis://127.0.0.1"}

        assert_refused(await run_holdfast("migrate", **env), "HOLDFAST_DATABASE_URL cannot be parsed")

    async def test_nothing_there_to_look_at(self, tmp_path: Path) -> None:
        ended = await run_holdfast("audit", "--data", str(tmp_path / "none"))

        assert_refused(ended, "there is nothing in .*: run `holdfast demo`")
        assert not os.listdir(tmp_path)

    async def test_an_address_that_is_not_ours(self, tmp_path: Path) -> None:
        ended = await run_holdfast("serve", "--host", "no.such.host.invalid", "--data", str(tmp_path))

        assert_refused(ended, "no such address: no.such.host.invalid")

    async def test_a_file_that_is_not_a_layout_is_refused(self, tmp_path: Path) -> None:
        strange = tmp_path / "strange.json"
        strange.write_text("{")

        assert_refused(await run_holdfast("venue", "import", str(strange), "--dry-run"), "is not a layout: ")
        assert_refused(
            await run_holdfast("venue", "import", str(tmp_path / "none.json")), "cannot read .*none.json"
        )

    async def test_the_doctor_reports_each_problem_with_its_fix(self, tmp_path: Path) -> None:
        env = {"HOLDFAST_REDIS_URL": f"unix://{tmp_path}/none.sock"}
        ended = await run_holdfast("doctor", "--json", "--data", str(tmp_path / "new"), **env)

        assert ended.code == 1
        [holds] = [finding for finding in ended.page if finding["what"] == "holds"]
        assert holds["health"] == "fail"
        assert "is HOLDFAST_REDIS_URL right?" in holds["fix"]


class TestMigrate:
    async def test_it_applies_and_reports_missing_migrations(self, tmp_path: Path) -> None:
        first = await run_holdfast("migrate", "--json", "--data", str(tmp_path))
        second = await run_holdfast("migrate", "--data", str(tmp_path))

        assert first.page["applied"][0] == "0001_accounts"
        assert second.output == "The schema is up to date.\n"


async def test_the_version_is_printed() -> None:
    ended = await run_holdfast("--version")

    assert ended.code == 0
    assert ended.output.strip() == f"holdfast {version('holdfast')}"


async def test_help_is_fast_and_hides_internal_commands() -> None:
    ended = await run_holdfast("--help")

    assert ended.code == 0
    for command in ("demo", "serve", "work", "migrate", "rebuild", "audit", "doctor", "venue"):
        assert command in ended.output
    assert "web-worker" not in ended.output


def family(process_id: int) -> list[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parent := parent_of(int(entry.name))):
            children.setdefault(parent, []).append(int(entry.name))
    found = [process_id]
    for member in found:
        found += children.get(member, [])
    return found


def parent_of(process_id: int) -> int:
    try:
        words = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(words[1])


def is_running(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def memory_kb(process_id: int) -> int:
    """Proportional set size: shared memory counts once."""
    for line in Path(f"/proc/{process_id}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0
