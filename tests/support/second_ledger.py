"""More ledgers on the engines of the tests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count

import asyncpg

from holdfast.config import Config
from holdfast.engines.open_redis import open_redis
from holdfast.engines.postgres import Queries

Q = Queries("holdfast.backup")
PRISTINE = "pristine"  # a database with every migration and nothing in it
_numbers = count(1)


@asynccontextmanager
async def administration(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection beside the ledger: no one may be connected to a database that is copied or dropped."""
    connection = await asyncpg.connect(database_url, database="postgres")
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def a_database(database_url: str) -> AsyncIterator[str]:
    """The address of an empty database on the same server, dropped at the end."""
    name = f"second_{next(_numbers)}"
    async with administration(database_url) as owner:
        await owner.execute(f"CREATE DATABASE {name}")
    yield address_of(name, database_url)
    async with administration(database_url) as owner:
        await owner.execute(f"DROP DATABASE {name} WITH (FORCE)")


@asynccontextmanager
async def a_ledger(database_url: str) -> AsyncIterator[str]:
    """The address of a ledger with nothing in it on the same server, dropped at the end."""
    name = f"second_{next(_numbers)}"
    yield await make_ledger(database_url, name)
    async with administration(database_url) as owner:
        await owner.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def make_ledger(database_url: str, name: str = "holdfast", numbers_from: int = 0) -> str:
    """In place of the database with this name, if there is one; its address.

    A copy takes a tenth of what all migrations take.
    """
    async with administration(database_url) as owner:
        await owner.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await owner.execute(f"CREATE DATABASE {name} TEMPLATE {PRISTINE} STRATEGY file_copy")
    url = address_of(name, database_url)
    ledger = await asyncpg.connect(url)
    await ledger.execute("UPDATE ledger_mark SET ledger_id = gen_random_uuid()")
    if numbers_from:
        await ledger.fetch(Q.skip_numbers, numbers_from)
    await ledger.close()
    return url


def address_of(name: str, database_url: str) -> str:
    return database_url.replace("/holdfast?", f"/{name}?")


async def beside(config: Config, database_url: str, number: int) -> Config:
    """Its shows have the numbers of other shows: their maps are in a database of Valkey of their own.

    It has no pods: those of the tests belong to another ledger.
    """
    redis_url = f"{config.redis_url}?db={number}"
    await empty_valkey(redis_url)
    return replace(config, database_url=database_url, redis_url=redis_url, pods="")


async def empty_valkey(redis_url: str) -> None:
    valkey = open_redis(redis_url, links_max=1, timeout_s=5)
    await valkey.call("FLUSHDB")
    await valkey.close()
