"""Are the pods fit: their engines, what they receive from home, shows that a move left closed.

Every line of a pod begins with its name. Lines about the links between databases come from the home database.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

import asyncpg

from holdfast.config import Config
from holdfast.engines.errors import OperatorError
from holdfast.engines.startup_checks import connect
from holdfast.pods import PodFacts, PodPlace, PodStore, parse_pods
from holdfast.pods.store import FENCED_MAX_S, PodLink
from holdfast.runtime.bounded import Check
from holdfast.runtime.check_certificates import check_certificates, keep_own_servers
from holdfast.runtime.check_clocks import check_clocks
from holdfast.runtime.check_ledger import CLOSE_WITHIN_S, check_ledger
from holdfast.runtime.check_redis import check_holds
from holdfast.runtime.check_settings import Finding, Severity

BEHIND_MAX_BYTES = 50_000_000  # the alert HoldfastPodBehind has the same
MB = 1_000_000
OF_HOME = ("HOLDFAST_DATABASE_URL", "HOLDFAST_REDIS_URL")  # settings that a pod has in HOLDFAST_PODS


def pod_checks(config: Config, given: Config) -> list[Check]:
    """None without pods. `given`: the operator's own settings."""
    try:
        places = parse_pods(config.pods)
    except OperatorError as trouble:
        return [
            Check("pods", partial(_report, Finding("pods", Severity.FAIL, "cannot be read", str(trouble))))
        ]
    if not places:
        return []
    engines = [check for place in places for check in _engine_checks(place, config, given)]
    return [*engines, Check("pods", partial(check_links, config, places))]


def _engine_checks(place: PodPlace, config: Config, given: Config) -> Iterator[Check]:
    own = place.configure(config)
    looks: dict[str, Callable[[], AsyncIterator[Finding]]] = {
        "ledger": partial(check_ledger, own, given),
        "holds": partial(check_holds, own.redis_url),
        "clocks of the engines": partial(check_clocks, own),
        "certificates": partial(check_certificates, keep_own_servers(own)),
    }
    for what, look in looks.items():
        yield Check(f"{place.name}: {what}", partial(_name_lines, place.name, look))


async def _report(finding: Finding) -> AsyncIterator[Finding]:
    yield finding


async def _name_lines(name: str, look: Callable[[], AsyncIterator[Finding]]) -> AsyncIterator[Finding]:
    async for finding in look():
        fix = finding.fix
        for setting in OF_HOME:
            fix = fix.replace(setting, "HOLDFAST_PODS")
        yield replace(finding, what=f"{name}: {finding.what}", fix=fix)


async def check_links(config: Config, places: tuple[PodPlace, ...]) -> AsyncIterator[Finding]:
    """What connects the databases, as the home database sees it and each pod."""
    try:
        connection = await connect(config.session_url)
    except OperatorError:  # the ledger has a line of its own
        return
    try:
        home = PodStore(connection)
        shows = {row["name"]: row["shows"] for row in await home.pods()}
        links, step = await home.links(), (await home.facts()).schema_step
        yield judge_log_retained(await home.log_retained_max())
        for finding in judge_fenced("home", await home.fenced_shows(FENCED_MAX_S)):
            yield finding
    finally:
        await _close(connection)
    for finding in judge_unnamed(shows, {place.name for place in places}):
        yield finding
    for place in places:
        if place.name not in shows:
            fix = f"run `holdfast pod add {place.name}`, or take it out of HOLDFAST_PODS"
            yield Finding(f"{place.name}: pod", Severity.WARN, "it was not added: it sells nothing", fix)
            continue
        async for finding in _check_pod(place, links.get(place.name), step):
            yield finding


async def _check_pod(place: PodPlace, link: PodLink | None, step: int) -> AsyncIterator[Finding]:
    yield judge_link(place.name, link)
    try:
        connection = await connect(place.database_url)
    except OperatorError:  # its ledger has a line of its own
        return
    try:
        pod = PodStore(connection)
        facts = await pod.facts()
        for finding in judge_pod(place.name, facts, step):
            yield finding
        for finding in judge_fenced(place.name, await pod.fenced_shows(FENCED_MAX_S)):
            yield finding
    except (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError):
        fix = "run `holdfast migrate`, which brings home and every pod up to date"
        yield Finding(f"{place.name}: schema", Severity.FAIL, "is older than this program", fix)
    finally:
        await _close(connection)


