"""The runbooks of docs/operating/recovery.md, command by command: Redis, keys, a region."""

import os
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from holdfast.engines.embedded.folder import DataFolder
from tests.support.box_office import Office, office, running
from tests.support.documented_commands import documented_commands
from tests.support.pasted_commands import pasted
from tests.support.retrying_payer import Payer
from tests.support.second_factors import a_holder
from tests.support.shows import Fan
from tests.support.wait import until

PAGE = "operating/recovery.md"
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


async def run(block: str, **variables: object) -> str:
    """A block of the page in a shell, with the variables that the page explains."""
    given = "".join(f"export {name}='{value}'\n" for name, value in variables.items())
    return await pasted(given + block, PATH, Path.cwd())


@pytest.fixture
async def house() -> AsyncIterator[Office]:
    async with office(web=1, work=False, revocations_refresh_s=1) as opened:
        yield opened


async def test_the_house_survives_the_loss_of_redis_of_its_keys_and_of_its_region(
    house: Office, tmp_path: Path
) -> None:
    show = await house.a_show(seats=20)
    (fan,) = await house.fans(1)
    booking = await Payer(fan).holds(show, "A-1")
    assert (await Payer(fan).pays(booking)).json()["state"] == "confirmed"

    # Redis: the embedded one stores nothing, so a new process is an empty one.
    killed = house.kill("valkey")
    await house.back("valkey", after=killed)
    (commands,) = documented_commands(PAGE, "Redis is gone for good")
    output = await run(commands, DATA=house.folder.path)
    assert "rebuilt 1 maps" in output
    assert (await fan.get(f"/shows/{show}/seats")).json()["states"].startswith("BA")

    # A region: last night's file, in a new folder.
    backup = tmp_path / "night.backup"
    await run('holdfast backup create "$BACKUP" --data "$DATA"', BACKUP=backup, DATA=house.folder.path)
    restore, look = documented_commands(PAGE, "A region is gone")
    elsewhere = tmp_path / "elsewhere"
    output = await run(restore, BACKUP=backup, DATA=elsewhere)
    assert "0 violations" in output, output
    words = ("serve", "--port", "0", "--workers", "1", "--data", str(elsewhere), "--json")
    async with running(tmp_path / "serve.log", words, {}):
        assert DataFolder(elsewhere).running() is not None
        await run(look, DATA=elsewhere)

    # Keys that another person may have.
    person = await a_holder(house.app, house.api)
    (commands,) = documented_commands(PAGE, "A key is lost or leaked")
    assert (await fan.get("/bookings")).status_code == 200
    output = await run(commands, DATA=house.folder.path, PERSON=person.email)
    assert "older codes are refused" in output
    await until(partial(is_refused, fan))


async def is_refused(fan: Fan) -> bool:
    return (await fan.get("/bookings")).status_code == 401
