"""Incoming webhooks: stored in the ledger, then settled by a look-up at the gateway.

    gateway ─► verified ─► stored (one batch) ─┬─ done: nothing to do ──────────────► 2xx
                                               ├─ wait: a worker is charging ───────► 2xx, the job looks later
                                               └─ look ─► look-up at the gateway ───► 2xx, settled or not
                                                             │ no: again after 1, 5, 30 minutes, then dead
                                                             └ yes: done

2xx is sent after the commit and never before; a webhook that could not be settled while the gateway waited is
in the ledger with the time it is due. The content of a webhook is never trusted: it only triggers a look-up.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple

import structlog
from msgspec import Meta, Struct, field

from holdfast.bookings import public_id
from holdfast.config import Config
from holdfast.engines import fault_injection
from holdfast.engines.batch import Batcher
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import AGAIN, Postgres, Queries
from holdfast.errors import Busy
from holdfast.payments.chargebacks import Chargebacks
from holdfast.payments.errors import NoSuchWebhook
from holdfast.payments.gateway import BadWebhook, GatewayAnswer, Webhook
from holdfast.payments.payment import Payment, parse_payment_key
from holdfast.payments.reconciliation import Reconciliation
from holdfast.payments.saga import PaymentStep
from holdfast.payments.saga_runner import SagaRunner
from holdfast.payments.store import PaymentStore
from holdfast.web.audit_log import AuditEntry, record

# Pauses after failed tries; after the last, the webhook is dead.
PAUSES_S = (60, 300, 1800)
NAME_MAX = 255
BIGINT_MAX = 2**63 - 1
NOWHERE = (0, 0, 0)


class WebhookVerdict(StrEnum):
    """The ledger's decision when a webhook is stored: the query `store` in webhooks.sql."""

    DONE = "done"  # nothing to do: the payment is settled already
    LOOK = "look"  # look the payment up at the gateway
    WAIT = "wait"  # a worker is charging right now and gets the answer first
    FOREIGN = "foreign"  # not about our payment: the gateway account may be shared
    AMOUNT = "amount"  # another amount than ours: rejected
    CURRENCY = "currency"
    ELSEWHERE = "elsewhere"  # another database has the payment, or will have it in a moment


REFUSED = {WebhookVerdict.AMOUNT, WebhookVerdict.CURRENCY}


class ReceivedWebhook(Struct, frozen=True, gc=False):
    """A webhook with a valid signature, and its bytes."""

    webhook: Webhook
    body: bytes

    @property
    def payment_key(self) -> tuple[int, int, int]:
        """(show, number, attempt) from the key; NOWHERE if it is not our key."""
        return (parse_payment_key(self.webhook.key) if self.webhook.key else None) or NOWHERE


class StoredWebhook(Struct, frozen=True, gc=False):
    verdict: WebhookVerdict
    is_first: bool  # not a copy
    payment_key: tuple[int, int, int] | None


class DueWebhook(Struct, frozen=True):
    """A webhook to settle."""

    gateway: str
    event_id: str
    kind: str
    payment_key: tuple[int, int, int]
    reference: str | None


def is_about_refund(kind: str) -> bool:
    return "refund" in kind


def is_about_dispute(kind: str) -> bool:
    return "dispute" in kind


def is_storable(webhook: Webhook) -> bool:
    """False: PostgreSQL would reject it, and with it every other webhook of the same batch."""
    texts = [
        webhook.event_id,
        webhook.kind,
        webhook.key or "",
        webhook.reference or "",
        webhook.currency or "",
    ]
    fits = all(len(text) <= NAME_MAX and "\0" not in text for text in texts)
    return fits and bool(webhook.event_id) and abs(webhook.amount_minor or 0) <= BIGINT_MAX


class WebhookQuery(Struct, forbid_unknown_fields=True, frozen=True):
    state: Literal["dead", "due", "all"] = "dead"
    page: Annotated[int, Meta(ge=1, le=10_000)] = 1
    size: Annotated[int, Meta(ge=1, le=200)] = 50


class WebhookPage(Struct, frozen=True, kw_only=True):
    gateway: str
    event_id: str  # the gateway's
    kind: str  # the gateway's name for it
    booking_id: str
    attempt: int
    state: Literal["dead", "due", "done"]
    copies: int  # how often it arrived
    tries: int
    reason: str | None  # why it could not be settled
    received_at: datetime
    due_at: datetime | None  # when it is tried again
    done_at: datetime | None


class WebhookList(Struct, frozen=True):
    webhooks: list[WebhookPage]
    more: bool
    complete: bool = True  # false: some databases cannot be reached, their webhooks are missing here
    missing_pods: list[str] = field(default_factory=list)


class WebhookReceipt(Struct, frozen=True):
    """The answer to the gateway: the webhook is stored and need not be sent again."""

    stored: bool


def booking_id(payment_key: tuple[int, int, int]) -> str:
    return public_id(payment_key[0], payment_key[1])


Q = Queries("holdfast.payments", "webhooks")
log = structlog.get_logger(__name__)

