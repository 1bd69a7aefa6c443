"""PostgreSQL and Valkey without an installation: found, started, supervised, stopped.

    async with engines(".holdfast") as (database_url, redis_url): ...

The same engines as in production, so there is one SQL, one Lua and no second way through the code.
"""

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.engines.embedded.folder import DataFolder, Running
from holdfast.engines.embedded.postgres import EmbeddedPostgres
from holdfast.engines.embedded.supervise import Child, Supervisor
from holdfast.engines.embedded.valkey import EmbeddedValkey

CONNECTIONS_MAX = 60

__all__ = ["CONNECTIONS_MAX", "Child", "DataFolder", "Engines", "Supervisor", "engines"]


@dataclass(frozen=True, slots=True)
class Engines:
    database_url: str
    redis_url: str
    children: Mapping[str, Child]  # those that are ours; an engine of the operator's is not among them

    @property
    def postgres(self) -> Child:
        return self.children["postgres"]

    @property
    def valkey(self) -> Child:
        return self.children["valkey"]

    def __iter__(self) -> Iterator[str]:
        return iter((self.database_url, self.redis_url))


@asynccontextmanager
async def engines(
    data_dir: str | Path,
    *,
    database_url: str = "",
    redis_url: str = "",
    connections_max: int = CONNECTIONS_MAX,
    postgres_settings: Mapping[str, str] | None = None,
) -> AsyncIterator[Engines]:
    """Both engines, for as long as the block runs. What has a URL is there already and is left alone."""
    folder = DataFolder(data_dir)
    folder.make()
    folder.lock()
    supervisor = Supervisor(folder)
    try:
        postgres = (
            None
            if database_url
            else EmbeddedPostgres(folder, connections_max=connections_max, settings=postgres_settings)
        )
        valkey = None if redis_url else EmbeddedValkey(folder)
        if postgres is not None:
            await postgres.make()
        embedded = [engine for engine in (postgres, valkey) if engine is not None]
        children = await supervisor.start(*(engine.recipe() for engine in embedded))
        found = Engines(
            database_url=postgres.url if postgres else database_url,
            redis_url=valkey.url if valkey else redis_url,
            children={child.name: child for child in children},
        )
        folder.tell_engines(Running(os.getpid(), *found))
        yield found
    finally:
        await supervisor.stop()
        folder.unlock()
