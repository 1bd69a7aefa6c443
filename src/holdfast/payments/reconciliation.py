"""Reconciliation: the gateway's list against the ledger, and the ledger against the gateway.

    theirs, page by page ─► ours of the same keys ─┐
    ours, paid, that they did not list ────────────┼─► in doubt ─► looked up one by one ─► settled
    left by an earlier comparison ─────────────────┘                                    └─► stored

A payment that differs in a list is looked up again by itself before anything acts on it: a list is outdated
by the time it is read. Settling goes through the saga runner, so that a second comparison finds nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog

from holdfast.bookings import public_id
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import Postgres, Queries, Transaction, require_row
from holdfast.engines.turns import Turns
from holdfast.payments.differences import (
    WATCHED_LONG_S,
    Comparison,
    DifferenceKind,
    DifferencePage,
    LedgerPayment,
    PaymentDifference,
    find_difference,
)
from holdfast.payments.gateway import GatewayAnswer, ListedPayment
from holdfast.payments.payment import parse_payment_key
from holdfast.payments.saga import PaymentStep
from holdfast.payments.saga_runner import SagaRunner
from holdfast.payments.store import PaymentStore

Q = Queries("holdfast.payments", "reconciliation")
log = structlog.get_logger(__name__)

LOOK_UPS_AT_ONCE_MAX = 8
IN_DOUBT_MAX = 1000  # looked up one by one per comparison; the next comparison continues
SKEW = timedelta(seconds=60)  # between the gateway's clock and the ledger's


FIRST = timedelta(days=1)  # of a gateway that was never compared
OVERLAP = timedelta(minutes=2)  # of two comparisons: clocks differ, and lists lag
DEEP_PAUSE = timedelta(hours=1)
BACK = timedelta(hours=1)  # a payment may be under way this long
LEASE_S = 120.0


@dataclass(frozen=True, slots=True)
class ComparisonStart:
    at: datetime
    is_deep: bool  # it reads what was under way during the last deep one, too


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    seen: int
    settled: int
    differences: list[PaymentDifference]


class Reconciliation:
    def __init__(
        self,
        postgres: Postgres,
        payments: PaymentStore,
        saga_runner: SagaRunner,
        sells: Callable[[int], bool] = lambda _show_id: True,
    ) -> None:
        """`sells`: whether this database sells the show. The gateway lists payments of all of them."""
        self._sells = sells
        self.gateway = saga_runner.gateway
        self._postgres = postgres
        self._payments = payments
        self._saga_runner = saga_runner
        self._turns = Turns(postgres)

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[bool]:
        """False: another process is comparing. A lease: one that is never given back ends by itself."""
        async with self._turns.taken(f"reconcile {self.gateway.name}", LEASE_S) as is_ours:
            yield is_ours

    async def compare(self, since: datetime, *, is_deep: bool = False) -> ComparisonResult:
        """Payments made since then, and the differences of earlier comparisons. Raises GatewayDown."""
        began: datetime = await self._postgres.fetchval(Q.now)
        doubtful, seen = await self._list_doubtful(since)
        earlier = await self._postgres.fetch(Q.left_over, self.gateway.name, IN_DOUBT_MAX)
        for row in earlier:
            if self._is_ours(row["key"]):
                doubtful.setdefault(row["key"], row["reference"] or None)
        for key in await self._unlisted(since, seen):
            doubtful.setdefault(key, None)
        outcome = await self._check_each(list(doubtful.items())[:IN_DOUBT_MAX], len(seen))
        await self._store_result(since, began, outcome, is_deep=is_deep)
        return outcome

    async def look_into(self, key: str) -> PaymentDifference | None:
        """One payment, whenever it was made; a remaining difference is stored, too."""
        found, _ = await self._settle(key, None)
        if found is not None:
            async with self._postgres.transaction() as tx:
                await self._store_differences(tx, [found])
        return found

    async def latest(self) -> Comparison:
        row = await self._postgres.fetchrow(Q.latest_comparison, self.gateway.name)
        left = await self._postgres.fetch(Q.left_over, self.gateway.name, IN_DOUBT_MAX)
        return Comparison(
            gateway=self.gateway.name,
            since=row["since_at"] if row else None,
            compared_at=row["ended_at"] if row else None,
            seen=row["seen"] if row else 0,
            settled=row["settled"] if row else 0,
            differences=[_page(one) for one in left],
        )

    async def since(self, pause: timedelta) -> "ComparisonStart | None":
        """Start of the next comparison, without a gap; None: the latest is recent enough.

        Only what is new is read each time. Once an hour it is read from before the last such comparison, for
        payments that were under way then and were captured since, and whose webhook was lost.
        """
        row = await self._postgres.fetchrow(Q.latest_comparison, self.gateway.name)
        if row is None:
            now: datetime = await self._postgres.fetchval(Q.now)
            return ComparisonStart(now - FIRST, is_deep=True)
        if row["now"] - row["began_at"] < pause:
            return None
        if row["now"] - row["deep_at"] > DEEP_PAUSE:
            return ComparisonStart(min(row["began_at"], max(row["deep_at"], row["now"] - FIRST)) - BACK, True)
        return ComparisonStart(row["began_at"] - OVERLAP, is_deep=False)

    async def ago(self, length: timedelta) -> datetime:
        now: datetime = await self._postgres.fetchval(Q.now)
        return now - length

    async def count(self) -> None:
        """Gauges of waiting payments, webhooks and differences."""
        for name, value in dict(require_row(await self._postgres.fetchrow(Q.figures))).items():
            metrics.measure(name, value)

    # ── beneath ───────────────────────────────────────────────────────────────────────

    async def _list_doubtful(self, since: datetime) -> tuple[dict[str, str | None], set[str]]:
        """(doubtful keys with the reference to look up, every key that the gateway listed)"""
        doubtful: dict[str, str | None] = {}
        seen: set[str] = set()
        after: str | None = None
        while True:
            page, after = await self.gateway.list_recent(since=since, after=after)
            listed = [one for one in page if one.key and self._is_ours(one.key)]
            ours = await self._load_ours(one.key for one in listed if one.key)
            for one in listed:
                assert one.key is not None
                seen.add(one.key)
                if find_difference(one.key, ours.get(one.key), one.charge) is not None:
                    doubtful[one.key] = _reference(one, ours.get(one.key))
            if after is None:
                return doubtful, seen

    def _is_ours(self, key: str) -> bool:
        """A payment of another pod's show is not a difference: it is compared there."""
        place = parse_payment_key(key)
        return place is not None and self._sells(place[0])

    async def _unlisted(self, since: datetime, seen: set[str]) -> list[str]:
        name = self.gateway.name
        unseen = await self._postgres.fetch(Q.unseen, name, since + SKEW, list(seen), IN_DOUBT_MAX)
        watched = await self._postgres.fetch(Q.watched, name, WATCHED_LONG_S, IN_DOUBT_MAX)
        return [row["key"] for row in (*unseen, *watched)]

    async def _check_each(self, doubtful: list[tuple[str, str | None]], seen: int) -> ComparisonResult:
        settled: list[bool] = []
        left: list[PaymentDifference] = []
        for start in range(0, len(doubtful), LOOK_UPS_AT_ONCE_MAX):
            some = doubtful[start : start + LOOK_UPS_AT_ONCE_MAX]
            for found, was_settled in await asyncio.gather(*(self._settle(*one) for one in some)):
                settled += [was_settled]
                left += [found] if found else []
        return ComparisonResult(seen, sum(settled), left)

    async def _settle(self, key: str, reference: str | None) -> tuple[PaymentDifference | None, bool]:
        """(the remaining difference, whether something was settled)"""
        before = (await self._load_ours([key])).get(key)
        known = reference or (before.reference if before else None)
        theirs = await self.gateway.look_up(key=key, reference=known)
        # Ours is read again after the gateway's answer: a payment that was confirmed in between would
        # otherwise look like money without a booking.
        found = find_difference(key, (await self._load_ours([key])).get(key), theirs)
        if found is None or found.kind is not DifferenceKind.TAKEN or before is None:
            return found, False
        payment = await self._payments.payment(*before.payment_key)
        assert payment is not None
        await self._saga_runner.refresh_from_gateway(payment)
        left = find_difference(key, (await self._load_ours([key])).get(key), theirs)
        log.warning("payment settled by reconciliation", key=key, is_left=left is not None)
        return left, left is None

    async def _load_ours(self, keys: Iterable[str]) -> dict[str, LedgerPayment]:
        placed = [(*place, key) for key in keys if (place := parse_payment_key(key))]
        columns = ([row[part] for row in placed] for part in range(4))
        rows = await self._postgres.fetch(Q.ours, self.gateway.name, *columns)
        return {row["key"]: _ours(row) for row in rows}

    async def _store_result(
        self, since: datetime, began: datetime, outcome: ComparisonResult, *, is_deep: bool
    ) -> None:
        left, name = outcome.differences, self.gateway.name
        async with self._postgres.transaction() as tx:
            await tx.execute(
                Q.delete_settled, name, [one.key for one in left], [one.kind for one in left], began
            )
            await self._store_differences(tx, left)
            await tx.execute(Q.store_comparison, name, since, began, outcome.seen, outcome.settled, is_deep)
        metrics.add("payments_reconciled_total", outcome.settled)

    async def _store_differences(self, tx: Transaction, left: Sequence[PaymentDifference]) -> None:
        columns = ([getattr(one, name) for one in left] for name in DIFFERENCE_COLUMNS)
        await tx.execute(Q.store_differences, self.gateway.name, *columns)
        for one in left:
            metrics.add("payment_differences_found_total", kind=one.kind)
            log.error(
                "payment differs at the gateway", kind=one.kind, key=one.key, ours=one.ours, theirs=one.theirs
            )


def _reference(seen: ListedPayment, ours: LedgerPayment | None) -> str | None:
    """Theirs, if it may differ from ours; otherwise ours."""
    return seen.reference if seen.charge.answer is GatewayAnswer.YES or ours is None else ours.reference


def _ours(row: Any) -> LedgerPayment:
    return LedgerPayment(
        payment_key=(row["show_id"], row["number"], row["attempt"]),
        step=PaymentStep(row["step"]),
        **{name: row[name] for name in PAYMENT_COLUMNS},
    )


DIFFERENCE_COLUMNS = ("key", "kind", "reference", "ours", "theirs")
PAYMENT_COLUMNS: Sequence[str] = (
    *("key", "amount_minor", "currency", "reference"),
    *("back_minor", "requested_minor", "age_s"),
)


def _page(row: Any) -> DifferencePage:
    place = parse_payment_key(row["key"])
    copied = ("key", "reference", "ours", "theirs", "found_at")
    return DifferencePage(
        kind=DifferenceKind(row["kind"]),
        booking_id=public_id(place[0], place[1]) if place else None,
        **{name: row[name] for name in copied},
    )
