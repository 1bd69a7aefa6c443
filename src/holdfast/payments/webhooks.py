"""Webhooks in the ledger, and what they lead to.

    gateway ─► checked ─► stored (one batch) ─┬─ done: nothing to do ────────────► 2xx
                                              ├─ wait: somebody is charging ─────► 2xx, and the job looks
                                              └─ look ─► the gateway is asked ───► 2xx, settled or not
                                                            │ no: after 1, 5, 30 minutes again, then dead
                                                            └ yes: done

2xx is said after the commit and never before; whatever could not be settled while the gateway waited is in
the ledger with the time it is due. What a webhook says is never believed: it makes us look.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import structlog

from holdfast.config import Config
from holdfast.engines.batch import Batcher
from holdfast.engines.fault_injection import fault_points
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import AGAIN, Postgres
from holdfast.engines.sql import Queries
from holdfast.errors import Busy
from holdfast.payments.errors import NoSuchWebhook
from holdfast.payments.gateway import Answer, BadNotice
from holdfast.payments.payment import Payment
from holdfast.payments.reconciliation import Reconciliation
from holdfast.payments.saga import Step
from holdfast.payments.saga_runner import SagaRunner
from holdfast.payments.store import PaymentStore
from holdfast.payments.webhook import (
    PAUSES_S,
    REFUSED,
    Due,
    Stored,
    Told,
    Verdict,
    WebhookList,
    WebhookPage,
    WebhooksAsked,
    booking_id,
    is_about_refund,
    is_storable,
)

Q = Queries("holdfast.payments", "webhooks")
log = structlog.get_logger(__name__)

WAIT_S = 1  # for whoever is charging at this moment: nearly always they have the answer by then
LOOK_WITHIN_S = 4.0  # while the gateway waits for its 2xx; looking goes on without it
LOOKS_MAX = 64  # at once in a process; more are left to the job
BATCH_TRIES_MAX = 4
KEPT_S = 90 * 86_400
SETTLED = (Step.PAID, Step.RETURNED)

HearRefunds = Callable[[int, int, int], Awaitable[object]]


class IncomingWebhooks:
    def __init__(
        self,
        postgres: Postgres,
        book: PaymentStore,
        cashier: SagaRunner,
        books: Reconciliation,
        hear_refunds: HearRefunds,
        config: Config,
    ) -> None:
        self.gateway = cashier.gateway
        self._postgres = postgres
        self._book = book
        self._cashier = cashier
        self._books = books
        self._hear_refunds = hear_refunds
        self._looking: set[asyncio.Task[None]] = set()
        batches = {"batch_max": config.batch_max, "waiting_max": config.waiting_max}
        self._store: Batcher[Told, Stored] = Batcher(self.store_many, **batches)

    async def close(self) -> None:
        """Whoever still looks is stopped; what they looked into is due again in a minute."""
        for task in self._looking:
            task.cancel()
        await asyncio.gather(*self._looking, return_exceptions=True)

    async def take_in(self, raw: bytes, headers: Mapping[bytes, bytes]) -> Verdict:
        """Stored when this returns, and looked into if that did not take long. Raises BadNotice."""
        told = Told(self.gateway.notice(raw, headers, time.time()), raw)
        if told.notice.mode != self.gateway.mode:
            raise BadNotice("mode")
        if not is_storable(told.notice):
            raise BadNotice("malformed")
        stored = await self._store(told)
        if stored.verdict in REFUSED:
            log.error("a webhook about another sum", key=told.notice.key, what=stored.verdict)
            raise BadNotice(stored.verdict)
        metrics.add("webhooks_total", outcome=stored.verdict if stored.is_first else "copy")
        if stored.verdict is Verdict.LOOK and stored.is_first and len(self._looking) < LOOKS_MAX:
            assert stored.place is not None
            notice = told.notice
            due = Due(self.gateway.name, notice.event_id, notice.kind, stored.place, notice.reference)
            await asyncio.wait({self._look_later(due)}, timeout=LOOK_WITHIN_S)
        return stored.verdict

    async def store_many(self, told: Sequence[Told]) -> list[Stored]:
        notices, places = [one.notice for one in told], [one.place for one in told]
        rows = await self._fetch(
            "store",
            self.gateway.name,
            [notice.event_id for notice in notices],
            [notice.kind for notice in notices],
            *([place[part] for place in places] for part in range(3)),
            [notice.key for notice in notices],
            [notice.reference for notice in notices],
            [notice.amount_minor for notice in notices],
            [notice.currency for notice in notices],
            [is_about_refund(notice.kind) for notice in notices],
            [one.body for one in told],
            PAUSES_S[0],
            WAIT_S,
        )
        metrics.observe("webhook_batch_size", len(told))
        return [Stored(Verdict(row["verdict"]), row["is_first"], _place(row)) for row in rows]

    async def look(self, due: Due) -> str | None:
        """Look into one and write down what came of it: None, or why it could not be settled."""
        try:
            reason = await self._look(due)
        except Exception as error:  # an engine that is down, or a bug: either way it is tried again
            log.warning("a webhook could not be settled", event_id=due.event_id, error=repr(error))
            reason = type(error).__name__
        rows = await self._fetch("settle", [due.gateway], [due.event_id], [reason], len(PAUSES_S))
        if any(row["dead"] for row in rows):
            metrics.add("webhooks_dead_total")
            log.error("a webhook is dead", gateway=due.gateway, event_id=due.event_id, reason=reason)
        return reason

    def _look_later(self, due: Due) -> asyncio.Task[None]:
        async def look() -> None:
            try:
                await self.look(due)
            except Exception as error:  # the ledger is away: it is due again in a minute
                log.warning("a webhook was left unsettled", event_id=due.event_id, error=repr(error))

        task = asyncio.create_task(look())
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)
        return task

    async def _look(self, due: Due) -> str | None:
        if due.gateway != self.gateway.name:
            return f"the gateway is {self.gateway.name} now"
        payment = await self._book.payment(*due.place)
        if payment is None:
            return "there is no such payment"
        if is_about_refund(due.kind):
            await self._hear_refunds(*due.place)
            await self._books.look_into(payment.key)  # money may have gone back that nobody here asked for
            return None
        if payment.step in SETTLED:
            is_same = due.reference in (None, payment.reference)
            return None if is_same else "another payment at the gateway has this key"
        if not payment.has_ended:
            await self._cashier.hear(payment)  # and if it is not decided yet, it has its own time to be due
            return None
        return await self._look_at_ended(payment, due.reference)

    async def _look_at_ended(self, payment: Payment, reference: str | None) -> str | None:
        """It had come to nothing here. If money was taken all the same, it is late."""
        charge = await self.gateway.look_up(key=payment.key, reference=payment.reference or reference)
        if charge.answer is Answer.UNKNOWN:
            return "the gateway does not say what became of it"
        if charge.answer is not Answer.YES:
            return None
        after = await self._cashier.hear(payment)
        return None if after.step in SETTLED else "its money was taken, and it could not be settled"

    # ── for the job and for operators ────────────────────────────────────────────────

    async def settle_due(self, limit: int) -> int:
        return len(await self._fetch("settle_due", limit))

    async def take_due(self, limit: int) -> list[Due]:
        return [_due(row) for row in await self._fetch("take_due", limit, list(PAUSES_S))]

    async def replay(self, gateway: str, event_id: str) -> WebhookPage:
        """As if it had just come. One that was done is looked into again, too: that changes nothing."""
        row = await self._postgres.fetchrow(Q.take, gateway, event_id, PAUSES_S[0])
        if row is None:
            raise NoSuchWebhook()
        await self.look(_due(row))
        return _page(await self._postgres.fetchrow(Q.webhook, gateway, event_id))

    async def newest(self, asked: WebhooksAsked) -> WebhookList:
        start = (asked.page - 1) * asked.size
        rows = await self._postgres.fetch(Q.newest, asked.state, start, asked.size + 1)
        return WebhookList([_page(row) for row in rows[: asked.size]], len(rows) > asked.size)

    async def named(self, event_id: str) -> list[tuple[str, str]]:
        return [(row["gateway"], row["event_id"]) for row in await self._postgres.fetch(Q.named, event_id)]

    async def dead(self) -> list[tuple[str, str]]:
        return [(row["gateway"], row["event_id"]) for row in await self._postgres.fetch(Q.dead)]

    async def forget(self, limit: int) -> int:
        return int((await self._postgres.execute(Q.forget, KEPT_S, limit)).rsplit(" ", 1)[-1])

    async def _fetch(self, effect: str, *args: object) -> list[Any]:
        for _ in range(BATCH_TRIES_MAX):
            try:
                with fault_points(f"webhook.{effect}"):
                    return await self._postgres.fetch(getattr(Q, effect), *args)
            except AGAIN:
                metrics.add("ledger_retries_total")
        raise Busy(retry_after_s=1)


def _place(row: Any) -> tuple[int, int, int] | None:
    return (row["show_id"], row["number"], row["attempt"]) if row["show_id"] is not None else None


def _due(row: Any) -> Due:
    place = (row["show_id"], row["number"], row["attempt"])
    return Due(row["gateway"], row["event_id"], row["kind"], place, row["reference"])


def _page(row: Any) -> WebhookPage:
    copied = ("gateway", "event_id", "kind", "attempt", "copies", "tries", "reason")
    times = ("received_at", "due_at", "done_at")
    return WebhookPage(
        booking_id=booking_id((row["show_id"], row["number"], row["attempt"])),
        state="dead" if row["dead"] else "due" if row["due_at"] else "done",
        **{name: row[name] for name in (*copied, *times)},
    )
