"""A database of its own that can be dumped and put back by PostgreSQL's own programs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from holdfast.config import Config
from holdfast.engines.embedded.binaries import find_postgres
from holdfast.engines.startup_checks import connect
from tests.support.second_ledger import address_of, beside, make_ledger

_numbers = count(1)


@dataclass(frozen=True)
class RestorableLedger:
    name: str
    server_url: str  # of another database on the same server
    config: Config

    async def dump(self, file: Path) -> None:
        await _run("pg_dump", "--format=custom", f"--file={file}", self.config.database_url)

    async def restore(self, file: Path) -> None:
        """The database as it was when it was dumped. No process may be connected to it."""
        await self.recreate()
        await _run("pg_restore", f"--dbname={self.config.database_url}", str(file))

    async def recreate(self) -> None:
        owner = await connect(self.server_url)
        try:
            await owner.execute(f"DROP DATABASE IF EXISTS {self.name} WITH (FORCE)")
            await owner.execute(f"CREATE DATABASE {self.name}")
        finally:
            await owner.close()


@asynccontextmanager
async def restorable_ledger(config: Config, folder: Path) -> AsyncIterator[RestorableLedger]:
    name = f"restorable_{next(_numbers)}"
    own = replace(await beside(config, address_of(name, config.database_url), 7), data_dir=str(folder))
    ledger = RestorableLedger(name, config.database_url, own)
    await make_ledger(config.database_url, name)
    try:
        yield ledger
    finally:
        owner = await connect(config.database_url)
        await owner.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await owner.close()


async def _run(program: str, *words: str) -> None:
    process = await asyncio.create_subprocess_exec(
        str(find_postgres().path.with_name(program)), *words, stderr=asyncio.subprocess.PIPE
    )
    _, complaint = await process.communicate()
    assert process.returncode == 0, complaint.decode()
