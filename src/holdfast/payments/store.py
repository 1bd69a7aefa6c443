"""The payments in the ledger: start, confirm, give back, release. The gateway is called elsewhere."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg

from holdfast.bookings import BookingState
from holdfast.config import Config
from holdfast.engines import fault_injection
from holdfast.engines.batch import Batcher
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import AGAIN, Postgres, Queries
from holdfast.engines.show_batch import OWN_LOCK_WAIT_MS, ShowBatcher, busy_if_locked
from holdfast.engines.tracing import current_traceparent
from holdfast.errors import Busy
from holdfast.payments.gateway import Charge
from holdfast.payments.payment import Payment, PaymentRequest
from holdfast.payments.saga import PaymentStep

Q = Queries("holdfast.payments")

TRIES_MAX = 4  # of a batch: a deadlock, or a key that another process has just written
LOOK_AGAIN_S = 2  # a payer who looks again sooner sees what is known
LEASE_SPARE_MS = 3000  # beyond the gateway's time-out: a slower worker is presumed dead
STEPS = {step.value: step for step in PaymentStep}
STATES = {state.value: state for state in BookingState}
COPIED = [
    name
    for name in Payment.__struct_fields__
    if name not in ("step", "booking_state", "seats", "prices_minor", "read_at_s")
]


@dataclass(frozen=True, slots=True)
class PaymentStart:
    """`outcome`: charge, same, none, which_card, card, or the booking's state; payments/functions.sql."""

    outcome: str
    body_hash: int | None  # of the request that was the same
    payment: Payment | None
    card_seats_max: int | None = None  # the limit of the booking's terms


@dataclass(frozen=True, slots=True)
class CapturedPayment:
    """Money that the gateway has captured, and the shares of it that are not the organiser's."""

    payment: Payment
    charge: Charge
    fee_minor: int
    tax_minor: int

    @property
    def show_id(self) -> int:
        return self.payment.show_id


