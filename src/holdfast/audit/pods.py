"""Audits the home database and every pod in one run, and what only several databases can break.

    home ──┬── audit of its own ──┐
    east ──┼── audit of its own ──┼──► one report per database, and their sum
    west ──┴── (away) ────────────┼──► named as not audited: the result is not "clean"
      └─ between them: one owner per show, rows where their show is sold, epochs, copies of home's tables

A show that moves and a row on its way to a pod differ for a moment. What differs is looked at twice; a copy
is looked at again after its pod has applied home's log up to the first look.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import asyncpg

from holdfast.audit.report import Report, Violation
from holdfast.audit.store import AUDIT_WITHIN_S, SETTLE_S, audit
from holdfast.bookings import Bookings
from holdfast.claim import Claims
from holdfast.engines.errors import EngineDown
from holdfast.engines.postgres import Postgres, Queries
from holdfast.payments import Gateway
from holdfast.pods import GUARDED, HOME, OF_A_SHOW, REPLICATED, SALE, SALE_COLUMNS, wait_until

Q = Queries("holdfast.audit", "pods")
OWNERS, ROWS, EPOCHS, COPIES = (
    "one_owner_per_show",
    "rows_where_the_show_is_sold",
    "epochs_as_in_the_directory",
    "copies_equal_home",
)
CHECKS_BETWEEN = (OWNERS, ROWS, EPOCHS, COPIES)
# Every transaction of a sale writes these. Other tables of a show follow facts or requests, without a guard.
SOLD = tuple(
    table
    for table in OF_A_SHOW
    if table in {*GUARDED, "taken_seat", "owner_count", "party_count", "booking_move", "journal"}
)
CATCH_UP_S = 15.0
OTHER_SCHEMA = "its schema is not that of this program: run `holdfast migrate`"


@dataclass(frozen=True, slots=True)
class AuditedDatabase:
    postgres: Postgres
    bookings: Bookings
    claims: Claims | None = None  # with them, maps are compared
    gateway: Gateway | None = None  # with it, payments are


@dataclass(slots=True)
class HouseReport:
    databases: dict[str, Report] = field(default_factory=dict)  # by pod; the home database has no name
    between: Report = field(default_factory=Report)
    archive: Report | None = None  # of files, if they were looked at
    unseen: dict[str, str] = field(default_factory=dict)  # what could not be audited, and why

    @property
    def reports(self) -> list[tuple[str, Report]]:
        between = [("house", self.between)] if self.between.checks else []
        archive = [("archive", self.archive)] if self.archive is not None else []
        databases = ((name or "home", report) for name, report in self.databases.items())
        return [*databases, *between, *archive]

    @property
    def checks(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for _, report in self.reports:
            for check, count in report.checks.items():
                total[check] = total.get(check, 0) + count
        return total

    def first(self) -> list[Violation]:
        return [violation for _, report in self.reports for violation in report.first()]

    @property
    def total(self) -> int:
        return sum(report.total for _, report in self.reports)


async def audit_house(databases: Mapping[str, AuditedDatabase]) -> HouseReport:
    """Raises EngineDown if the home database is away: without its directory nothing can be judged."""
    house = HouseReport()
    for name, each in databases.items():
        try:
            if name != HOME:
                await _refuse_other_database(each.postgres, name)
            house.databases[name] = await audit(each.postgres, each.bookings, each.claims, each.gateway)
        except (EngineDown, asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError) as trouble:
            if name == HOME:
                raise
            house.unseen[name] = "cannot be reached" if isinstance(trouble, EngineDown) else OTHER_SCHEMA
        except _OtherDatabaseError as other:
            house.unseen[name] = str(other)
    if len(databases) > 1:
        await _audit_between(house, {name: databases[name].postgres for name in house.databases})
    return house


class _OtherDatabaseError(Exception):
    pass


async def _refuse_other_database(postgres: Postgres, name: str) -> None:
    identity = await postgres.fetchval(Q.identity)
    if identity != name:
        raise _OtherDatabaseError(
            f"its database is {identity or 'a home database'}: correct HOLDFAST_PODS, or `holdfast pod add`"
        )


async def _audit_between(house: HouseReport, reachable: Mapping[str, Postgres]) -> None:
    home = reachable[HOME]
    for row in await home.fetch(Q.known_pods):
        if row["name"] not in {*reachable, *house.unseen}:
            house.unseen[row["name"]] = "HOLDFAST_PODS does not name its engines"
    found = await _look(reachable)
    if found:
        await asyncio.sleep(SETTLE_S)
        found &= await _look(reachable)
    for check in CHECKS_BETWEEN:
        house.between.note(check, sorted((v for v in found if v.check == check), key=str))
    for name in reachable:
        if name != HOME:
            differing = await _compare_copies(home, reachable[name], name)
            if isinstance(differing, str):
                house.unseen[f"copies of {name}"] = differing
            else:
                house.between.note(COPIES, differing)


async def _look(reachable: Mapping[str, Postgres]) -> set[Violation]:
    """What differs at this moment."""
    home = reachable[HOME]
    owners: defaultdict[int, list[str]] = defaultdict(list)
    for name, postgres in reachable.items():
        if name != HOME:
            for row in await postgres.fetch(Q.shows_sold_here, [], timeout=AUDIT_WITHIN_S):
                owners[row["show_id"]].append(name)
    for row in await home.fetch(Q.shows_sold_here, list(owners), timeout=AUDIT_WITHIN_S):
        owners[row["show_id"]].append("home")
    directory = {row["show_id"]: (row["pod"], row["epoch"]) for row in await home.fetch(Q.directory)}
    deleted = {row["show_id"] for row in await home.fetch(Q.deleted_shows)}
    offered = {show_id: named for show_id, named in directory.items() if show_id not in deleted}
    found = {*_judge_owners(owners, offered, reachable)}
    for name, postgres in reachable.items():
        copies = {row["show_id"]: row["epoch"] for row in await postgres.fetch(Q.copies)}
        own = {row["show_id"]: (row["pod"], row["epoch"]) for row in await postgres.fetch(Q.directory)}
        found |= {*_judge_epochs(name, directory, own, copies)}
        found |= {*await _find_rows_elsewhere(postgres, name, directory, copies)}
    return found


def _judge_owners(
    owners: Mapping[int, list[str]], directory: Mapping[int, tuple[str, int]], reachable: Iterable[str]
) -> Iterable[Violation]:
    """A show that the directory does not name, and no pod claims, is sold at home."""
    for show_id, names in owners.items():
        if len(names) > 1:
            yield Violation(OWNERS, show_id, f"{', '.join(sorted(names))} would all sell it")
    for show_id, (pod, epoch) in directory.items():
        if pod in reachable and not owners.get(show_id):
            target = pod or "home"
            yield Violation(
                OWNERS,
                show_id,
                f"no database sells it; the directory names {target} at epoch {epoch}: complete its move "
                f"with `holdfast pod move {show_id} {target}`, or restore both databases to one moment",
            )


def _judge_epochs(
    name: str,
    directory: Mapping[int, tuple[str, int]],
    own: Mapping[int, tuple[str, int]],
    copies: Mapping[int, int],
) -> Iterable[Violation]:
    for show_id in directory.keys() | own.keys() if name != HOME else ():
        if own.get(show_id) != directory.get(show_id):
            yield Violation(
                EPOCHS,
                show_id,
                f"{name} has {_place(own.get(show_id))}, the directory {_place(directory.get(show_id))}",
            )
    for show_id, epoch in copies.items():
        named = directory.get(show_id, (HOME, 1))
        if abs(epoch) > named[1]:
            yield Violation(
                EPOCHS,
                show_id,
                f"{name or 'home'} has a copy of epoch {epoch}, the directory {_place(named)}: home was "
                "restored to before a move, or a move was not completed",
            )


def _place(named: tuple[str, int] | None) -> str:
    return f"{named[0] or 'home'} at epoch {named[1]}" if named else "nothing"


async def _find_rows_elsewhere(
    postgres: Postgres, name: str, directory: Mapping[int, tuple[str, int]], copies: Mapping[int, int]
) -> list[Violation]:
    """Not of a show that is fenced here before its move: its rows are where they belong."""
    rows: defaultdict[int, list[str]] = defaultdict(list)
    for table in SOLD:
        for row in await postgres.fetch(Q.rows_elsewhere.replace("{table}", table), timeout=AUDIT_WITHIN_S):
            pod, epoch = directory.get(row["show_id"], (HOME, 1))
            if (pod, -epoch) != (name, copies.get(row["show_id"])):
                rows[row["show_id"]].append(f"{row['rows']} of {table}")
    return [
        Violation(
            ROWS,
            show_id,
            f"{name or 'home'} does not sell it and has rows: {', '.join(counts)}; of an interrupted move, "
            f"`holdfast pod move {show_id} {directory.get(show_id, (HOME, 1))[0] or 'home'}` removes them",
        )
        for show_id, counts in rows.items()
    ]


async def _compare_copies(home: Postgres, pod: Postgres, name: str) -> list[Violation] | str:
    """Rows that differ although the pod has received everything. A string: why that cannot be known."""
    first = {table: await _differing(home, pod, table) for table in (*REPLICATED, SALE)}
    suspects = {table: rows for table, rows in first.items() if rows}
    if not suspects:
        return []
    end = await home.fetchval(Q.end_of_log)

    if not await _has_caught_up(home, name, end):
        return "they differ, and replication is behind: see `holdfast pod list` and `holdfast doctor`"
    found = []
    for table, rows in suspects.items():
        again = await _differing(home, pod, table)
        still = sorted(key for key, both in rows.items() if again.get(key) == both)
        found += [Violation(COPIES, None, f"{name}: {table} {key} is not as at home") for key in still]
    return found


async def _has_caught_up(home: Postgres, name: str, end: str) -> bool:
    """False at once if the pod is not connected: nothing would arrive while we wait."""
    is_done = False

    async def is_decided() -> bool:
        nonlocal is_done
        row = await home.fetchrow(Q.has_received, name, end)
        is_done = row is not None and row["is_done"]
        return is_done or row is None or not row["is_connected"]

    try:
        await wait_until(is_decided, CATCH_UP_S)
    except TimeoutError:
        return False
    return is_done


async def _differing(home: Postgres, pod: Postgres, table: str) -> dict[str, tuple[int | None, int | None]]:
    """By key: the digest at home and in the pod."""
    row = await home.fetchrow(Q.columns_of, table)
    assert row is not None
    columns = ", ".join(SALE_COLUMNS) if table == SALE else row["columns"]
    names = {"{table}": table, "{key}": row["key"], "{columns}": columns}
    parts = [await _digests(each, names) for each in (home, pod)]
    differing = [
        part for part in parts[0].keys() | parts[1].keys() if parts[0].get(part) != parts[1].get(part)
    ]
    if not differing:
        return {}
    ours, theirs = [await _rows_of_parts(each, names, differing) for each in (home, pod)]
    return {
        key: (ours.get(key), theirs.get(key))
        for key in ours.keys() | theirs.keys()
        if ours.get(key) != theirs.get(key)
    }


async def _digests(postgres: Postgres, names: Mapping[str, str]) -> dict[int, str]:
    async with postgres.transaction() as tx:
        await tx.execute(Q.write_alike)
        rows = await tx.fetch(_fill(Q.digests, names), timeout=AUDIT_WITHIN_S)
    return {row["part"]: row["digest"] for row in rows}


async def _rows_of_parts(postgres: Postgres, names: Mapping[str, str], parts: list[int]) -> dict[str, int]:
    async with postgres.transaction() as tx:
        await tx.execute(Q.write_alike)
        rows = await tx.fetch(_fill(Q.rows_of_parts, names), parts, timeout=AUDIT_WITHIN_S)
    return {row["key"]: row["digest"] for row in rows}


def _fill(query: str, names: Mapping[str, str]) -> str:
    for mark, name in names.items():
        query = query.replace(mark, name)
    return query
