"""The data folder of a PostgreSQL with an empty ledger: made once per run of tests, copied for each server.

initdb, a first start and all migrations take seconds of a processor, a copy takes a tenth of one. Tests of
first starts and of migrations do without it. All copies have one ledger_id: no two of them share a Redis.
"""

import asyncio
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg

from holdfast.engines.embedded import engines
from holdfast.engines.embedded.folder import DataFolder
from holdfast.engines.migrate import migrate
from holdfast.site.templates_env import warm_up
from tests.support.engine_folder import find_room

PLACE = "TESTS_EMPTY_LEDGER"  # in the environment of all processes of a run: the folder that has it
_early: list["subprocess.Popen[bytes]"] = []


def provide_place() -> bool:
    """In the first process of a run, before there are others. False: a run has begun this one."""
    if PLACE in os.environ:
        return False
    os.environ[PLACE] = tempfile.mkdtemp(prefix="holdfast-empty-", dir=find_room())
    return True


def fill_early() -> None:
    """In a process of its own, while the others collect their tests: they wait for the ledger no more."""
    root = Path(__file__).parents[2]
    _early.append(subprocess.Popen((sys.executable, "-m", "tests.support.empty_ledger"), cwd=root))


def remove_place() -> None:
    while _early:
        _early.pop().wait()
    shutil.rmtree(os.environ.pop(PLACE))


@contextmanager
def turn_on_the_machine(*, by_itself: bool) -> Iterator[None]:
    """Waits until no process of this run has one by itself; for one by itself, until no other has any."""
    with (Path(os.environ[PLACE]) / "machine").open("w") as machine:
        fcntl.flock(machine, fcntl.LOCK_EX if by_itself else fcntl.LOCK_SH)  # until it is closed
        yield


async def fill_with_ledger(data: Path) -> None:
    """Before the first start of engines in this data folder. Outside of a run they begin from nothing."""
    folder = DataFolder(data)
    if PLACE in os.environ and not folder.postgres.exists():
        folder.make()
        await copy_ledger(folder.postgres)


async def copy_ledger(to: Path) -> None:
    """There must be no such folder yet. Not shutil: the files have another owner when root runs the tests."""
    made = await _provide_ledger()
    copying = await asyncio.create_subprocess_exec("cp", "-a", str(made), str(to))
    assert await copying.wait() == 0


async def _provide_ledger() -> Path:
    """The first process makes it; the others wait for that."""
    place = Path(os.environ[PLACE])
    with (place / "turn").open("w") as turn:
        await asyncio.to_thread(fcntl.flock, turn, fcntl.LOCK_EX)  # until it is closed
        if not (place / "postgres").exists():
            await _make_ledger(place)
    return place / "postgres"


async def _make_ledger(place: Path) -> None:
    draft = place / "draft"
    async with engines(draft, redis_url="not used") as (database_url, _):
        connection = await asyncpg.connect(database_url)
        await migrate(connection)
        await connection.close()
    (draft / "postgres").rename(place / "postgres")


if __name__ == "__main__":
    asyncio.run(_provide_ledger())
    warm_up()  # each web worker of the first box offices would compile all templates for itself