class PaymentStore:
    """start() and confirm() for one caller; start_many() and confirm_many() are the batched statements.

    `lock_wait_ms` limits the wait for locked rows (0: only by the statement's time-out). Beyond it they raise
    LockNotAvailableError, and nothing was written.
    """

    def __init__(self, postgres: Postgres, config: Config) -> None:
        self._postgres = postgres
        self._config = config
        batches = {"batch_max": config.batch_max, "waiting_max": config.waiting_max}
        by_show: dict[str, Any] = {**batches, "lock_wait_s": config.sale_lock_wait_ms / 1000}
        self.start: ShowBatcher[PaymentRequest, PaymentStart] = ShowBatcher(
            self.start_many, postgres.lock_waits, **by_show
        )
        self.confirm: ShowBatcher[CapturedPayment, Payment] = ShowBatcher(
            self.confirm_many, postgres.lock_waits, **by_show
        )
        self._look: Batcher[tuple[int, int], Payment | None] = Batcher(self.latest_many, **batches)

    @property
    def lease_ms(self) -> int:
        return self._config.gateway_timeout_ms + LEASE_SPARE_MS

    async def start_many(
        self, requests: Sequence[PaymentRequest], lock_wait_ms: int = 0
    ) -> list[PaymentStart]:
        """Each booking that can be paid for is PAYING when this returns, and its charge is stored."""
        rows = await self._fetch(
            "start",
            [request.show_id for request in requests],
            [request.number for request in requests],
            [request.owner_id for request in requests],
            [request.request_id for request in requests],
            [request.body_hash for request in requests],
            [request.key for request in requests],
            [request.method for request in requests],
            [request.return_url for request in requests],
            [request.card for request in requests],
            self._config.gateway,
            self._config.payment_buffer_s,
            self.lease_ms,
            str(lock_wait_ms),
        )
        metrics.observe("pay_batch_size", len(requests))
        return [
            PaymentStart(
                row["outcome"],
                row["hash"],
                _payment(row["detail"]) if row["detail"] else None,
                card_seats_max=row["card_max"],
            )
            for row in rows
        ]

    async def confirm_many(self, captured: Sequence[CapturedPayment], lock_wait_ms: int = 0) -> list[Payment]:
        """PAID, or LATE: its booking was not waiting any more. Idempotent.

        Money of another amount or currency changes nothing: the payment is returned as it was.
        """
        rows = await self._fetch(
            "confirm",
            *_keys([one.payment for one in captured]),
            [one.charge.reference for one in captured],
            [one.charge.card for one in captured],
            [one.charge.amount_minor for one in captured],
            [one.charge.currency for one in captured],
            [one.fee_minor for one in captured],
            [one.tax_minor for one in captured],
            str(lock_wait_ms),
        )
        metrics.observe("confirm_batch_size", len(captured))
        return [_payment(row) for row in rows]

    async def give_back(self, payment: Payment, charge: Charge, end: PaymentStep) -> Payment:
        """The hold continues. `end`: DECLINED or CALLED_OFF."""
        return await self._move("give_back", *_keys([payment]), [charge.reason], [charge.code], end)

    async def release(self, payment: Payment, *, is_sure: bool, due_ms: int = 0) -> Payment:
        """Release the seats. `is_sure`: no money can come any more; otherwise the payment is watched."""
        end = PaymentStep.EXPIRED if is_sure else PaymentStep.WATCH
        return await self._move("release", *_keys([payment]), end, due_ms)

    async def book_late(self, payment: Payment, *, may_book: bool) -> Payment:
        """PAID with all its seats, or RETURNED with a refund that has been requested."""
        key = (payment.show_id, payment.number, payment.attempt)
        return await self._move("book_late", *key, may_book)

    async def advance(self, payment: Payment, step: PaymentStep, charge: Charge | None, due_ms: int) -> bool:
        """Store the next step before it is tried. False: another worker has taken the turn."""
        known = charge and (charge.reference, charge.action_url, charge.client_secret, charge.is_processing)
        key = (payment.show_id, payment.number, payment.attempt)
        with fault_injection.fault_points(f"ledger.{step}"):
            return bool(
                await self._postgres.fetchval(
                    Q.advance,
                    *key,
                    payment.turn,
                    payment.step,
                    step,
                    due_ms,
                    *(known or (None, None, None, False)),
                )
            )

    async def payment(self, show_id: int, number: int, attempt: int) -> Payment | None:
        row = await self._postgres.fetchrow(Q.payment, show_id, number, attempt)
        return _payment(row) if row else None

    def latest(self, show_id: int, number: int) -> asyncio.Future[Payment | None]:
        """The latest attempt to pay for a booking."""
        return self._look((show_id, number))

    async def latest_many(self, keys: Sequence[tuple[int, int]]) -> list[Payment | None]:
        rows = await self._postgres.fetch(Q.latest, [key[0] for key in keys], [key[1] for key in keys])
        found = {(row["show_id"], row["number"]): _payment(row) for row in rows}
        return [found.get(key) for key in keys]

    async def take_due(self, limit: int) -> list[Payment]:
        """Due payments, as many as the gateway's budget allows: now leased to this worker."""
        gateway, per_s = self._config.gateway, self._config.gateway_looks_per_second_max
        with fault_injection.fault_points("ledger.take_due"):
            rows = await self._postgres.fetch(Q.take_due, gateway, limit, self.lease_ms, per_s)
        if not rows:
            return []
        keys = ([row[name] for row in rows] for name in ("show_id", "number", "attempt"))
        return [_payment(row) for row in await self._postgres.fetch(Q.taken, *keys)]

    async def take_looks(self, wanted: int) -> int:
        """Look-ups at the gateway that may be made now, of those that all processes share."""
        per_s = self._config.gateway_looks_per_second_max
        granted: int = await self._postgres.fetchval(Q.take_looks, self._config.gateway, wanted, per_s)
        return granted

    async def may_look(self, payment: Payment) -> bool:
        """Whether a payer who looks again may have it looked up at the gateway now."""
        key = (payment.show_id, payment.number, payment.attempt)
        if await self._postgres.fetchval(Q.note_look, *key, LOOK_AGAIN_S) is None:
            return False
        return await self.take_looks(1) == 1

    async def take_turn(self, payment: Payment) -> Payment | None:
        """Lease this payment, even if another worker has it; None: it has ended."""
        key = (payment.show_id, payment.number, payment.attempt)
        if await self._postgres.fetchval(Q.take_turn, *key, self.lease_ms) is None:
            return None
        return await self.payment(*key)

    async def _move(self, effect: str, *args: object) -> Payment:
        """One payment. Busy: its rows stay locked; the job tries again when the lease has ended."""
        with busy_if_locked():
            return _payment((await self._fetch(effect, *args, str(OWN_LOCK_WAIT_MS)))[0])

    async def _fetch(self, effect: str, *args: object) -> list[Any]:
        """Its facts carry the trace, if there is one: the last argument of each of these statements."""
        for _ in range(TRIES_MAX):
            try:
                with fault_injection.fault_points(f"ledger.{effect}"):
                    return await self._postgres.fetch(getattr(Q, effect), *args, current_traceparent())
            except asyncpg.LockNotAvailableError:
                raise  # waited long enough: the caller sends it show by show
            except (*AGAIN, asyncpg.UniqueViolationError):
                metrics.add("ledger_retries_total")
        raise Busy(retry_after_s=1)


def _keys(payments: Sequence[Payment]) -> tuple[list[int], list[int], list[int]]:
    return [p.show_id for p in payments], [p.number for p in payments], [p.attempt for p in payments]


def _payment(row: Any) -> Payment:
    return Payment(
        step=STEPS[row["step"]],
        booking_state=STATES[row["booking_state"]],
        seats=tuple(row["seats"]),
        prices_minor=tuple(row["prices_minor"]),
        read_at_s=time.monotonic(),
        **{name: row[name] for name in COPIED},
    )
