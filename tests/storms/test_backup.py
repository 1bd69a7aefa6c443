"""A backup made while people buy, brought back elsewhere: nothing of it is missing, and it sells on."""

import asyncio
import json
import secrets
import stat
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.app import open_app
from holdfast.config import Config
from holdfast.engines.embedded.folder import DataFolder
from holdfast.engines.postgres import require_row
from holdfast.sandbox import load_or_create_secret
from holdfast.web.caller import Role
from tests.support import shows as cast
from tests.support.box_office import Office, jobs, office, running, started
from tests.support.engine_folder import engine_folder
from tests.support.gates import a_device
from tests.support.mailed_links import prove_address
from tests.support.retrying_payer import Payer
from tests.support.shows import API, Fan
from tests.support.wait import until

PEOPLE, PEOPLE_FULL = 5, 40
BOUGHT, BOUGHT_FULL = 20, 1000  # at least, before the backup
DEMO_WITHIN_S = 180  # it is populated first
LOGIN = {"email": "ada@example.com", "password": "a long enough password"}


async def backup(*words: str) -> tuple[int, dict[str, Any], str]:
    """`holdfast backup …`: its exit code, its JSON output and its errors."""
    pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
    process = await started("-m", "holdfast", "backup", *words, **pipes)
    output, complaint = await process.communicate()
    summary = json.loads(output) if output.startswith(b"{") else {}
    return process.returncode or 0, summary, complaint.decode()


@asynccontextmanager
async def again_in(folder: DataFolder) -> AsyncIterator[Office]:
    """`holdfast serve` and `holdfast work` in a folder that is there."""
    async with AsyncExitStack() as stack:
        facts = await stack.enter_async_context(
            running(folder.path.parent / "again.log", words_for("serve", folder), {})
        )
        await stack.enter_async_context(jobs(folder))
        yield await stack.enter_async_context(opened(folder, facts["url"]))


@asynccontextmanager
async def a_demo(folder: DataFolder) -> AsyncIterator[Office]:
    """`holdfast demo`: populated, with its jobs."""
    folder.path.parent.mkdir()
    log, words = folder.path.parent / "demo.log", words_for("demo", folder)
    async with running(log, words, {}, within_s=DEMO_WITHIN_S) as facts:
        async with opened(folder, facts["url"]) as stage:
            yield stage


def words_for(command: str, folder: DataFolder) -> tuple[str, ...]:
    return (command, "--port", "0", "--workers", "1", "--data", str(folder.path), "--json")


@asynccontextmanager
async def opened(folder: DataFolder, url: str) -> AsyncIterator[Office]:
    """Connects the test to the engines that run in a folder."""
    async with AsyncExitStack() as stack:
        engines = folder.running()
        assert engines is not None
        config = Config(
            database_url=engines.database_url,
            redis_url=engines.redis_url,
            gateway_url=(folder.run / "sandbox.url").read_text(),
            gateway_secret=load_or_create_secret(folder.path / "sandbox"),
            access_ttl_s=3600,
        )
        app = await stack.enter_async_context(open_app(config))
        api = await stack.enter_async_context(httpx2.AsyncClient(base_url=url, timeout=30))
        yield Office(folder, url, app, api)


async def buys(payer: Payer, show: int, bought: list[dict[str, Any]]) -> None:
    while True:
        held = await payer.asks(lambda: payer.fan.holds(show, best={"count": 1}))
        booking = held.json()["booking_id"]
        await payer.pays(booking)
        (ticket,) = (await payer.fan.get(f"/bookings/{booking}/tickets")).json()["tickets"]
        bought.append(ticket)


async def sold_meanwhile(stage: Office, file: Path, is_full: bool) -> tuple[int, list[dict[str, Any]]]:
    """A backup during a sale; the show, and the bookings made before it began."""
    show = await stage.a_show(seats=6000 if is_full else 2000, owner_seats_max=1000)
    people = [Payer(fan) for fan in await stage.fans(PEOPLE_FULL if is_full else PEOPLE)]
    bought: list[dict[str, Any]] = []
    buying = [asyncio.create_task(buys(payer, show, bought)) for payer in people]

    async def enough() -> bool:
        return len(bought) >= (BOUGHT_FULL if is_full else BOUGHT)

    await until(enough, within_s=600 if is_full else 60)
    before = list(bought)
    code, summary, complaint = await backup("create", str(file), "--data", str(stage.folder.path), "--json")
    for task in buying:
        task.cancel()
    await asyncio.gather(*buying, return_exceptions=True)
    assert code == 0, complaint
    assert summary["tables"] > 30
    size = (await asyncio.to_thread(file.stat)).st_size // 1024
    meanwhile = len(bought) - len(before)
    print(f"{len(before)} bought before, {meanwhile} while {summary['rows']} rows were written: {size} KB")
    return show, before


