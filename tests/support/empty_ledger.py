"""The data folder of a PostgreSQL with an empty ledger: made once per run of tests, copied for each server.

initdb, a first start and all migrations take seconds of a processor, a copy takes a tenth of one. Tests of
first starts and of migrations do without it. All copies have one ledger_id: no two of them share a Redis.
"""

import asyncio
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

import asyncpg

from holdfast.engines.embedded import engines
from holdfast.engines.embedded.folder import DataFolder
from holdfast.engines.migrate import migrate
from tests.support.engine_folder import find_room

PLACE = "TESTS_EMPTY_LEDGER"  # in the environment of all processes of a run: the folder that has it


def provide_place() -> bool:
    """In the first process of a run, before there are others. False: a run has begun this one."""
    if PLACE in os.environ:
        return False
    os.environ[PLACE] = tempfile.mkdtemp(prefix="holdfast-empty-", dir=find_room())
    return True


def remove_place() -> None:
    shutil.rmtree(os.environ.pop(PLACE))


async def fill_with_ledger(data: Path) -> None:
    """Before the first start of engines in this data folder. Outside of a run they begin from nothing."""
    folder = DataFolder(data)
    if PLACE not in os.environ or folder.postgres.exists():
        return
    place = Path(os.environ[PLACE])
    with (place / "turn").open("w") as turn:
        await asyncio.to_thread(fcntl.flock, turn, fcntl.LOCK_EX)  # until it is closed
        if not (place / "postgres").exists():
            await _make_ledger(place)
    folder.make()
    # Not shutil: the files have another owner when root runs the tests.
    copying = await asyncio.create_subprocess_exec("cp", "-a", str(place / "postgres"), str(folder.postgres))
    assert await copying.wait() == 0


async def _make_ledger(place: Path) -> None:
    draft = place / "draft"
    async with engines(draft, redis_url="not used") as (database_url, _):
        connection = await asyncpg.connect(database_url)
        await migrate(connection)
        await connection.close()
    (draft / "postgres").rename(place / "postgres")
