"""The schema of a migrated database as text: pg_dump, normalised so that two databases can be compared.

`make docs` writes it to migrations/schema.sql; tests compare a new and an upgraded database with that file.
"""

import asyncio
import re
import subprocess
import tempfile
from collections.abc import Callable

import asyncpg

from holdfast.engines.embedded import engines
from holdfast.engines.embedded.binaries import find_postgres
from holdfast.engines.migrate import migrate

HEAD = "-- The schema of a migrated database, as pg_dump prints it. Written by `make docs`; do not edit.\n\n"
# Session settings, comments, and the random key of \restrict: nothing of the schema itself.
NOISE = re.compile(r"^(?:--.*|SET .*|SELECT pg_catalog\.set_config.*|\\(?:un)?restrict .*)\n", re.MULTILINE)
DOLLARS = re.compile(r"(\$\$.*?\$\$)", re.DOTALL)


def dump_schema(database_url: str) -> str:
    """Tables, types, functions, triggers and views. The comments inside functions stay."""
    raw = outside_bodies(dump(database_url, "--schema-only"), lambda sql: NOISE.sub("", sql))
    return HEAD + outside_bodies(raw, lambda sql: sql.replace("public.", "")).strip() + "\n"


def outside_bodies(sql: str, change: Callable[[str], str]) -> str:
    """`change` everything but the bodies of functions."""
    parts = DOLLARS.split(sql)
    parts[::2] = [re.sub(r"\n{3,}", "\n\n", change(part)) for part in parts[::2]]
    return "".join(parts)


def dump(database_url: str, *options: str) -> str:
    program = find_postgres().path.with_name("pg_dump")
    command = [str(program), "--no-owner", "--no-privileges", *options, f"--dbname={database_url}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


async def count_rows(connection: asyncpg.Connection) -> dict[str, int]:
    """Table -> rows."""
    names = await connection.fetch(
        "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
    )
    counts = {name: f"SELECT count(*) FROM {name}" for (name,) in names}  # noqa: S608 quoted above
    return {name: await connection.fetchval(sql) for name, sql in counts.items()}


async def schema_of_new_database() -> str:
    """Starts an engine in a temporary folder, migrates an empty database and dumps it."""
    with tempfile.TemporaryDirectory() as folder:
        async with engines(folder) as running:
            connection = await asyncpg.connect(running.database_url)
            await migrate(connection)
            await connection.close()
            return await asyncio.to_thread(dump_schema, running.database_url)
