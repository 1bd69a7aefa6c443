"""Is PostgreSQL fit: settings, clock, standbys, schema, room, connections; and what its tables say.

Workers, dead letters and backups are known to the ledger: the doctor sees them from any machine.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress

import asyncpg

from holdfast.audit import DeadLetters, count_dead_letters
from holdfast.backup import find_other_ledger, find_restore, load_backup_age
from holdfast.backup.mark import OWN_DATABASE, WHAT_TO_DO, WentBack
from holdfast.config import Config
from holdfast.engines.aside import run_aside
from holdfast.engines.clocks import CLOCK_OFF_MAX_S
from holdfast.engines.connections import load_connections
from holdfast.engines.disk import load_ledger_size, measure_room
from holdfast.engines.embedded.folder import DataFolder
from holdfast.engines.errors import OperatorError
from holdfast.engines.migrate import plan, steps
from holdfast.engines.postgres import Queryable
from holdfast.engines.standbys import find_standby_fault, is_standby, load_standbys
from holdfast.engines.startup_checks import EngineFacts, connect, ledger_facts
from holdfast.engines.worker_beat import WorkerFacts, wait_for_workers
from holdfast.runtime.check_machine import count_processes, judge_room
from holdfast.runtime.check_settings import Finding, Severity, is_trial

STANDBY_LAG_MAX_S = 10.0  # the alert HoldfastStandbyLate has the same
CLOSE_WITHIN_S = 2.0
NOT_RUNNING = "not running; `holdfast demo` starts one"
FOR_COMMANDS = 10  # connections beside the pools: migrations, audits, a person with psql


async def check_ledger(config: Config, given: Config) -> AsyncIterator[Finding]:
    """`given`: the operator's own settings, before the address of an embedded engine was filled in."""
    if not config.database_url:
        yield Finding("ledger", Severity.OK, NOT_RUNNING)
        return
    async with _connected(config.session_url) as connection:
        if isinstance(connection, Finding):
            yield connection
            return
        for finding in describe_engine("ledger", await ledger_facts(connection), "PostgreSQL "):
            yield finding
        yield await _standbys(connection, config.ledger_standbys_min)
        folder = DataFolder(config.data_dir)
        yield _history(await find_restore(connection, config.redis_url, folder.path))
        if other := await find_other_ledger(connection, config.redis_url):
            yield Finding("seat maps", Severity.FAIL, f"this Redis has those of ledger {other}", OWN_DATABASE)
        yield await _room(connection, config)
        yield await _connections(connection, config)
        try:
            pending = len(await plan(connection))
        except OperatorError as trouble:
            yield Finding("migrations", Severity.FAIL, "do not fit", str(trouble))
            return
        yield _migrations(pending)
        if not pending:  # else a table of the next checks may be missing
            async for finding in _check_work(connection, config, is_trial(given)):
                yield finding


async def _check_work(connection: Queryable, config: Config, trial: bool) -> AsyncIterator[Finding]:
    yield judge_workers(await wait_for_workers(connection), trial=trial)
    for finding in judge_dead_letters(await count_dead_letters(connection)):
        yield finding
    yield judge_backup(await load_backup_age(connection), config.backup_age_max_h, trial=trial)


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[asyncpg.Connection | Finding]:
    """A connection, or what is wrong. Closing is bounded: a server that hangs confirms nothing."""
    try:
        connection = await connect(url)
    except OperatorError as trouble:
        yield Finding("ledger", Severity.FAIL, "not reached", str(trouble))
        return
    try:
        yield connection
    finally:
        with suppress(TimeoutError):
            await connection.close(timeout=CLOSE_WITHIN_S)


async def check_replica(url: str) -> AsyncIterator[Finding]:
    try:
        connection = await connect(url)
    except OperatorError as trouble:
        fix = str(trouble).replace("HOLDFAST_DATABASE_URL", "HOLDFAST_REPLICA_URL")
        yield Finding("replica", Severity.WARN, "not reached: the ledger answers in its place", fix)
        return
    is_replica = await is_standby(connection)
    with suppress(TimeoutError):
        await connection.close(timeout=CLOSE_WITHIN_S)
    if not is_replica:
        fix = "point HOLDFAST_REPLICA_URL to a standby, or unset it"
        yield Finding("replica", Severity.WARN, "it is a primary, and is not read", fix)
        return
    yield Finding("replica", Severity.OK, "a standby answers lists, searches and reports")


def describe_engine(what: str, facts: EngineFacts, name: str = "") -> list[Finding]:
    """Faults and warnings, or one line that it is well; and its clock."""
    found = [Finding(what, Severity.FAIL, name + facts.version, fault) for fault in facts.faults]
    found = found or [Finding(what, Severity.OK, name + facts.version)]
    found += [Finding(what, Severity.WARN, name + facts.version, warning) for warning in facts.warnings]
    is_off = abs(facts.ahead_s) > CLOCK_OFF_MAX_S
    clock = Finding(
        f"clock of {what}",
        Severity.WARN if is_off else Severity.OK,
        f"{facts.ahead_s * 1000:+.0f} ms from ours",
        "let one time server (chrony, systemd-timesyncd) set the clocks of all machines" if is_off else "",
    )
    return [*found, clock]


