"""The refunds in the ledger: decided, settled, found again. The gateway is called elsewhere.

A refund is decided in one transaction: it locks, loads the cases, calls decision.py, writes the results.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import asyncpg
import msgspec

from holdfast.bookings import Booking, BookingState, public_id, reference
from holdfast.claim import Claim
from holdfast.config import Config
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import AGAIN, Postgres, Queries, Row, Transaction, require_row
from holdfast.engines.show_batch import OWN_LOCK_WAIT_MS, ShowBatcher, busy_if_locked
from holdfast.errors import Busy
from holdfast.refunds.approvals import RefundApprovals, load_limits, lock_proposals, settle_proposals
from holdfast.refunds.decision import (
    DecidedRefund,
    PaidPayment,
    RefundCase,
    RefundTicket,
    RefundVerdict,
    decide,
)
from holdfast.refunds.refund import Cancellation, Refund, RefundDecision, RefundRequest, RefundState
from holdfast.web.audit_log import AuditEntry, record

Q = Queries("holdfast.refunds")

TRIES_MAX = 4  # of a batch that met a deadlock, or a reason that another process has just written
LEASE_SPARE_MS = 3000  # beyond the gateway's time-out: a slower worker is presumed dead
LATEST = (datetime(9999, 1, 1, tzinfo=UTC), 2**62, 2**62, 2**30, 2**30)  # before this one comes every refund
NOT_STORED = ("sale_epoch", "is_replay")  # fields of a booking
COPIED = [name for name in Refund.__struct_fields__ if name not in ("seats", "state")]

RefundCursor = tuple[datetime, int, int, int, int]


class RefundStore:
    """decide() for a caller, decide_many() for the wire."""

    def __init__(self, postgres: Postgres, config: Config) -> None:
        self._postgres = postgres
        self._config = config
        self.approvals = RefundApprovals(postgres)
        self.decide: ShowBatcher[RefundRequest, RefundDecision] = ShowBatcher(
            self.decide_many,
            postgres.lock_waits,
            batch_max=config.batch_max,
            waiting_max=config.waiting_max,
            lock_wait_s=config.sale_lock_wait_ms / 1000,
        )

    @property
    def lease_ms(self) -> int:
        return self._config.gateway_timeout_ms + LEASE_SPARE_MS

    async def decide_many(
        self, requests: Sequence[RefundRequest], lock_wait_ms: int = 0, *, due_ms: int | None = None
    ) -> list[RefundDecision]:
        """Each is decided by itself. The caller carries it out; `due_ms` leaves that to a job.

        After `lock_wait_ms` (0: the statement's time-out) at a locked row: LockNotAvailableError for all.
        """
        due = self.lease_ms if due_ms is None else due_ms
        for _ in range(TRIES_MAX):
            try:
                async with self._postgres.transaction() as tx:
                    decisions = await self._decide(tx, requests, lock_wait_ms, due)
                break
            except asyncpg.LockNotAvailableError:
                raise  # waited long enough: the caller sends it show by show
            except (*AGAIN, asyncpg.UniqueViolationError):
                metrics.add("ledger_retries_total")
        else:
            raise Busy(retry_after_s=1)
        for decision in decisions:
            metrics.add("refunds_decided_total", outcome=decision.outcome)
        return decisions

    async def _decide(
        self, tx: Transaction, requests: Sequence[RefundRequest], lock_wait_ms: int, due_ms: int
    ) -> list[RefundDecision]:
        found = await decide_in(tx, requests, lock_wait_ms, due_ms)
        keys = [(request.booking.show_id, request.booking.number) for request in requests]
        after = {
            (row["show_id"], row["number"]): _booking(row)
            for row in await tx.fetch(Q.after, [key[0] for key in keys], [key[1] for key in keys])
        }
        settled = [(request, verdict) for request, (verdict, _) in zip(requests, found, strict=True)]
        proposals, entries = await settle_proposals(tx, settled, self._config.refund_proposals_h)
        entries += [
            _given_entry(request, verdict)
            for request, verdict in settled
            if request.origin is not None and verdict.outcome == "decided"
        ]
        refunds = await self._load_refunds(
            tx,
            [
                (*key, case.payment.attempt, verdict.refund.id)
                for key, (verdict, case) in zip(keys, found, strict=True)
                if verdict.refund is not None and case is not None and case.payment is not None
            ],
        )
        await record(tx, *entries)
        return [
            RefundDecision(
                verdict.outcome,
                refunds.get((*key, verdict.refund.id)) if verdict.refund else None,
                verdict.in_the_way,
                case.payment.left_minor if case is not None and case.payment is not None else None,
                after.get(key),
                proposals.get(place),
            )
            for place, (key, (verdict, case)) in enumerate(zip(keys, found, strict=True))
        ]

    async def _load_refunds(
        self, tx: Transaction, keys: Sequence[tuple[int, int, int, int]]
    ) -> dict[tuple[int, int, int], Refund]:
        """By (show, number, id): a booking has one payment that is paid."""
        if not keys:
            return {}
        rows = await tx.fetch(Q.taken, *(list(column) for column in zip(*keys, strict=True)))
        return {(row["show_id"], row["number"], row["id"]): _refund(row) for row in rows}

    async def settle(
        self,
        refund: Refund,
        state: RefundState,
        *,
        reference: str | None = None,
        reason: str | None = None,
    ) -> Refund:
        """Store the gateway's answer. Idempotent."""
        rows = await self._fetch(Q.settle, *_key(refund), state, reference, reason, None)
        return _refund(rows[0])

    async def settle_by_hand(self, refund: Refund, note: str) -> Refund:
        """Store how a person paid a refund that the gateway refused. Idempotent: the first note stays."""
        async with self._postgres.transaction() as tx:
            row = require_row(await tx.fetchrow(Q.settle, *_key(refund), RefundState.DONE, None, None, note))
            after = _refund(row)
            if after.settled_note == note and refund.settled_note is None:
                await record(tx, _entry("refund.paid_by_hand", after, {"note": note}))
        return after

    async def reopen(self, refund: Refund, reason: str) -> Refund:
        """It was done, and failed later: a person decides. Idempotent."""
        return _refund((await self._fetch(Q.reopen, *_key(refund), reason))[0])

    async def wait(self, refund: Refund, pause_ms: int) -> None:
        await self._postgres.execute(Q.wait, *_key(refund), pause_ms)

    async def retry(self, refund: Refund) -> Refund | None:
        """None: it is not by_hand any more."""
        async with self._postgres.transaction() as tx:
            if await tx.fetchval(Q.retry, *_key(refund), self.lease_ms) is None:
                return None
            await record(tx, _entry("refund.retried", refund, {}))
        return await self.refund(*_key(refund))

    async def take_due(self, limit: int) -> list[Refund]:
        """Refunds whose lease has ended: now leased to this worker."""
        rows = await self._postgres.fetch(Q.take_due, limit, self.lease_ms)
        if not rows:
            return []
        keys = ([row[name] for row in rows] for name in ("show_id", "number", "attempt", "id"))
        return [_refund(row) for row in await self._postgres.fetch(Q.taken, *keys)]

    async def refund(self, show_id: int, number: int, attempt: int, id: int) -> Refund | None:
        row = await self._postgres.fetchrow(Q.refund, show_id, number, attempt, id)
        return _refund(row) if row else None

    async def refunds_of(self, bookings: Sequence[tuple[int, int]]) -> dict[tuple[int, int], list[Refund]]:
        """By (show, number); every given booking is in the answer."""
        found: dict[tuple[int, int], list[Refund]] = {key: [] for key in bookings}
        shows, numbers = [show for show, _ in bookings], [number for _, number in bookings]
        for row in await self._postgres.fetch(Q.refunds_of, shows, numbers):
            found[row["show_id"], row["number"]].append(_refund(row))
        return found

    async def attempts_of(self, booking: Booking) -> list[Any]:
        return await self._postgres.fetch(Q.attempts_of, booking.show_id, booking.number)

    async def refunds(
        self,
        organiser_id: int | None,
        state: str | None,
        show_id: int | None,
        before: RefundCursor,
        limit: int,
    ) -> list[Refund]:
        """Newest first."""
        async with self._postgres.fresh_plans() as tx:
            rows = await tx.fetch(Q.refunds, organiser_id, state, show_id, *before, limit)
        return [_refund(row) for row in rows]

    async def waiting(self) -> tuple[int, int]:
        """(by hand, requested)"""
        row = require_row(await self._postgres.fetchrow(Q.waiting))
        return row["by_hand"], row["requested"]

    async def ledger_now(self) -> datetime:
        now: datetime = await self._postgres.fetchval(Q.ledger_now)
        return now

    async def shows_to_refund(self, limit: int) -> list[int]:
        return [row["show_id"] for row in await self._postgres.fetch(Q.shows_to_refund, limit)]

    async def bookings_left(self, show_id: int, limit: int) -> list[Booking]:
        return [_booking(row) for row in await self._postgres.fetch(Q.bookings_left, show_id, limit)]

    async def payments_left(self, show_id: int, limit: int) -> list[tuple[int, int, int]]:
        rows = await self._postgres.fetch(Q.payments_left, show_id, limit)
        return [(show_id, row["number"], row["attempt"]) for row in rows]

    async def let_holds_go(self, held: Sequence[Booking]) -> list[Claim]:
        """The claims of the released holds; a hold that has changed meanwhile is missing.

        Busy: the sale or a hold stays locked; the job tries again.
        """
        keys = [b.show_id for b in held], [b.number for b in held], [b.fence for b in held]
        with busy_if_locked():
            rows = await self._postgres.fetch(Q.let_holds_go, *keys, str(OWN_LOCK_WAIT_MS))
        return [Claim(row["claim_id"], row["owner_id"], tuple(row["seats"])) for row in rows]

    async def cancellation(self, show_id: int) -> Cancellation:
        row = require_row(await self._postgres.fetchrow(Q.cancellation, show_id))
        given_up, requested, by_hand, left = (
            row[name] for name in ("given_up", "requested", "by_hand", "left_over")
        )
        return Cancellation(
            bookings=given_up + left,
            refunded=given_up - requested - by_hand,
            requested=requested,
            by_hand=by_hand,
            left=left,
        )

    async def _fetch(self, sql: str, *args: object) -> list[Any]:
        for _ in range(TRIES_MAX):
            try:
                return await self._postgres.fetch(sql, *args)
            except (*AGAIN, asyncpg.UniqueViolationError):
                metrics.add("ledger_retries_total")
        raise Busy(retry_after_s=1)


def _given_entry(request: RefundRequest, verdict: RefundVerdict) -> AuditEntry:
    booking, refund = request.booking, verdict.refund
    given: dict[str, object] = {
        "what": request.what,
        "amount_minor": refund.amount_minor if refund else 0,
        "currency": booking.currency,
        "seats": len(verdict.freed),
        "reason": request.note,
    }
    if request.proposal_id is not None:
        given |= {"proposal": request.proposal_id, "proposed_by": request.actor_id}
    return AuditEntry(
        action="refund.given" if request.proposal_id is None else "refund.approved",
        subject=("booking", public_id(booking.show_id, booking.number)),
        name=reference(booking.show_id, booking.number),
        show_id=booking.show_id,
        after=given,
        person_id=booking.owner_id,
        origin=request.origin,
    )


def _entry(action: str, refund: Refund, after: Mapping[str, object]) -> AuditEntry:
    amount = {"amount_minor": refund.amount_minor, "currency": refund.currency}
    return AuditEntry(
        action=action,
        subject=("refund", refund.refund_id),
        name=reference(refund.show_id, refund.number),
        show_id=refund.show_id,
        after={**amount, **after},
        person_id=refund.owner_id,
    )


def _key(refund: Refund) -> tuple[int, int, int, int]:
    return refund.show_id, refund.number, refund.attempt, refund.id


def _refund(row: Any) -> Refund:
    return Refund(
        seats=tuple(row["seats"]), state=RefundState(row["state"]), **{name: row[name] for name in COPIED}
    )


def _booking(row: Any) -> Booking:
    values = {name: row[name] for name in Booking.__struct_fields__ if name not in NOT_STORED}
    seats, prices = tuple(row["seats"]), tuple(row["prices_minor"])
    return msgspec.structs.replace(
        Booking(**values), seats=seats, prices_minor=prices, state=BookingState(row["state"])
    )


BookingKey = tuple[int, int]  # show_id, number
AMOUNTS = ("seats_minor", "amount_minor", "fee_minor", "tax_minor")


async def decide_in(
    tx: Transaction, requests: Sequence[RefundRequest], lock_wait_ms: int, due_ms: int
) -> list[tuple[RefundVerdict, RefundCase | None]]:
    """A verdict per request, in order, with its case as it is after all of them."""
    keys = [(request.booking.show_id, request.booking.number) for request in requests]
    cases = await _load_cases(tx, sorted(set(keys)), lock_wait_ms)
    await load_limits(tx, requests, cases)
    approvable = await lock_proposals(tx, requests)
    verdicts: dict[int, RefundVerdict] = {}
    # Bookings in the order of their keys, as they were locked; requests for one booking in the order given.
    for place in sorted(range(len(requests)), key=lambda i: (keys[i], i)):
        if requests[place].proposal_id in {None, *approvable}:
            verdicts[place] = decide(cases.get(keys[place]), requests[place])
        else:
            verdicts[place] = RefundVerdict("ended")
    decided = [place for place, verdict in verdicts.items() if verdict.outcome == "decided"]
    if decided:
        await _write(tx, [(requests[i], verdicts[i], cases[keys[i]]) for i in decided], due_ms)
    return [(verdicts[i], cases.get(keys[i])) for i in range(len(requests))]


async def _load_cases(
    tx: Transaction, keys: Sequence[BookingKey], lock_wait_ms: int
) -> dict[BookingKey, RefundCase]:
    """Every read comes after the locks: what is loaded stays true until the commit."""
    arrays = [key[0] for key in keys], [key[1] for key in keys]
    await tx.execute(Q.lock, *arrays, str(lock_wait_ms))
    rows = {(row["show_id"], row["number"]): row for row in await tx.fetch(Q.cases, *arrays)}
    cases = {key: _case(row) for key, row in rows.items()}
    for row in await tx.fetch(Q.tickets, *arrays):
        key = row["show_id"], row["number"]
        if key in cases:
            owners = (None, rows[key]["owner_id"])
            is_transferred = row["owner_id"] not in owners or row["owner_email"] is not None
            cases[key].tickets[row["seat"]] = RefundTicket(row["is_void"], row["is_used"], is_transferred)
    for row in await tx.fetch(Q.decided_before, *arrays):
        case = cases.get((row["show_id"], row["number"]))
        if case is not None and case.payment is not None and case.payment.attempt == row["attempt"]:
            amounts = [row[name] for name in AMOUNTS]
            case.refunds.append(DecidedRefund(row["id"], row["why"], tuple(row["seats"]), *amounts))
    return cases


async def _write(
    tx: Transaction, decided: Sequence[tuple[RefundRequest, RefundVerdict, RefundCase]], due_ms: int
) -> None:
    rows = [_row(*one) for one in decided]
    await tx.execute(Q.record, *(list(column) for column in zip(*rows, strict=True)), due_ms)
    shows = [request.booking.show_id for request, _, _ in decided]
    numbers = [request.booking.number for request, _, _ in decided]
    freed = [len(verdict.freed) for _, verdict, _ in decided]
    # Counters are the last of all locks, so that two batches cannot deadlock.
    await tx.execute(Q.count_owners_down, shows, numbers, freed)


def _row(request: RefundRequest, verdict: RefundVerdict, case: RefundCase) -> tuple[Any, ...]:
    """The arguments of record_refund; without a payment only the seats matter."""
    booking, refund = request.booking, verdict.refund
    return (
        *(booking.show_id, booking.number, case.payment.attempt if case.payment else None),
        *(refund.id if refund else None, request.why, f"{{{','.join(map(str, verdict.freed))}}}"),
        *(getattr(refund, name) if refund else None for name in AMOUNTS),
        *(booking.currency, request.note, request.actor_id),
    )


def _case(row: Row) -> RefundCase:
    payment = None
    if row["attempt"] is not None:
        names = ("attempt", "amount_minor", "fee_minor", "tax_minor", "refunds_minor", "is_disputed")
        payment = PaidPayment(*(row[name] for name in names))
    state = BookingState(row["state"])
    return RefundCase(state, tuple(row["seats"]), tuple(row["prices_minor"]), payment, {})
