"""The schema of a migrated database as text: pg_dump, normalised so that two databases can be compared.

`make docs` writes it to migrations/schema.sql; tests compare a new and an upgraded database with that file.
"""

import asyncio
import re
import subprocess
import tempfile

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
    raw = dump(database_url, "--schema-only")
    bodies = DOLLARS.split(raw)
    bodies[::2] = [NOISE.sub("", part).replace("public.", "") for part in bodies[::2]]
    return HEAD + re.sub(r"\n{3,}", "\n\n", "".join(bodies)).strip() + "\n"


def dump(database_url: str, *options: str) -> str:
    program = find_postgres().path.with_name("pg_dump")
    command = [str(program), "--no-owner", "--no-privileges", *options, f"--dbname={database_url}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


async def schema_of_new_database() -> str:
    """Starts an engine in a temporary folder, migrates an empty database and dumps it."""
    with tempfile.TemporaryDirectory() as folder:
        async with engines(folder) as running:
            connection = await asyncpg.connect(running.database_url)
            await migrate(connection)
            await connection.close()
            return await asyncio.to_thread(dump_schema, running.database_url)