async def _standbys(connection: Queryable, expected: int) -> Finding:
    found = await load_standbys(connection)
    if fault := find_standby_fault(found, expected):
        return Finding("standbys", Severity.FAIL if expected else Severity.WARN, str(found), fault)
    if found.lag_s > STANDBY_LAG_MAX_S:
        fix = (
            "a promotion would take that long: look at its disk, its network and long queries on it, and "
            "whether its replay is paused (SELECT pg_wal_replay_resume() on the standby)"
        )
        return Finding("standbys", Severity.WARN, str(found), fix)
    return Finding("standbys", Severity.OK, str(found) if expected or found.streaming else "none expected")


async def _room(connection: Queryable, config: Config) -> Finding:
    size = await load_ledger_size(connection)
    about = f"{size.bytes / 1e6:.0f} MB in the database"
    if size.local_folder is None:
        return Finding("ledger's disk", Severity.OK, f"{about}; its disk cannot be seen from here")
    free = await run_aside(measure_room, size.local_folder)
    return judge_room("ledger's disk", free, config.disk_free_min_mb, f", {about}")


async def _connections(connection: Queryable, config: Config) -> Finding:
    found = await load_connections(connection)
    return judge_connections(
        most=found.most,
        others=found.others,
        per_process=config.postgres_pool_max + config.search_pool_max,
        processes=max(count_processes(DataFolder(config.data_dir)), 1),
    )


def judge_connections(*, most: int, others: int, per_process: int, processes: int) -> Finding:
    wanted = processes * per_process + FOR_COMMANDS
    detail = f"PostgreSQL allows {most}, others use {others}, ours here ({processes}) up to {wanted}"
    if others + wanted > most:
        fix = (
            f"raise max_connections of PostgreSQL to {others + wanted + FOR_COMMANDS} or more, or lower "
            "HOLDFAST_POSTGRES_POOL_MAX; processes on other machines are not counted here"
        )
        return Finding("connections", Severity.WARN, detail, fix)
    return Finding("connections", Severity.OK, detail)


def _migrations(pending: int) -> Finding:
    if pending:
        return Finding("migrations", Severity.WARN, f"{pending} pending", "run `holdfast migrate`")
    return Finding("migrations", Severity.OK, f"{len(steps())} applied, none pending")


def _history(found: WentBack | None) -> Finding:
    if found:
        return Finding("ledger's history", Severity.FAIL, str(found), WHAT_TO_DO)
    return Finding("ledger's history", Severity.OK, "as new as this machine and Redis have seen it")


def judge_workers(found: WorkerFacts, *, trial: bool) -> Finding:
    fix = "start `holdfast work`: no mail is sent, no refund is paid and no waiting room moves without it"
    if not found.is_alive:
        since = f" since {found.lease_end:%Y-%m-%d %H:%M:%S} UTC" if found.lease_end else ""
        severity = Severity.OK if trial and found.lease_end is None else Severity.FAIL
        return Finding("workers", severity, f"none runs{since}", fix)
    if found.idle:
        detail = f"one runs, but none does: {', '.join(found.idle)}"
        fix = "these jobs ran within the last day: start a `holdfast work` whose --only names their subjects"
        return Finding("workers", Severity.WARN, detail, fix)
    return Finding("workers", Severity.OK, "`holdfast work` runs and does all jobs")


def judge_dead_letters(found: DeadLetters) -> Iterator[Finding]:
    fixes = {
        "facts": (found.facts, "`holdfast facts dead` shows why; mend it, then `holdfast facts retry`"),
        "webhooks of the gateway": (
            found.webhooks,
            "`holdfast webhooks list --dead` shows why; mend it, then `holdfast webhooks replay --all-dead`",
        ),
        "mails and messages": (
            found.notices,
            "`holdfast notices list` shows why; mend it, then `holdfast notices replay --all-dead`",
        ),
    }
    dead = {name: (count, fix) for name, (count, fix) in fixes.items() if count}
    if not dead:
        yield Finding("dead letters", Severity.OK, "none")
    for name, (count, fix) in dead.items():
        yield Finding("dead letters", Severity.WARN, f"{count} {name} were given up", fix)


def judge_backup(age_s: float | None, age_max_h: int, *, trial: bool) -> Finding:
    fix = (
        "run `holdfast backup create`, and look why the nightly one failed (holdfast-backup.timer); if "
        "another tool makes backups, let it run `holdfast backup record`"
    )
    if not age_max_h:
        return Finding("backup", Severity.OK, "not watched: HOLDFAST_BACKUP_AGE_MAX_H is 0")
    if age_s is None:
        return Finding("backup", Severity.OK if trial else Severity.FAIL, "none was ever made", fix)
    detail = f"the newest is {age_s / 3600:.1f} hours old"
    if age_s > age_max_h * 3600:
        return Finding("backup", Severity.OK if trial else Severity.FAIL, detail, fix)
    return Finding("backup", Severity.OK, detail)
