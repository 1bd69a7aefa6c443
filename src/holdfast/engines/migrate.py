"""Brings the schema up to date: numbered steps, each applied once, then functions that have changed.

    migrations/0001_accounts.sql ─► 0002_catalogue.sql ─► …   tables; the table schema_step lists what is done
                         │
                         ▼
    outbox/functions.sql ─► bookings/functions.sql ─► …       functions, views and triggers; the table
                                                              schema_functions has a fingerprint per file

A step is one transaction: it is applied together with its row in schema_step, or not at all. A step that was
edited after it was applied stops the program, because the database is not what the files say. Lines
of its own in a step say more about it:

    -- outside a transaction   for CREATE INDEX CONCURRENTLY and other long work that must not block a sale.
                               Its statements, each at the end of a line, are executed one by one, and again
                               after an interruption, so each must be repeatable
    -- works with: 0.1.0       programs from this release on run on a database with this step, too

Functions are code: a file is edited in place, and applied again when its fingerprint differs. Files are
applied in the order of their `-- needs:` lines, then by name, all that differ in one transaction: another
process sees the old functions or the new ones, never a mixture. A fingerprint covers the file, the files it
needs and the steps, because a changed table or view invalidates what was built on it.

Any number of processes may start at once: one takes the lock and does the work, the others wait for it and
find it done. They wait without an open transaction: a concurrent index would wait for their snapshots.

A change that waits for the lock of a table makes every statement behind it wait, too: it waits for half a
second, is undone, pauses so that the sale goes on, and tries again for up to a minute.
"""

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import resources
from importlib.metadata import version
from importlib.resources.abc import Traversable

import asyncpg

from holdfast.engines.errors import OperatorError
from holdfast.engines.postgres import Queries, Queryable
from holdfast.engines.view_columns import VIEW, apply_functions

Q = Queries("holdfast.engines")
STEP_FILE = re.compile(r"^(\d{4})_(\w+)\.sql\Z")
FUNCTIONS_FILE = re.compile(r"^functions(_\w+)?\.sql\Z")
OUTSIDE = re.compile(r"^-- outside a transaction$", re.MULTILINE)
WORKS_WITH = re.compile(r"^-- works with: (\S+)$", re.MULTILINE)
# The oldest program that runs with today's functions. Raise it when a signature or a result changes.
FUNCTIONS_WORK_WITH = "0.1.0"
NEEDS = re.compile(r"^-- needs: (.+)$", re.MULTILINE)

TURN_WITHIN_S = 120.0  # while another process applies its changes
TURN_LOOK_S = 0.05
LOCK_WITHIN = "500ms"  # a tenth of the time that a statement of a sale has: none of them times out behind us
LOCK_PAUSE_S = 0.5  # between two tries: those who waited behind us are served
LOCK_PATIENCE_S = 60.0  # of all tries of one change
NO_LOCK = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)
# A view or function cannot be replaced by one with other columns.
OTHER_SHAPE = (asyncpg.InvalidTableDefinitionError, asyncpg.InvalidFunctionDefinitionError)
DROP_VIEW = "DROP VIEW IF EXISTS {} CASCADE;\n"
STATEMENT_WITHIN = "60s"


@dataclass(frozen=True, slots=True)
class Step:
    number: int
    name: str  # "0004_bookings"
    sql: str

    @property
    def checksum(self) -> str:
        return _digest(self.sql)

    @property
    def works_with(self) -> str | None:
        """The oldest release that runs with this step; None: only programs that have it."""
        found = WORKS_WITH.search(self.sql)
        return found[1] if found else None

    def statements(self) -> list[str]:
        """Of a step outside a transaction, one by one; of any other, all at once."""
        if not OUTSIDE.search(self.sql):
            return []
        assert "$$" not in self.sql, "a statement ends at the end of a line"
        return [part for part in re.split(r"(?<=;)[ \t]*\n", self.sql) if part.strip()]


@dataclass(frozen=True, slots=True)
class Functions:
    """A file of functions. `checksum` is its fingerprint."""

    name: str  # "bookings/functions_opening"
    sql: str
    checksum: str


Change = Step | Functions


def steps(folder: Traversable | None = None) -> list[Step]:
    """Every step, in order."""
    found = []
    for file in (folder or resources.files("holdfast") / "migrations").iterdir():
        if match := STEP_FILE.match(file.name):
            found.append(
                Step(int(match[1]), file.name.removesuffix(".sql"), file.read_text(encoding="utf-8"))
            )
    found.sort(key=lambda step: step.number)
    assert len({step.number for step in found}) == len(found), "two steps with one number"
    return found


def functions(applied: Sequence[Step], package: Traversable | None = None) -> list[Functions]:
    """Every file of functions, in the order in which they are applied on top of these steps."""
    files = dict(_function_files(package or resources.files("holdfast")))
    needs = {name: _needs(name, sql, files) for name, sql in files.items()}
    base = "".join(step.checksum for step in applied)
    found: dict[str, Functions] = {}
    for name in _in_order(needs):
        below = "".join(found[need].checksum for need in sorted(needs[name]))
        found[name] = Functions(name, files[name], _digest(base + below + files[name]))
    return list(found.values())