@pytest.fixture
def folder() -> Iterator[DataFolder]:
    with engine_folder("holdfast-restored-") as path:
        yield DataFolder(path / "data")


async def test_a_restored_office_has_every_sale_and_continues_selling(
    tmp_path: Path, folder: DataFolder, is_full: bool
) -> None:
    file = tmp_path / "night.backup"
    first = a_demo(DataFolder(tmp_path / "demo" / "data")) if is_full else office(web=1)
    async with first as stage:
        await stage.api.post(f"{API}/accounts", json={**LOGIN, "name": "Ada"})
        await prove_address(stage.app.postgres, LOGIN["email"])
        show, before = await sold_meanwhile(stage, file, is_full)

    verified = await backup("verify", str(file), "--json")
    restored = await backup("restore", str(file), "--data", str(folder.path), "--json")
    assert (verified[0], restored[0]) == (0, 0), (verified, restored)
    assert verified[1]["rows"] == restored[1]["rows"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    async with again_in(folder) as stage:
        last = await stage.app.postgres.fetchval("SELECT max(number) FROM booking WHERE show_id = $1", show)
        assert (await stage.api.post(f"{API}/auth/login", json=LOGIN)).status_code == 200
        (fan,) = await stage.fans(1)
        payer = Payer(fan)
        await payer.pays(await payer.holds(show, "H-1"))
        new = require_row(
            await stage.app.postgres.fetchrow(
                "SELECT number, state FROM booking WHERE show_id = $1 AND owner_id = $2", show, fan.account_id
            )
        )
        assert (new["number"] > last + 100_000, new["state"]) == (True, "confirmed")
        assert set(await let_in(stage, show, before)) == {"admitted"}
        await stage.settled()


async def let_in(stage: Office, show: int, tickets: list[dict[str, Any]]) -> list[str]:
    """The verdicts for codes that were issued before the backup."""
    admin, *_ = await cast.fans(stage.app, stage.api, 1, Role.ADMIN)
    device = await a_device(admin, show)
    return [str((await scanned(device, ticket["code"]))["verdict"]) for ticket in tickets]


async def scanned(device: Fan, code: str) -> Any:
    answer = await device.post("/gate/check-ins", {"scan_id": secrets.token_hex(8), "code": code})
    return answer.json()


def bytes_of(file: Path) -> bytes:
    return file.read_bytes()


@pytest.fixture(scope="module")
async def made(stage: Office, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("backup") / "good.backup"
    await stage.a_show(seats=20)
    code, _, complaint = await backup("create", str(file), "--data", str(stage.folder.path))
    assert code == 0, complaint
    return file


class TestRefused:
    async def test_an_existing_file_is_not_overwritten(self, stage: Office, made: Path) -> None:
        before = bytes_of(made)

        code, _, complaint = await backup("create", str(made), "--data", str(stage.folder.path))

        assert (code, "exists already" in complaint) == (2, True)
        assert bytes_of(made) == before

    async def test_a_data_folder_that_is_not_empty_is_not_restored_into(
        self, stage: Office, made: Path
    ) -> None:
        code, _, complaint = await backup("restore", str(made), "--data", str(stage.folder.path))

        assert (code, "is not empty" in complaint) == (2, True)

    async def test_a_changed_part_is_named(self, made: Path, tmp_path: Path) -> None:
        """Written again with valid checksums and different contents."""
        bad = tmp_path / "bad.backup"
        with zipfile.ZipFile(made) as good, zipfile.ZipFile(bad, "w") as other:
            for name in good.namelist():
                data = good.read(name)
                other.writestr(name, data.replace(b"Hall", b"Hell") if name == "ledger/hall" else data)

        verified = await backup("verify", str(bad))
        restored = await backup("restore", str(bad), "--data", str(tmp_path / "data"))

        assert (verified[0], "ledger/hall" in verified[2]) == (2, True)
        assert (restored[0], "ledger/hall" in restored[2]) == (2, True)
        assert not (tmp_path / "data" / "postgres").exists()

    async def test_a_truncated_file_is_refused(self, made: Path, tmp_path: Path) -> None:
        half = tmp_path / "half.backup"
        half.write_bytes(bytes_of(made)[:5000])

        code, _, complaint = await backup("verify", str(half))

        assert (code, "is incomplete" in complaint) == (2, True)
