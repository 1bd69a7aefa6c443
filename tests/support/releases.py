"""Releases of the program side by side: each is a machine of its own on one ledger and one Redis.

A release is a folder with `src/holdfast`: this tree; a copy of it that becomes the next release, with steps
and functions of its own; or an earlier commit, where the history is at hand. All run with the libraries of
this environment.
"""

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from holdfast.engines.migrate import steps
from tests.support.box_office import ROOT, START_WITHIN_S, clean, started, stopped, words_in

COMMAND_WITHIN_S = 120
# What a release may add while the one before it serves: a column of every table, a table, an index.
NEXT_STEPS = {
    "columns": """\
-- works with: {works_with}

{columns}
-- owner: bookings
CREATE TABLE next_list (show_id bigint PRIMARY KEY);
""",
    "index": """\
-- works with: {works_with}
-- outside a transaction

DROP INDEX CONCURRENTLY IF EXISTS next_notes;
CREATE INDEX CONCURRENTLY next_notes ON booking (next_note) WHERE next_note <> '';
""",
}
NEXT_FUNCTION = """

-- The release whose functions these are.
CREATE OR REPLACE FUNCTION functions_of() RETURNS text LANGUAGE sql AS $$ SELECT '{version}' $$;
"""
# Run by a release in its own folder: the show and the people are written by the program that is there first.
SEED = """
import asyncio, json, os, sys
from holdfast.app import open_app
from holdfast.config import Config
from tests.support.shows import a_layout, a_show, fans

async def seed(seats, people):
    async with open_app(Config.from_env(os.environ)) as app:
        show = await a_show(app, layout=a_layout(seats, row=50), owner_seats_max=1000)
        tokens = [fan.token for fan in await fans(app, None, people)]
    print(json.dumps({"show": show, "tokens": tokens}))

asyncio.run(seed(int(sys.argv[1]), int(sys.argv[2])))
"""


@dataclass(frozen=True)
class Release:
    name: str
    root: Path

    @property
    def brings_functions_back(self) -> bool:
        """Programs before 0.1 cannot: `holdfast migrate --own-functions`."""
        return (self.root / "src" / "holdfast" / "cli" / "migrate.py").exists()

    def environment(self, settings: Mapping[str, str]) -> dict[str, str]:
        path = f"{self.root / 'src'}:{self.root}"
        return {**clean(), "PYTHONPATH": path, **settings}

    async def run(self, settings: Mapping[str, str], *words: str) -> Any:
        """The JSON that the command printed; it must succeed."""
        process = await started(
            *words, env=self.environment(settings), cwd=self.root, stdout=-1, stderr=asyncio.subprocess.PIPE
        )
        output, errors = await asyncio.wait_for(process.communicate(), COMMAND_WITHIN_S)
        assert process.returncode == 0, errors.decode()[-3000:] + output.decode()[-1000:]
        return json.loads(output)

    async def holdfast(self, settings: Mapping[str, str], *words: str) -> Any:
        return await self.run(settings, "-m", "holdfast", *words, "--json")

    async def seed(self, settings: Mapping[str, str], *, seats: int, people: int) -> Any:
        return await self.run(settings, "-c", SEED, str(seats), str(people))


def this_release() -> Release:
    return Release(version("holdfast"), ROOT)


def next_release(folder: Path) -> Release:
    """This tree as its next major version: with steps that extend tables, and a function more."""
    source = folder / "src"
    shutil.copytree(ROOT / "src" / "holdfast", source / "holdfast")
    name = f"{int(version('holdfast').split('.')[0]) + 1}.0.0"
    _call_it(source, name)
    for number, (subject, sql) in enumerate(NEXT_STEPS.items(), len(steps()) + 1):
        file = source / "holdfast" / "migrations" / f"{number:04}_{subject}.sql"
        text = sql.format(works_with=version("holdfast"), columns=_columns())
        file.write_text(f"-- {file.name}: for a test.\n{text}")
    functions = source / "holdfast" / "bookings" / "functions.sql"
    functions.write_text(functions.read_text() + NEXT_FUNCTION.format(version=name))
    return Release(name, folder)


def _columns() -> str:
    """One more for every table."""
    sql = "".join(step.sql for step in steps())
    tables = dict.fromkeys(re.findall(r"^CREATE (?:UNLOGGED )?TABLE (\w+)", sql, re.MULTILINE))
    for gone in re.findall(r"^DROP TABLE (\w+)", sql, re.MULTILINE):
        del tables[gone]
    return "".join(f"ALTER TABLE {name} ADD COLUMN next_note text NOT NULL DEFAULT '';\n" for name in tables)


def earlier_release(commit: str, folder: Path) -> Release:
    """The program of a commit, with its tests' builders of shows. Needs the history of the repository."""
    folder.mkdir(parents=True)
    packed = folder / "tree.tar"
    subprocess.run(
        [
            "git",
            "-C",
            str(ROOT),
            "archive",
            "--output",
            str(packed),
            commit,
            "src",
            "tests",
            "pyproject.toml",
        ],
        check=True,
    )
    subprocess.run(["tar", "-xf", str(packed), "-C", str(folder)], check=True)
    found = re.search(r'^version = "(.+)"', (folder / "pyproject.toml").read_text(), re.MULTILINE)
    assert found is not None
    _call_it(folder / "src", found[1])
    return Release(f"{found[1]} ({commit[:7]})", folder)


def _call_it(source: Path, name: str) -> None:
    """`importlib.metadata.version` reads it from here: this folder comes before the environment's."""
    info = source / f"holdfast-{name}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: holdfast\nVersion: {name}\n")


@dataclass
class Machine:
    """`holdfast serve` and `holdfast work` of one release."""

    release: Release
    folder: Path
    settings: Mapping[str, str]
    url: str = ""
    _processes: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def start(self) -> None:
        facts, _ = await asyncio.gather(
            self._start("serve", "--port", "0", "--workers", "1"), self._start("work")
        )
        self.url = facts["url"]

    async def stop(self) -> None:
        """As an operator does it: what is under way is finished."""
        await self._processes.aclose()

    async def _start(self, *words: str) -> Any:
        self.folder.mkdir(exist_ok=True, parents=True)
        log = self.folder / f"{words[0]}.log"
        with log.open("wb") as file:
            process = await started(
                *("-m", "holdfast", *words, "--data", str(self.folder / "data"), "--json"),
                **{"env": self.release.environment(self.settings), "stdout": -1, "stderr": file},
                cwd=self.release.root,
            )
        self._processes.push_async_callback(stopped, process)
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), START_WITHIN_S)
        assert line, words_in(log)
        return json.loads(line)
