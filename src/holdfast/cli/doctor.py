"""Is this machine fit to run a box office? Looks, and changes nothing."""

import os
import platform
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

from holdfast.backup.mark import OWN_DATABASE, WHAT_TO_DO, WentBack, find_other_ledger, find_restore
from holdfast.config import Config
from holdfast.engines.embedded.binaries import Program, find_postgres, find_valkey
from holdfast.engines.embedded.folder import DataFolder
from holdfast.engines.errors import OperatorError
from holdfast.engines.migrate import plan, steps
from holdfast.engines.postgres import Queryable
from holdfast.engines.standbys import find_standby_fault, is_standby, load_standbys
from holdfast.engines.startup_checks import EngineFacts, connect, holds_facts, ledger_facts
from holdfast.runtime.check_settings import Finding, Severity, check_settings, is_trial

DISK_FREE_LEAST = 500_000_000
CLOCK_OFF_MAX_S = 0.5
STANDBY_LAG_MAX_S = 10.0


async def findings(config: Config) -> AsyncIterator[Finding]:
    """One after the other, so that a slow one is seen to be slow."""
    yield _python()
    yield _program("PostgreSQL program", find_postgres, is_needed=not config.database_url)
    yield _program("Valkey program", find_valkey, is_needed=not config.redis_url)
    for finding in check_settings(config, trial=is_trial(config)):
        yield finding
    folder = DataFolder(config.data_dir)
    yield _data_folder(folder.path)
    yield _disk(folder.path)
    running = folder.running()
    redis_url = config.redis_url or (running.redis_url if running else "")
    found = replace(config, database_url=config.database_url or (running.database_url if running else ""))
    async for finding in _ledger(replace(found, redis_url=redis_url), folder):
        yield finding
    if config.replica_url:
        yield await _replica(config.replica_url)
    async for finding in _holds(redis_url):
        yield finding
    async for finding in _sign_in_services(config):
        yield finding


def _python() -> Finding:
    detail = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return Finding("python", Severity.OK, detail)


def _program(what: str, find: Callable[[], Program], *, is_needed: bool) -> Finding:
    try:
        program = find()
    except OperatorError as trouble:
        return Finding(what, Severity.FAIL if is_needed else Severity.OK, "none found", str(trouble))
    source = "from our wheel" if program.is_ours else f"found at {program.path}"
    return Finding(what, Severity.OK, f"{program.version}, {source}" + ("" if is_needed else "; not needed"))


def _data_folder(folder: Path) -> Finding:
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return Finding(
            "data folder",
            Severity.FAIL,
            f"{existing} cannot be written",
            "choose another with --data",
        )
    return Finding("data folder", Severity.OK, str(folder) + ("" if folder.exists() else " (will be made)"))


def _disk(folder: Path) -> Finding:
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    free = shutil.disk_usage(existing).free
    detail = f"{free / 1e9:.1f} GB free"
    if free < DISK_FREE_LEAST:
        return Finding("disk", Severity.WARN, detail, "make room: a full disk stops every sale")
    return Finding("disk", Severity.OK, detail)


async def _ledger(config: Config, folder: DataFolder) -> AsyncIterator[Finding]:
    if not config.database_url:
        yield Finding("ledger", Severity.OK, "not running; `holdfast demo` starts one")
        return
    try:
        connection = await connect(config.session_url)
    except OperatorError as trouble:
        yield Finding("ledger", Severity.FAIL, "not reached", str(trouble))
        return
    try:
        for finding in _engine("ledger", await ledger_facts(connection), "PostgreSQL "):
            yield finding
        yield await _standbys(connection, config.ledger_standbys_min)
        try:
            pending = await plan(connection)
        except OperatorError as trouble:
            yield Finding("migrations", Severity.FAIL, "do not fit", str(trouble))
        else:
            yield _migrations(len(pending))
        yield _history(await find_restore(connection, config.redis_url, folder.path))
        if other := await find_other_ledger(connection, config.redis_url):
            yield Finding("seat maps", Severity.FAIL, f"this Redis has those of ledger {other}", OWN_DATABASE)
    finally:
        await connection.close()


async def _standbys(connection: Queryable, expected: int) -> Finding:
    found = await load_standbys(connection)
    if fault := find_standby_fault(found, expected):
        return Finding("standbys", Severity.FAIL if expected else Severity.WARN, str(found), fault)
    if found.lag_s > STANDBY_LAG_MAX_S:
        fix = "a promotion would take that long: look at its disk, its network and long queries on it"
        return Finding("standbys", Severity.WARN, str(found), fix)
    return Finding("standbys", Severity.OK, str(found) if expected or found.streaming else "none expected")


async def _replica(url: str) -> Finding:
    try:
        connection = await connect(url)
    except OperatorError as trouble:
        fix = str(trouble).replace("HOLDFAST_DATABASE_URL", "HOLDFAST_REPLICA_URL")
        return Finding("replica", Severity.WARN, "not reached: the ledger answers in its place", fix)
    is_replica = await is_standby(connection)
    await connection.close()
    if not is_replica:
        fix = "point HOLDFAST_REPLICA_URL to a standby, or unset it"
        return Finding("replica", Severity.WARN, "it is a primary, and is not read", fix)
    return Finding("replica", Severity.OK, "a standby answers lists, searches and reports")


def _migrations(pending: int) -> Finding:
    if pending:
        return Finding("migrations", Severity.WARN, f"{pending} pending", "run `holdfast migrate`")
    return Finding("migrations", Severity.OK, f"{len(steps())} applied, none pending")


def _history(found: WentBack | None) -> Finding:
    if found:
        return Finding("ledger's history", Severity.FAIL, str(found), WHAT_TO_DO)
    return Finding("ledger's history", Severity.OK, "not older than seen from here")


async def _holds(redis_url: str) -> AsyncIterator[Finding]:
    if not redis_url:
        yield Finding("holds", Severity.OK, "not running; `holdfast demo` starts one")
        return
    try:
        facts = await holds_facts(redis_url)
    except OperatorError as trouble:
        yield Finding("holds", Severity.FAIL, "not reached", str(trouble))
        return
    for finding in _engine("holds", facts):
        yield finding


async def _sign_in_services(config: Config) -> AsyncIterator[Finding]:
    """Whether each one's configuration document can be read. `check_settings` has read our own setting."""
    from holdfast.oidc import ProviderDown
    from holdfast.oidc.client import ProviderClient

    try:
        client = ProviderClient(config)
    except OperatorError:
        return
    for provider in client.providers.values():
        what = f"sign-in with {provider.id}"
        try:
            await client.discover(provider.id)
        except ProviderDown as down:
            fix = f"people cannot sign in with it: {down.__cause__!r}"
            yield Finding(what, Severity.FAIL, f"{provider.issuer} not reached", fix)
        else:
            yield Finding(what, Severity.OK, provider.issuer)
    await client.close()


def _engine(what: str, facts: EngineFacts, name: str = "") -> list[Finding]:
    found = [Finding(what, Severity.FAIL, name + facts.version, fault) for fault in facts.faults]
    found = found or [Finding(what, Severity.OK, name + facts.version)]
    found += [Finding(what, Severity.WARN, name + facts.version, warning) for warning in facts.warnings]
    is_off = abs(facts.ahead_s) > CLOCK_OFF_MAX_S
    clock = Finding(
        f"clock of {what}",
        Severity.WARN if is_off else Severity.OK,
        f"{facts.ahead_s * 1000:+.0f} ms from ours",
        "let one time server set both machines' clocks" if is_off else "",
    )
    return [*found, clock]
