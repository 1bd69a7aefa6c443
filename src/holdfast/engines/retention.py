"""Deletes old rows in small batches while the sale goes on.

    pass over a table   batch ── pause ── batch ── pause ── … ── end ── PASS_PAUSE_S ── the next pass
                          └ one transaction: at most `rows_max` rows, and how far the pass is

A rule is one statement of the folder that owns the rows. It gets ($1) the position where the last batch
ended, ($2) the days after which rows are deleted and ($3) how many rows it may read, and returns the next
position, NULL at the end, with the number of rows it deleted. A rule with `find_needed` gets ($4) ids that
another database still needs. Rows that a pass skips because they are in use
are met by the next pass, which begins at 0.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import structlog

from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import AGAIN, Postgres, Queries, Queryable, require_row

Q = Queries("holdfast.engines", "retention")
log = structlog.get_logger(__name__)

PASS_PAUSE_S = 6 * 3600.0
IDLE_S = 60.0  # pause between two looks when no rule is due
GAVE_WAY_S = 10.0  # pause of a rule that met a lock


@dataclass(frozen=True, slots=True)
class RetentionRule:
    name: str  # "bookings.lapsed"
    sql: str
    keep_d: int  # 0: nothing is deleted
    find_needed: Callable[[Queryable, int, int], Awaitable[list[int]]] | None = None  # (tx, position, rows)


def rows_of_archived_shows(table: str, keep_d: int) -> RetentionRule:
    """Deletes the rows of `table` whose show is archived."""
    return RetentionRule(table, Q.rows_of_archived_shows.replace("{table}", table), keep_d)


class Retention:
    def __init__(
        self,
        postgres: Postgres,
        rules: Sequence[RetentionRule],
        rows_max: int,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._postgres = postgres
        self._rules = {rule.name: rule for rule in rules if rule.keep_d > 0}
        self._rows_max = rows_max
        self._is_known = False
        self._monotonic = monotonic
        self._idle_until = 0.0

    async def step(self) -> int:
        """A job: one batch of one rule. Always returns 0, so that the loop pauses after each batch."""
        if self._monotonic() < self._idle_until:
            return 0
        if not await self.delete_batch():
            self._idle_until = self._monotonic() + IDLE_S
        return 0

    async def delete_batch(self) -> bool:
        """False: no rule is due."""
        if not self._is_known:
            await self._postgres.execute(Q.add_rules, list(self._rules))
            self._is_known = True
        rule: RetentionRule | None = None
        try:
            async with self._postgres.fresh_plans() as tx:
                due = await tx.fetchrow(Q.next_due, list(self._rules))
                if due is None:
                    return False
                rule = self._rules[due["rule"]]
                await tx.execute(Q.limits)
                args: list[object] = [due["reached"], rule.keep_d, self._rows_max]
                if rule.find_needed is not None:
                    args.append(await rule.find_needed(tx, due["reached"], self._rows_max))
                done = require_row(await tx.fetchrow(rule.sql, *args))
                await tx.execute(Q.moved_on, rule.name, done["reached"], done["deleted"], PASS_PAUSE_S)
        except AGAIN:  # the sale has a lock; nothing was deleted, and the other rules go first
            metrics.add("retention_gave_way_total")
            if rule is not None:
                await self._postgres.execute(Q.put_off, rule.name, GAVE_WAY_S)
            return True
        metrics.add("retention_deleted_total", done["deleted"], rule=rule.name)
        return True