async def plan(
    connection: Queryable, wanted: Sequence[Step] | None = None, code: Sequence[Functions] = ()
) -> list[Change]:
    """What would be applied; changes nothing. `wanted` and `code` stand in for the steps of the product."""
    all_steps, all_functions = _product() if wanted is None else (wanted, code)
    if not await connection.fetchval(Q.step_table_exists):
        return [*all_steps, *all_functions]
    return [*await _missing_steps(connection, all_steps), *await _stale(connection, all_steps, all_functions)]


async def migrate(
    connection: asyncpg.Connection,
    wanted: Sequence[Step] | None = None,
    code: Sequence[Functions] = (),
    *,
    patience_s: float = LOCK_PATIENCE_S,
) -> list[Change]:
    """Apply everything that is missing; returns what this very call applied."""
    if not await plan(connection, wanted, code):
        return []
    async with _turn(connection):
        pending = await plan(connection, wanted, code)  # another process may have done it while we waited
        for step in pending:
            if isinstance(step, Step):
                await _apply_step(connection, step, patience_s)
        if files := [file for file in pending if isinstance(file, Functions)]:
            await _replace_functions(connection, files, _product()[1] if wanted is None else code, patience_s)
    return pending


async def bring_functions_back(
    connection: asyncpg.Connection,
    wanted: Sequence[Step] | None = None,
    code: Sequence[Functions] = (),
    *,
    patience_s: float = LOCK_PATIENCE_S,
) -> list[Functions]:
    """Replace the functions of a newer release by ours: the last step of a way back.

    Tables stay as they are. While a process of the newer release runs, it would use functions that do not
    know its columns: the operator stops those processes first.
    """
    all_steps, all_functions = _product() if wanted is None else (wanted, code)
    has_schema = await connection.fetchval(Q.step_table_exists)
    if not has_schema or await _missing_steps(connection, all_steps):
        raise OperatorError("the schema is older than this program: run `holdfast migrate` first")
    async with _turn(connection):
        await _replace_functions(connection, all_functions, all_functions, patience_s)
    return list(all_functions)


async def _missing_steps(connection: Queryable, wanted: Sequence[Step]) -> list[Step]:
    done = {row["number"]: row for row in await connection.fetch(Q.steps_done)}
    for number in sorted(done.keys() - {step.number for step in wanted}):
        if not _runs_with(done[number]["works_with"]):
            raise OperatorError(
                f"the database is ahead of this program (step {done[number]['name']}): upgrade the program"
            )
    for step in wanted:
        if step.number in done and done[step.number]["checksum"] != step.checksum:
            raise OperatorError(
                f"step {step.name} was changed after it was applied: put the file back and add a new step, "
                "or start with an empty database"
            )
    return [step for step in wanted if step.number not in done]


async def _stale(
    connection: Queryable, known: Sequence[Step], wanted: Iterable[Functions]
) -> list[Functions]:
    """Files whose fingerprint is not the one in the database.

    An older program never replaces the functions of a newer one: while a release is rolled out, a restarted
    worker of the old release would take them away from the new workers.
    """
    done = {row["name"]: row for row in await connection.fetch(Q.functions_done)}
    stale = [file for file in wanted if file.name not in done or done[file.name]["checksum"] != file.checksum]
    newer = [row for row in done.values() if _release(row["program"]) > _release(_program())]
    if refused := [row["program"] for row in newer if not _runs_with(row["works_with"])]:
        raise OperatorError(
            f"the database is ahead of this program (functions of {refused[0]}): upgrade the program"
        )
    steps_done = {row["number"] for row in await connection.fetch(Q.steps_done)}
    return [] if newer or steps_done - {step.number for step in known} else stale


async def _apply_step(connection: asyncpg.Connection, step: Step, patience_s: float) -> None:
    row = (step.number, step.name, step.checksum, step.works_with)
    if statements := step.statements():
        with _explained(f"step {step.name}", undone=""):
            for statement in statements:
                await connection.execute(statement)
            await connection.execute(Q.step_done, *row)
        return

    async def apply() -> None:
        await connection.execute(step.sql)
        await connection.execute(Q.step_done, *row)

    with _explained(f"step {step.name}"):
        await with_short_waits(connection, apply, patience_s)


async def _replace_functions(
    connection: asyncpg.Connection,
    files: Sequence[Functions],
    every: Sequence[Functions],
    patience_s: float,
) -> None:
    """In place, so that a statement that waits meanwhile finds what it was planned with.

    If a view lost a column, or a result has another shape, all views are dropped, with what is built on
    them, and everything is created again: statements under way fail, and clients repeat them.
    """
    names = ", ".join(file.name for file in files)
    try:
        with _explained(f"functions ({names})"):
            await _apply_functions(connection, files, patience_s)
    except OperatorError as refused:
        if not isinstance(refused.__cause__, OTHER_SHAPE):
            raise
        views = Functions("", "".join(DROP_VIEW.format(view) for view in _views(every)), "")
        with _explained(f"functions ({names})"):
            await _apply_functions(connection, [views, *every], patience_s)


