"""The gauge of seats with two live owners, which must be 0. `holdfast audit` checks everything, on demand.

Every run checks the next sales that are open or were until yesterday, in the order in which they close, and
again those in which it has found a seat. So a run costs the same however long the past is. With up to
SALES_MAX open sales, each is checked in every run.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import Postgres, Queries

Q = Queries("holdfast.audit")
PAUSE_S = 60.0
SALES_MAX = 500
SEATS_AT_ONCE = 1_000_000  # in one statement, which also reads the holds of all shows
START = (datetime(1970, 1, 1, tzinfo=UTC), 0)


class OversoldGauge:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres
        self._after = START
        self._found: Counter[int] = Counter()  # show -> oversold seats
        self._has_seen_all = False

    async def count(self) -> int:
        """A job. Returns 0: there is never a backlog."""
        rows = await self._postgres.fetch(Q.sales_after, *self._after, SALES_MAX)
        seats = dict.fromkeys(self._found, SEATS_AT_ONCE) | {row["show_id"]: row["seats"] for row in rows}
        for shows in _portions(seats):
            await self._check(shows)
        is_end = len(rows) < SALES_MAX
        self._after = START if is_end else (rows[-1]["closes_at"], rows[-1]["show_id"])
        self._has_seen_all = self._has_seen_all or is_end
        # A process that takes over reports no 0 before it has checked every sale.
        if self._has_seen_all or self._found:
            metrics.measure("oversold_seats", self._found.total())
        return 0

    async def _check(self, shows: list[int]) -> None:
        async with self._postgres.transaction() as tx:
            await tx.execute(Q.read_by_blocks)
            rows = await tx.fetch(Q.oversold_in, shows)
        for show_id in shows:
            del self._found[show_id]
        self._found.update(row["show_id"] for row in rows)


def _portions(seats: dict[int, int]) -> Iterator[list[int]]:
    """The shows in lists of at most SEATS_AT_ONCE seats, or of one show."""
    portion: list[int] = []
    room = SEATS_AT_ONCE
    for show_id, size in seats.items():
        if portion and size > room:
            yield portion
            portion, room = [], SEATS_AT_ONCE
        portion.append(show_id)
        room -= size
    if portion:
        yield portion