async def _close(connection: asyncpg.Connection) -> None:
    with suppress(TimeoutError):
        await connection.close(timeout=CLOSE_WITHIN_S)


def judge_link(name: str, link: PodLink | None) -> Finding:
    what = f"{name}: replication"
    again = f"run `holdfast pod resync {name}`, with the pod's box office stopped"
    if link is None:
        return Finding(what, Severity.FAIL, "home has no replication slot for it", again)
    if link.behind_bytes is None:
        return Finding(what, Severity.FAIL, "home has removed log that the pod has not received", again)
    retained = (link.retained_bytes or 0) / MB
    about = f"{link.behind_bytes / MB:.1f} MB behind home, which retains {retained:.1f} MB for it"
    if not link.is_active:
        fix = (
            "the pod sells at the prices it has: start its PostgreSQL, and read its log for why it does not "
            "connect to home; home's disk fills meanwhile"
        )
        return Finding(what, Severity.FAIL, f"not connected, {about}", fix)
    if link.behind_bytes > BEHIND_MAX_BYTES:
        fix = "changed prices arrive late: look at the network, at the pod's disk and at its PostgreSQL's log"
        return Finding(what, Severity.WARN, about, fix)
    return Finding(what, Severity.OK, about)


def judge_pod(name: str, facts: PodFacts, step: int) -> Iterator[Finding]:
    if facts.identity != name:
        detail = f"its database is {facts.identity or 'a home database'}"
        fix = "correct HOLDFAST_PODS; the guard refuses to sell from it"
        yield Finding(f"{name}: pod", Severity.FAIL, detail, fix)
    what = f"{name}: subscription"
    if facts.is_enabled is None:
        yield Finding(what, Severity.FAIL, "there is none", f"run `holdfast pod resync {name}`")
    elif not facts.is_enabled:
        fix = "ALTER SUBSCRIPTION holdfast_home ENABLE in the pod; PostgreSQL's log has why it was disabled"
        yield Finding(what, Severity.FAIL, "disabled", fix)
    elif facts.tables_under_way or not facts.is_receiving:
        detail = (
            f"{facts.tables_under_way} tables are still copied" if facts.tables_under_way else "no worker"
        )
        fix = "read the log of the pod's PostgreSQL: a row that cannot be applied stops everything behind it"
        yield Finding(what, Severity.FAIL, detail, fix)
    else:
        yield Finding(what, Severity.OK, "receives changes of home")
    if facts.schema_step != step:
        fix = "run `holdfast migrate`, which brings home and every pod up to date"
        yield Finding(
            f"{name}: schema", Severity.FAIL, f"step {facts.schema_step}, home has step {step}", fix
        )


def judge_log_retained(retained_max: str) -> Finding:
    what = "log for pods"
    if retained_max == "-1":
        fix = (
            "at home: ALTER SYSTEM SET max_slot_wal_keep_size = '50GB' (a part of its disk), then SELECT "
            "pg_reload_conf(); a pod that was away for longer is set up again with `holdfast pod resync`"
        )
        detail = "home keeps all of its log for a pod that is away, until its disk is full"
        return Finding(what, Severity.WARN, detail, fix)
    return Finding(what, Severity.OK, f"home keeps at most {retained_max} for a pod that is away")


def judge_fenced(name: str, shows: list[int]) -> Iterator[Finding]:
    if shows:
        listed = ", ".join(map(str, shows))
        fix = f"`holdfast pod move {shows[0]} POD` completes the move; to {name}, it is undone"
        yield Finding(f"{name}: fenced shows", Severity.FAIL, f"an interrupted move has closed {listed}", fix)


def judge_unnamed(shows: dict[str, int], named: set[str]) -> Iterator[Finding]:
    for name in shows.keys() - named:
        fix = "name its engines in HOLDFAST_PODS on every machine"
        yield Finding(
            f"{name}: pod", Severity.FAIL, f"HOLDFAST_PODS lacks it: {shows[name]} shows refuse", fix
        )