WAIT_S = 1  # for the worker that is charging: it nearly always has the answer by then
LOOK_WITHIN_S = 4.0  # while the gateway waits for its 2xx; the look-up continues after it
LOOKS_MAX = 64  # at once per process; more are left to the job
BATCH_TRIES_MAX = 4
STORED_S = 90 * 86_400
SETTLED = (PaymentStep.PAID, PaymentStep.RETURNED)

RefreshRefunds = Callable[[int, int, int], Awaitable[object]]


class AfterPayment(NamedTuple):
    """What webhooks about money that was captured earlier lead to."""

    chargebacks: Chargebacks
    refresh_refunds: RefreshRefunds


class IncomingWebhooks:
    def __init__(
        self,
        postgres: Postgres,
        payments: PaymentStore,
        saga_runner: SagaRunner,
        reconciliation: Reconciliation,
        afterwards: AfterPayment,
        config: Config,
    ) -> None:
        self.gateway = saga_runner.gateway
        self._postgres = postgres
        self._payments = payments
        self._saga_runner = saga_runner
        self._reconciliation = reconciliation
        self._afterwards = afterwards
        self._looking: set[asyncio.Task[None]] = set()
        batches = {"batch_max": config.batch_max, "waiting_max": config.waiting_max}
        self._store_webhook: Batcher[ReceivedWebhook, StoredWebhook] = Batcher(self.store_many, **batches)

    async def close(self) -> None:
        """Cancel running look-ups; their webhooks become due again in a minute."""
        for task in self._looking:
            task.cancel()
        await asyncio.gather(*self._looking, return_exceptions=True)

    async def receive(self, raw: bytes, headers: Mapping[bytes, bytes]) -> WebhookVerdict:
        """Store a webhook, and settle it if that is quick. Raises BadWebhook."""
        received = ReceivedWebhook(self.gateway.parse_webhook(raw, headers, time.time()), raw)
        if received.webhook.mode != self.gateway.mode:
            raise BadWebhook("mode")
        if not is_storable(received.webhook):
            raise BadWebhook("malformed")
        stored = await self._store_webhook(received)
        if stored.verdict is WebhookVerdict.ELSEWHERE:
            raise Busy(retry_after_s=1)  # its gateway sends it again
        if stored.verdict in REFUSED:
            log.error("webhook with another amount", key=received.webhook.key, what=stored.verdict)
            raise BadWebhook(stored.verdict)
        metrics.add("webhooks_total", outcome=stored.verdict if stored.is_first else "copy")
        if stored.verdict is WebhookVerdict.LOOK and stored.is_first and len(self._looking) < LOOKS_MAX:
            assert stored.payment_key is not None
            webhook = received.webhook
            due = DueWebhook(
                self.gateway.name, webhook.event_id, webhook.kind, stored.payment_key, webhook.reference
            )
            await asyncio.wait({self._look_later(due)}, timeout=LOOK_WITHIN_S)
        return stored.verdict

    def find_payment(self, raw: bytes, headers: Mapping[bytes, bytes]) -> tuple[int | None, str | None]:
        """The payment's show, if the webhook names it; and the gateway's reference. Raises BadWebhook."""
        received = ReceivedWebhook(self.gateway.parse_webhook(raw, headers, time.time()), raw)
        return received.payment_key[0] or None, received.webhook.reference

    async def find_show(self, reference: str) -> int | None:
        """The show whose payment has this reference, in this database."""
        found: int | None = await self._postgres.fetchval(Q.show_of_reference, self.gateway.name, reference)
        return found

    async def store_many(self, received: Sequence[ReceivedWebhook]) -> list[StoredWebhook]:
        webhooks, payment_keys = [one.webhook for one in received], [one.payment_key for one in received]
        rows = await self._fetch(
            "store",
            self.gateway.name,
            [webhook.event_id for webhook in webhooks],
            [webhook.kind for webhook in webhooks],
            *([key[part] for key in payment_keys] for part in range(3)),
            [webhook.key for webhook in webhooks],
            [webhook.reference for webhook in webhooks],
            [webhook.amount_minor for webhook in webhooks],
            [webhook.currency for webhook in webhooks],
            [is_about_refund(one.kind) or is_about_dispute(one.kind) for one in webhooks],
            [one.body for one in received],
            PAUSES_S[0],
            WAIT_S,
        )
        metrics.observe("webhook_batch_size", len(received))
        return [
            StoredWebhook(WebhookVerdict(row["verdict"]), row["is_first"], _payment_key(row)) for row in rows
        ]

    async def look(self, due: DueWebhook) -> str | None:
        """Settle a webhook and store the result: None, or why it could not be settled."""
        try:
            reason = await self._look(due)
        except Exception as error:  # an engine that is down, or a bug: tried again in both cases
            log.warning("webhook not settled", event_id=due.event_id, error=repr(error))
            reason = type(error).__name__
        rows = await self._fetch("settle", [due.gateway], [due.event_id], [reason], len(PAUSES_S))
        if any(row["dead"] for row in rows):
            metrics.add("webhooks_died_total")
            log.error("webhook is dead", gateway=due.gateway, event_id=due.event_id, reason=reason)
        return reason

    def _look_later(self, due: DueWebhook) -> asyncio.Task[None]:
        async def look() -> None:
            try:
                await self.look(due)
            except Exception as error:  # the ledger is down: it becomes due again in a minute
                log.warning("webhook left unsettled", event_id=due.event_id, error=repr(error))

        task = asyncio.create_task(look())
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)
        return task

    async def _look(self, due: DueWebhook) -> str | None:
        if due.gateway != self.gateway.name:
            return f"the configured gateway is {self.gateway.name} now"
        payment = await self._payments.payment(*due.payment_key)
        if payment is None:
            return "there is no such payment"
        if is_about_dispute(due.kind):
            await self._afterwards.chargebacks.refresh(payment)
            return None
        if is_about_refund(due.kind):
            await self._afterwards.refresh_refunds(*due.payment_key)
            # A refund may have been made in the gateway's dashboard, without a request from us.
            await self._reconciliation.look_into(payment.key)
            return None
        if payment.step in SETTLED:
            is_same = due.reference in (None, payment.reference)
            return None if is_same else "another payment at the gateway has this key"
        if not payment.has_ended:
            # If it is still undecided, the payment has its own due time: this webhook has done its job.
            await self._saga_runner.refresh_from_gateway(payment)
            return None
        return await self._look_at_ended(payment, due.reference)

    async def _look_at_ended(self, payment: Payment, reference: str | None) -> str | None:
        """The payment had ended without money here. If money was captured all the same, it is late."""
        charge = await self.gateway.look_up(key=payment.key, reference=payment.reference or reference)
        if charge.answer is GatewayAnswer.UNKNOWN:
            return "the gateway does not answer"
        if charge.answer is not GatewayAnswer.YES:
            return None
        after = await self._saga_runner.refresh_from_gateway(payment)
        return None if after.step in SETTLED else "its money was captured, and it could not be settled"

    # ── for the job and for operators ─────────────────────────────────────────────────

    async def settle_due(self, limit: int) -> int:
        return len(await self._fetch("settle_due", limit))

    async def take_due(self, limit: int) -> list[DueWebhook]:
        return [_due(row) for row in await self._fetch("take_due", limit, list(PAUSES_S))]

    async def replay(self, gateway: str, event_id: str) -> WebhookPage:
        """Settle it as if it had just arrived. A settled one is looked up again: that changes nothing."""
        async with self._postgres.transaction() as tx:
            row = await tx.fetchrow(Q.take, gateway, event_id, PAUSES_S[0])
            if row is None:
                raise NoSuchWebhook()
            subject = ("gateway_webhook", f"{gateway}/{event_id}")
            await record(tx, AuditEntry(action="gateway_webhook.replayed", subject=subject))
        await self.look(_due(row))
        return _page(await self._postgres.fetchrow(Q.webhook, gateway, event_id))

    async def list_newest(self, query: WebhookQuery) -> WebhookList:
        found = await self.newest(query.state, (query.page - 1) * query.size, query.size + 1)
        return WebhookList(found[: query.size], len(found) > query.size)

    async def newest(self, state: str, start: int, limit: int) -> list[WebhookPage]:
        return [_page(row) for row in await self._postgres.fetch(Q.newest, state, start, limit)]

    async def find_by_event_id(self, event_id: str) -> list[tuple[str, str]]:
        return [(row["gateway"], row["event_id"]) for row in await self._postgres.fetch(Q.named, event_id)]

    async def list_dead(self) -> list[tuple[str, str]]:
        return [(row["gateway"], row["event_id"]) for row in await self._postgres.fetch(Q.dead)]

    async def delete_old(self, limit: int) -> int:
        return int((await self._postgres.execute(Q.forget, STORED_S, limit)).rsplit(" ", 1)[-1])

    async def _fetch(self, effect: str, *args: object) -> list[Any]:
        for _ in range(BATCH_TRIES_MAX):
            try:
                with fault_injection.fault_points(f"webhook.{effect}"):
                    return await self._postgres.fetch(getattr(Q, effect), *args)
            except AGAIN:
                metrics.add("ledger_retries_total")
        raise Busy(retry_after_s=1)


def _payment_key(row: Any) -> tuple[int, int, int] | None:
    return (row["show_id"], row["number"], row["attempt"]) if row["show_id"] is not None else None


def _due(row: Any) -> DueWebhook:
    payment_key = (row["show_id"], row["number"], row["attempt"])
    return DueWebhook(row["gateway"], row["event_id"], row["kind"], payment_key, row["reference"])


def _page(row: Any) -> WebhookPage:
    copied = ("gateway", "event_id", "kind", "attempt", "copies", "tries", "reason")
    times = ("received_at", "due_at", "done_at")
    return WebhookPage(
        booking_id=booking_id((row["show_id"], row["number"], row["attempt"])),
        state="dead" if row["dead"] else "due" if row["due_at"] else "done",
        **{name: row[name] for name in (*copied, *times)},
    )
