"""Dumps a migrated database with data, for tests/stores/test_upgrades.py: run once per release.

    .venv/bin/python -m tools.write_upgrade_state 0_2_0

A state is never written again: from its release on, databases like it exist. Beside it goes a list of the
steps it was made of, with their checksums: none of them may change or go (tests/tidy/test_migrations.py).
"""

import asyncio
import re
import sys
import tempfile
from pathlib import Path

import asyncpg

from holdfast.engines.embedded import engines
from holdfast.engines.migrate import migrate, steps
from tools.dump_schema import count_rows, dump, outside_bodies

STATES = Path(__file__).parents[1] / "tests" / "stores" / "upgrades"
STORY = STATES / "story.sql"


async def build_state() -> str:
    with tempfile.TemporaryDirectory() as folder:
        async with engines(folder) as running:
            connection = await asyncpg.connect(running.database_url)
            await migrate(connection)
            await connection.execute(STORY.read_text())
            empty = [table for table, rows in (await count_rows(connection)).items() if not rows]
            await connection.close()
            assert not empty, f"{STORY.name} leaves tables empty: {', '.join(empty)}"
            text = await asyncio.to_thread(dump, running.database_url, "--inserts", "--rows-per-insert=100")
    return outside_bodies(text, lambda sql: re.sub(r"(?m)^(?:\\\w+ .*|--.*)\n", "", sql))


def main() -> int:
    file = STATES / f"{sys.argv[1]}.sql"
    if file.exists():
        print(f"{file.name} exists: a state is never written again")
        return 1
    file.write_text(asyncio.run(build_state()))
    file.with_suffix(".steps").write_text("".join(f"{step.checksum}  {step.name}\n" for step in steps()))
    print(f"wrote {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