def _views(files: Iterable[Functions]) -> list[str]:
    return [found["name"] for file in files for found in VIEW.finditer(file.sql)]


async def _apply_functions(
    connection: asyncpg.Connection, files: Sequence[Functions], patience_s: float
) -> None:
    async def apply() -> None:
        for file in files:
            await apply_functions(connection, file.sql)
            if file.name:
                await connection.execute(
                    Q.functions_applied, file.name, file.checksum, _program(), FUNCTIONS_WORK_WITH
                )

    await with_short_waits(connection, apply, patience_s)


async def with_short_waits(
    connection: asyncpg.Connection,
    apply: Callable[[], Awaitable[None]],
    patience_s: float = LOCK_PATIENCE_S,
) -> None:
    """In one transaction; undone and tried again when a table is locked or sales wait for us in a circle."""
    give_up_at = time.monotonic() + patience_s
    while True:
        try:
            async with connection.transaction():
                await connection.fetchrow(Q.step_limits, LOCK_WITHIN, STATEMENT_WITHIN)
                return await apply()
        except NO_LOCK:
            if time.monotonic() + LOCK_PAUSE_S > give_up_at:
                raise
        await asyncio.sleep(LOCK_PAUSE_S)


@asynccontextmanager
async def _turn(connection: asyncpg.Connection) -> AsyncIterator[None]:
    """The right to change the schema, held by one process at a time."""
    try:
        async with asyncio.timeout(TURN_WITHIN_S):
            while True:
                if await connection.fetchval(Q.step_try_lock):
                    break
                await asyncio.sleep(TURN_LOOK_S)
    except TimeoutError:
        raise OperatorError(
            f"another process has changed the schema for {TURN_WITHIN_S:.0f} s; try again when it is done"
        ) from None
    try:
        async with connection.transaction():  # a process that looks meanwhile sees all tables, or none
            await connection.execute(Q.step_table)
            await connection.execute(Q.functions_table)
            await connection.execute(Q.works_with_columns)
        yield
    finally:
        await connection.execute(Q.step_unlock)


@contextmanager
def _explained(what: str, undone: str = " and was undone") -> Iterator[None]:
    try:
        yield
    except NO_LOCK:
        raise OperatorError(
            f"{what} did not get its lock: another process holds it; try again when it is done"
        ) from None
    except asyncpg.PostgresError as error:
        raise OperatorError(f"{what} failed{undone}: {error}") from error


@cache
def _product() -> tuple[list[Step], list[Functions]]:
    """Read once per process: readiness checks ask often."""
    all_steps = steps()
    return all_steps, functions(all_steps)


def _function_files(package: Traversable) -> Iterator[tuple[str, str]]:
    for folder in package.iterdir():
        if folder.is_dir():
            for file in folder.iterdir():
                if FUNCTIONS_FILE.match(file.name):
                    name = f"{folder.name}/{file.name.removesuffix('.sql')}"
                    yield name, file.read_text(encoding="utf-8")


def _needs(name: str, sql: str, files: Iterable[str]) -> set[str]:
    """`-- needs: bookings, outbox` names other folders. functions_x.sql needs the functions.sql beside it."""
    own, stem = name.split("/")
    folders = {folder.strip() for line in NEEDS.findall(sql) for folder in line.split(",")}
    found = {file for file in files if file.split("/")[0] in folders - {own}}
    if unknown := folders - {file.split("/")[0] for file in found}:
        raise OperatorError(
            f"{name}.sql needs {', '.join(sorted(unknown))}, which has no functions of its own"
        )
    return found | {file for file in files if file == f"{own}/functions" and stem != "functions"}


def _in_order(needs: dict[str, set[str]]) -> Iterator[str]:
    """Every file after those it needs; by name, where that leaves a choice."""
    order = TopologicalSorter(needs)
    try:
        order.prepare()
    except CycleError as error:
        raise OperatorError(f"functions need each other: {' → '.join(error.args[1])}") from None
    while order.is_active():
        ready = sorted(order.get_ready())
        yield from ready
        order.done(*ready)


def _runs_with(works_with: str | None) -> bool:
    """Whether this program may run on what says that it works with this release and later ones."""
    return works_with is not None and _release(works_with) <= _release(_program())


def _release(text: str) -> tuple[int, ...]:
    """(0, 1, 0) of "0.1.0"; parts that are not numbers, as in "0.2.0rc1", end it."""
    numbers = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in numbers[0].split(".")) if numbers else ()


@cache  # it is read from a file, and a readiness check asks for it once per file of functions
def _program() -> str:
    return version("holdfast")


@cache  # readiness checks compare every step again and again
def _digest(text: str) -> str:
    return hashlib.sha256(text.replace("\r\n", "\n").encode()).hexdigest()
