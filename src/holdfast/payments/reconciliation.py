"""The comparison: the gateway's list against the ledger, and the ledger against the gateway.

    theirs, page by page ─► ours of the same keys ─┐
    ours, paid, that they did not list ────────────┼─► in doubt ─► asked once more, alone ─► settled
    what an earlier comparison left ───────────────┘                                     └─► written down

Whatever looks different in a list is asked for again by itself before anybody acts on it or is told: a list
is old by the time it is read. Settling is the cashier's own way, so that a second comparison finds nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog

from holdfast.bookings import public_id
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import Postgres, Transaction, require_row
from holdfast.engines.sql import Queries
from holdfast.payments.differences import (
    WATCHED_LONG_S,
    Comparison,
    Difference,
    DifferencePage,
    Kind,
    Ours,
    difference,
)
from holdfast.payments.gateway import Answer, Seen
from holdfast.payments.payment import booking_of_key
from holdfast.payments.saga import Step
from holdfast.payments.saga_runner import SagaRunner
from holdfast.payments.store import PaymentStore

Q = Queries("holdfast.payments", "reconciliation")
log = structlog.get_logger(__name__)

ASKED_AT_ONCE_MAX = 8
IN_DOUBT_MAX = 1000  # asked for one by one in one comparison; the next goes on with the rest
SKEW = timedelta(seconds=60)  # between the gateway's clock and the ledger's


@dataclass(frozen=True, slots=True)
class Outcome:
    seen: int
    settled: int
    differences: list[Difference]


class Reconciliation:
    def __init__(self, postgres: Postgres, book: PaymentStore, cashier: SagaRunner) -> None:
        self.gateway = cashier.gateway
        self._postgres = postgres
        self._book = book
        self._cashier = cashier

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[bool]:
        """False: somebody else is comparing."""
        async with self._postgres.lease() as connection:
            is_ours = await connection.fetchval(Q.try_alone, self.gateway.name)
            try:
                yield is_ours
            finally:
                if is_ours:
                    await connection.fetchval(Q.end_alone, self.gateway.name)

    async def compare(self, since: datetime) -> Outcome:
        """Payments made since then, and what earlier comparisons left. Raises GatewayDown."""
        began: datetime = await self._postgres.fetchval(Q.now)
        doubtful, seen = await self._seen(since)
        earlier = await self._postgres.fetch(Q.left_over, self.gateway.name, IN_DOUBT_MAX)
        for row in earlier:
            doubtful.setdefault(row["key"], row["reference"] or None)
        for key in await self._unlisted(since, seen):
            doubtful.setdefault(key, None)
        outcome = await self._asked_alone(list(doubtful.items())[:IN_DOUBT_MAX], len(seen))
        await self._write_down(since, began, outcome)
        return outcome

    async def look_into(self, key: str) -> Difference | None:
        """One payment, whenever it was made; what is left of it is written down, too."""
        found, _ = await self._settled(key, None)
        if found is not None:
            async with self._postgres.transaction() as tx:
                await self._keep(tx, [found])
        return found

    async def latest(self) -> Comparison:
        row = await self._postgres.fetchrow(Q.compared, self.gateway.name)
        left = await self._postgres.fetch(Q.left_over, self.gateway.name, IN_DOUBT_MAX)
        return Comparison(
            gateway=self.gateway.name,
            since=row["since_at"] if row else None,
            compared_at=row["ended_at"] if row else None,
            seen=row["seen"] if row else 0,
            settled=row["settled"] if row else 0,
            differences=[_page(one) for one in left],
        )

    async def since(self, back: timedelta, first: timedelta, pause: timedelta) -> datetime | None:
        """Where the next comparison begins, so that nothing is left out; None: the latest is new enough."""
        row = await self._postgres.fetchrow(Q.compared, self.gateway.name)
        if row is None:
            now: datetime = await self._postgres.fetchval(Q.now)
            return now - first
        began: datetime = row["began_at"]
        return None if row["now"] - began < pause else began - back

    async def ago(self, length: timedelta) -> datetime:
        now: datetime = await self._postgres.fetchval(Q.now)
        return now - length

    async def count(self) -> None:
        """What waits, for the graphs."""
        for name, value in dict(require_row(await self._postgres.fetchrow(Q.figures))).items():
            metrics.measure(name, value)

    # ── beneath ───────────────────────────────────────────────────────────────────────

    async def _seen(self, since: datetime) -> tuple[dict[str, str | None], set[str]]:
        """(doubtful keys with the reference to ask for, every key the gateway listed)"""
        doubtful: dict[str, str | None] = {}
        seen: set[str] = set()
        after: str | None = None
        while True:
            page, after = await self.gateway.recent(since=since, after=after)
            listed = [one for one in page if one.key and booking_of_key(one.key)]
            ours = await self._ours(one.key for one in listed if one.key)
            for one in listed:
                assert one.key is not None
                seen.add(one.key)
                if difference(one.key, ours.get(one.key), one.charge) is not None:
                    doubtful[one.key] = _reference(one, ours.get(one.key))
            if after is None:
                return doubtful, seen

    async def _unlisted(self, since: datetime, seen: set[str]) -> list[str]:
        name = self.gateway.name
        unseen = await self._postgres.fetch(Q.unseen, name, since + SKEW, list(seen), IN_DOUBT_MAX)
        watched = await self._postgres.fetch(Q.watched, name, WATCHED_LONG_S, IN_DOUBT_MAX)
        return [row["key"] for row in (*unseen, *watched)]

    async def _asked_alone(self, doubtful: list[tuple[str, str | None]], seen: int) -> Outcome:
        settled: list[bool] = []
        left: list[Difference] = []
        for start in range(0, len(doubtful), ASKED_AT_ONCE_MAX):
            some = doubtful[start : start + ASKED_AT_ONCE_MAX]
            for found, was_settled in await asyncio.gather(*(self._settled(*one) for one in some)):
                settled += [was_settled]
                left += [found] if found else []
        return Outcome(seen, sum(settled), left)

    async def _settled(self, key: str, reference: str | None) -> tuple[Difference | None, bool]:
        """(what is left, whether something was settled)"""
        before = (await self._ours([key])).get(key)
        known = reference or (before.reference if before else None)
        theirs = await self.gateway.look_up(key=key, reference=known)
        found = difference(key, (await self._ours([key])).get(key), theirs)
        if found is None or found.kind is not Kind.TAKEN or before is None:
            return found, False
        payment = await self._book.payment(*before.place)
        assert payment is not None
        await self._cashier.hear(payment)
        left = difference(key, (await self._ours([key])).get(key), theirs)
        log.warning("a payment was settled by the gateway's books", key=key, is_left=left is not None)
        return left, left is None

    async def _ours(self, keys: Iterable[str]) -> dict[str, Ours]:
        placed = [(*place, key) for key in keys if (place := booking_of_key(key))]
        columns = ([row[part] for row in placed] for part in range(4))
        rows = await self._postgres.fetch(Q.ours, self.gateway.name, *columns)
        return {row["key"]: _ours(row) for row in rows}

    async def _write_down(self, since: datetime, began: datetime, outcome: Outcome) -> None:
        left, name = outcome.differences, self.gateway.name
        async with self._postgres.transaction() as tx:
            await tx.execute(Q.forget, name, [one.key for one in left], [one.kind for one in left], began)
            await self._keep(tx, left)
            await tx.execute(Q.note, name, since, began, outcome.seen, outcome.settled)
        metrics.add("payments_settled_by_books_total", outcome.settled)

    async def _keep(self, tx: Transaction, left: Sequence[Difference]) -> None:
        columns = ([getattr(one, name) for one in left] for name in KEPT)
        await tx.execute(Q.keep, self.gateway.name, *columns)
        for one in left:
            metrics.add("payment_differences_total", kind=one.kind)
            log.error("the books differ", kind=one.kind, key=one.key, ours=one.ours, theirs=one.theirs)


def _reference(seen: Seen, ours: Ours | None) -> str | None:
    """Theirs, where it is another than ours; else whichever is known is the same."""
    return seen.reference if seen.charge.answer is Answer.YES or ours is None else ours.reference


def _ours(row: Any) -> Ours:
    return Ours(
        place=(row["show_id"], row["number"], row["attempt"]),
        step=Step(row["step"]),
        **{name: row[name] for name in OURS},
    )


KEPT = ("key", "kind", "reference", "ours", "theirs")
OURS: Sequence[str] = (
    *("key", "amount_minor", "currency", "reference"),
    *("back_minor", "asked_minor", "age_s"),
)


def _page(row: Any) -> DifferencePage:
    place = booking_of_key(row["key"])
    copied = ("key", "reference", "ours", "theirs", "found_at")
    return DifferencePage(
        kind=Kind(row["kind"]),
        booking_id=public_id(place[0], place[1]) if place else None,
        **{name: row[name] for name in copied},
    )
