"""Numbered SQL files, each applied once.

    0001_people.sql ─► 0002_catalogue.sql ─► …    a step is a file; the table schema_step says which are done

Any number of processes may start at once: one takes a step, the others wait for it and find it done. A step
is a transaction of its own: it happened, with its row in schema_step, or it did not. A file that was changed
after it was applied stops the program, because nobody knows any more what the database looks like.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

import asyncpg

from holdfast.engines.errors import OperatorError
from holdfast.engines.sql import Queries

Q = Queries("holdfast.engines")
FILE = re.compile(r"^(\d{4})_(\w+)\.sql$")

TURN_WITHIN = "120s"  # for our turn, while another process takes its steps
LOCK_WITHIN = "5s"
STATEMENT_WITHIN = "60s"


@dataclass(frozen=True, slots=True)
class Step:
    number: int
    name: str  # "0003_ledger"
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.replace("\r\n", "\n").encode()).hexdigest()


def steps(folder: Traversable | None = None) -> list[Step]:
    """Every step there is, in order."""
    found = []
    for file in (folder or resources.files("holdfast") / "migrations").iterdir():
        if match := FILE.match(file.name):
            found.append(
                Step(int(match[1]), file.name.removesuffix(".sql"), file.read_text(encoding="utf-8"))
            )
    found.sort(key=lambda step: step.number)
    assert len({step.number for step in found}) == len(found), "two steps with one number"
    return found


async def plan(connection: asyncpg.Connection, wanted: Sequence[Step] | None = None) -> list[Step]:
    """The steps that would be taken. Changes nothing."""
    wanted = steps() if wanted is None else wanted
    if not await connection.fetchval(Q.step_table_exists):
        return list(wanted)
    done = {row["number"]: row for row in await connection.fetch(Q.steps_done)}
    known = {step.number for step in wanted}
    if ahead := sorted(done.keys() - known):
        raise OperatorError(
            f"the database is ahead of this program (step {done[ahead[0]]['name']}): upgrade the program"
        )
    for step in wanted:
        if step.number in done and done[step.number]["checksum"] != step.checksum:
            raise OperatorError(
                f"step {step.name} was changed after it was applied: put the file back and add a new step, "
                "or start with an empty database"
            )
    return [step for step in wanted if step.number not in done]


async def migrate(connection: asyncpg.Connection, wanted: Sequence[Step] | None = None) -> list[Step]:
    """Take every step that is missing; the ones this very call took."""
    taken = []
    for step in await plan(connection, wanted):
        try:
            if await _take(connection, step):
                taken.append(step)
        except asyncpg.LockNotAvailableError:
            raise OperatorError(
                f"step {step.name} did not get its lock: another process holds it; try again when it is done"
            ) from None
        except asyncpg.PostgresError as error:
            raise OperatorError(f"step {step.name} failed and was undone: {error}") from error
    return taken


async def _take(connection: asyncpg.Connection, step: Step) -> bool:
    async with connection.transaction():
        await connection.fetchrow(Q.step_limits, TURN_WITHIN, TURN_WITHIN)
        await connection.execute(Q.step_lock)
        await connection.execute(Q.step_table)
        if await connection.fetchval(Q.step_is_done, step.number):
            return False
        await connection.fetchrow(Q.step_limits, LOCK_WITHIN, STATEMENT_WITHIN)
        await connection.execute(step.sql)
        await connection.execute(Q.step_done, step.number, step.name, step.checksum)
    return True
