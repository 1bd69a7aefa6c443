"""The gateway without HTTP: create, confirm, find, cancel, refund. Every API translates to these and back.

What a charge does is its plan (`behaviour.py`); the core carries out one plan per key:

    the same key again           the stored answer, byte for byte
    the same key, other content  refused, 400 idempotency_error
    the same key, in progress     refused, 409 key_in_flight
    begun, then we were killed   its result, as soon as we are back

Everything a request changes (payment, webhooks, the answer to its key) is one function in one transaction.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from time import time

import msgspec
from msgspec.structs import replace

from holdfast.sandbox.behaviour import (
    ChargePlan,
    RefundPlan,
    ReplyPlan,
    SandboxSettings,
    WebhookPlan,
    card_fingerprint,
    plan_charge,
    plan_refund,
)
from holdfast.sandbox.database import DatabaseWriter, SandboxDatabase, StoredAnswer, new_id
from holdfast.sandbox.payment import (
    NewCharge,
    PaymentMove,
    SandboxDispute,
    SandboxPayment,
    SandboxRefund,
    SandboxRefusal,
    SandboxState,
    SandboxWebhook,
    new_payment,
    payment_json,
    refund_json,
    refundable_minor,
    state_after,
)

KEYS_REMEMBERED_MAX = 100_000  # keys whose first request failed or got lost on purpose
ANSWERS_STORED_S = 48 * 3600
CAPTURE_LOOK_S, IDLE_LOOK_S = 0.05, 0.25  # between two looks at what is due: soon, or not
DUE_MAX = 200  # late payments captured in one transaction
SLOW_GRACE_S = 1.0  # when we are killed during a slow answer, its payment is captured this much later
WEBHOOK_FIRST_GRACE_S = 5.0

CallObject = SandboxPayment | SandboxRefund | SandboxRefusal


class ApiCall(msgspec.Struct, frozen=True):
    """A request as the core sees it: its key, a print of its content, and how its api answers."""

    key: str | None
    print: bytes
    render: Callable[[CallObject], tuple[int, bytes]]  # status and body; runs in the writer's thread


class CallResult(msgspec.Struct, frozen=True):
    status: int
    body: bytes
    is_replayed: bool = False
    reply: ReplyPlan = ReplyPlan.NORMAL  # or LOST: the api must stay silent
    made: CallObject | None = None
    webhook: SandboxWebhook | None = None


LOST = CallResult(0, b"", reply=ReplyPlan.LOST)


class GatewayCore:
    def __init__(self, database: SandboxDatabase) -> None:
        self._database = database
        stored = database.note("settings")
        self.settings = msgspec.json.decode(stored, type=SandboxSettings) if stored else SandboxSettings()
        self.counts: Counter[str] = Counter()
        self.send_now: Callable[[SandboxWebhook], Awaitable[bool]] | None = (
            None  # the post's, once it is there
        )
        self._in_flight: set[str] = set()
        self._failures: Counter[str] = Counter()  # by key: requests that failed or got lost on purpose
        self._next_due = database.next_payment_due() or float("inf")

    async def create(self, order: NewCharge, call: ApiCall) -> CallResult:
        """With a method: charged at once. Without: its page is where the payer decides."""
        with self._lock_key(call.key):
            self.counts["charges"] += 1
            key = call.key or order.reference
            plan = self._plan(order.method, key) if order.method else None
            if plan is None:
                return await self._database.write(lambda w: self._once(w, call, lambda: self._open(w, order)))
            if plan.fails_first and self._fails_now(key):
                raise SandboxRefusal(
                    500, "sandbox_error", "Something went wrong here. Try again with the same key."
                )
            if not plan.is_made:
                self._fails_now(key)
                return LOST
            return await self._charge(call, plan, lambda w: self._new(w, order, plan))

    async def confirm(self, payment_id: str, method: str, call: ApiCall) -> CallResult:
        """Charge a payment that waits for its payer."""
        with self._lock_key(call.key):
            plan = self._plan(method, call.key or payment_id)
            if not plan.is_made:
                return LOST
            return await self._charge(
                call, plan, lambda w: self._paid(w, w.payment(payment_id), plan, method)
            )

    async def decide(self, page: str, plan: ChargePlan, method: str) -> SandboxPayment:
        """What the payer chose on the page."""

        def change(writer: DatabaseWriter) -> tuple[SandboxPayment, SandboxWebhook | None]:
            return self._paid(writer, writer.payment_by_page(page), plan, method)

        payment, webhook = await self._database.write(change)
        await self._follow(payment, plan, webhook)
        return payment

    async def cancel(self, payment_id: str, call: ApiCall) -> CallResult:
        def change(writer: DatabaseWriter) -> SandboxPayment:
            before = writer.payment(payment_id)
            moved = replace(before, state=state_after(before, PaymentMove.CANCEL), due_at=None)
            writer.move(before, moved)
            self._add_webhook(writer, moved)
            return moved

        with self._lock_key(call.key):
            return await self._database.write(lambda w: self._once(w, call, lambda: (change(w), None)))

    async def refund(self, payment_id: str, amount_minor: int | None, call: ApiCall) -> CallResult:
        """Without an amount: all that is left."""
        how = RefundPlan.GIVEN

        def change(writer: DatabaseWriter) -> SandboxRefund:
            nonlocal how
            payment = writer.payment(payment_id)
            left_minor = refundable_minor(payment)
            wanted_minor = left_minor if amount_minor is None else amount_minor
            if not 0 < wanted_minor <= left_minor:
                raise SandboxRefusal(400, "amount_too_large", f"At most {left_minor} can be refunded.")
            how = plan_refund(payment.method, call.key or payment_id, self.settings)
            return self._refunded(writer, payment, wanted_minor, is_refused=how is RefundPlan.REFUSED)

        with self._lock_key(call.key):
            self.counts["refunds"] += 1
            done = await self._database.write(lambda w: self._once(w, call, lambda: (change(w), None)))
        return replace(done, reply=ReplyPlan.LOST) if how is RefundPlan.LOST_ONCE else done

    def find(self, payment_id: str) -> SandboxPayment | None:
        return self._database.payment(payment_id)

    def find_by_reference(self, reference: str) -> list[SandboxPayment]:
        """The newest first; one captured before all others."""
        found = self._database.payments_by_reference(reference)
        return sorted(found, key=lambda payment: payment.state != SandboxState.CAPTURED)

    def find_by_page(self, page: str) -> SandboxPayment | None:
        return self._database.payment_by_page(page)

    def list(self, since: float, state_after: str | None, limit: int) -> list[SandboxPayment]:
        """Oldest first. `state_after` is the id of the last one of the page before."""
        last = self._database.payment(state_after) if state_after else None
        if state_after and last is None:
            raise SandboxRefusal(400, "resource_missing", "There is no such payment to go on from.")
        return self._database.payments_since(since, last, limit)

    def find_refund(self, refund_id: str) -> SandboxRefund | None:
        return self._database.refund(refund_id)

    def find_dispute(self, payment_id: str) -> SandboxDispute | None:
        return self._database.dispute(payment_id)

    def refunds(self, payment_id: str) -> Sequence[SandboxRefund]:
        return self._database.refunds(payment_id)

    def webhooks(self, after_seq: int, limit: int) -> Sequence[SandboxWebhook]:
        return self._database.webhooks_after(after_seq, limit)

    async def set(self, settings: SandboxSettings) -> None:
        text = msgspec.json.encode(settings).decode()
        await self._database.write(lambda writer: writer.write_note("settings", text))
        self.settings = settings

    # ── jobs ────────────────────────────────────────────────────────────────────────

    def pause_s(self) -> float:
        """Of capture_due: short while a payment is due soon."""
        return CAPTURE_LOOK_S if self._next_due < time() + IDLE_LOOK_S else IDLE_LOOK_S

    async def capture_due(self) -> int:
        """Payments whose time has come."""
        if time() < self._next_due:
            return 0

        def change(writer: DatabaseWriter) -> int:
            due = writer.payments_due(DUE_MAX)
            for payment in due:
                self._captured(writer, payment)
            return len(due)

        self._next_due = float("inf")
        count = await self._database.write(change)
        self._next_due = min(self._next_due, self._database.next_payment_due() or float("inf"))
        return count

    async def forget_answers(self) -> int:
        return await self._database.write(lambda writer: writer.forget_answers(ANSWERS_STORED_S))

    # ── beneath ───────────────────────────────────────────────────────────────────────

    @contextmanager
    def _lock_key(self, key: str | None) -> Iterator[None]:
        if key is None:
            yield
            return
        if key in self._in_flight:
            self.counts["in_flight"] += 1
            raise SandboxRefusal(409, "key_in_flight", "The first request with this key is still under way.")
        self._in_flight.add(key)
        try:
            yield
        finally:
            self._in_flight.discard(key)

    def _plan(self, method: str, key: str) -> ChargePlan:
        return plan_charge(method, key, self.settings, lost=self._failures[key])

    def _fails_now(self, key: str) -> bool:
        """Whether this is the first request with the key; one that is answered already does not stumble."""
        if len(self._failures) > KEYS_REMEMBERED_MAX:
            self._failures.clear()
        self._failures[key] += 1
        return self._failures[key] == 1 and not self._database.is_answered(key)

    async def _charge(
        self,
        call: ApiCall,
        plan: ChargePlan,
        change: Callable[[DatabaseWriter], tuple[SandboxPayment, SandboxWebhook | None]],
    ) -> CallResult:
        is_slow = plan.reply is ReplyPlan.SLOW
        done = await self._database.write(lambda w: self._once(w, call, lambda: change(w), begins=is_slow))
        if done.is_replayed or not isinstance(done.made, SandboxPayment):
            self.counts["replays"] += done.is_replayed
            return done
        payment = done.made
        self.counts[payment.state] += 1
        await self._follow(payment, plan, done.webhook)
        if is_slow:
            return await self._database.write(lambda writer: self._finish(writer, payment.id, call))
        return replace(done, reply=ReplyPlan.LOST) if plan.reply is ReplyPlan.LOST else done

    async def _follow(
        self, payment: SandboxPayment, plan: ChargePlan, webhook: SandboxWebhook | None
    ) -> None:
        """The part of the plan that comes before the answer."""
        if payment.due_at is not None:
            self._next_due = min(self._next_due, payment.due_at)
        if plan.reply is ReplyPlan.SLOW:
            await asyncio.sleep(self.settings.slow_s)
        elif plan.reply is ReplyPlan.WEBHOOK_FIRST and webhook is not None and self.send_now is not None:
            await self.send_now(webhook)

    def _once(
        self,
        writer: DatabaseWriter,
        call: ApiCall,
        act: Callable[[], tuple[CallObject, SandboxWebhook | None]],
        *,
        begins: bool = False,
    ) -> CallResult:
        if call.key is not None and (stored := writer.find_answer(call.key)) is not None:
            return self._again(writer, call, stored)
        webhook = None
        try:
            made, webhook = act()
        except SandboxRefusal as refused:  # a refusal is stored as the answer to the key, too
            made = refused
        status, body = call.render(made)
        if call.key is not None:
            made_id = None if isinstance(made, SandboxRefusal) else made.id
            is_begun = begins and made_id is not None
            writer.store_answer(call.key, call.print, made_id, None if is_begun else (status, body))
        return CallResult(status, body, made=made, webhook=webhook)

    def _again(self, writer: DatabaseWriter, call: ApiCall, stored: StoredAnswer) -> CallResult:
        if stored.print != call.print:
            raise SandboxRefusal(400, "idempotency_error", "This key was used with other parameters.")
        if stored.status is not None and stored.body is not None:
            return CallResult(stored.status, stored.body, is_replayed=True)
        assert call.key is not None
        assert stored.made is not None
        answer = call.render(writer.payment(stored.made))
        writer.complete_answer(call.key, answer)
        return CallResult(*answer, is_replayed=True)

    def _finish(self, writer: DatabaseWriter, payment_id: str, call: ApiCall) -> CallResult:
        payment = writer.payment(payment_id)
        if payment.state == SandboxState.PROCESSING:
            payment = self._captured(writer, payment)
        answer = call.render(payment)
        if call.key is not None:
            writer.complete_answer(call.key, answer)
        return CallResult(*answer, made=payment)

    def _open(self, writer: DatabaseWriter, order: NewCharge) -> tuple[SandboxPayment, None]:
        return writer.add_payment(
            new_payment(order, new_id("pay"), writer.now, page=os.urandom(18).hex())
        ), None

    def _new(
        self, writer: DatabaseWriter, order: NewCharge, plan: ChargePlan
    ) -> tuple[SandboxPayment, SandboxWebhook | None]:
        page = os.urandom(18).hex() if plan.move is PaymentMove.ASK else ""
        fresh = new_payment(order, new_id("pay"), writer.now, page=page)
        payment = writer.add_payment(self._moved(fresh, plan, order.method, writer.now))
        return payment, self._add_webhook(writer, payment, plan.reply)

    def _paid(
        self, writer: DatabaseWriter, before: SandboxPayment, plan: ChargePlan, method: str
    ) -> tuple[SandboxPayment, SandboxWebhook | None]:
        moved = self._moved(before, plan, method, writer.now)
        writer.move(before, moved)
        return moved, self._add_webhook(writer, moved, plan.reply)

    def _moved(self, before: SandboxPayment, plan: ChargePlan, method: str, now: float) -> SandboxPayment:
        """`before`, as the plan leaves it for now."""
        is_slow = plan.reply is ReplyPlan.SLOW
        move = PaymentMove.SUBMIT if is_slow else plan.move
        due_at = now + self.settings.slow_s + SLOW_GRACE_S if is_slow else None
        return replace(
            before,
            state=state_after(before, move),
            method=method or before.method,
            card=card_fingerprint(method) if method else before.card,
            code=plan.code,
            reason=plan.reason,
            is_firm=int(plan.is_firm or is_slow),
            webhooks=plan.webhooks,
            due_at=now + self.settings.late_s if plan.is_late else due_at,
        )

    def _captured(self, writer: DatabaseWriter, before: SandboxPayment) -> SandboxPayment:
        moved = replace(before, state=state_after(before, PaymentMove.CAPTURE), due_at=None)
        writer.move(before, moved)
        self._add_webhook(writer, moved)
        return moved

    def _refunded(
        self, writer: DatabaseWriter, payment: SandboxPayment, amount_minor: int, *, is_refused: bool
    ) -> SandboxRefund:
        state, reason = ("refused", "The bank refuses this refund.") if is_refused else ("succeeded", None)
        refund = SandboxRefund(0, new_id("re"), payment.id, amount_minor, state, reason, writer.now)
        writer.add_refund(refund)
        if not is_refused:
            payment = replace(payment, refunded_minor=payment.refunded_minor + amount_minor)
        kind = "refund.failed" if is_refused else "refund.succeeded"
        writer.add_webhook(
            kind, payment.id, {"payment": payment_json(payment, ""), "refund": refund_json(refund)}
        )
        return refund

    def _add_webhook(
        self, writer: DatabaseWriter, payment: SandboxPayment, reply: ReplyPlan = ReplyPlan.NORMAL
    ) -> SandboxWebhook | None:
        """The webhook of a payment that has ended; before that, there is none."""
        if payment.state not in (SandboxState.CAPTURED, SandboxState.DECLINED, SandboxState.CANCELLED):
            return None
        kind, about, how = (
            f"payment.{payment.state}",
            {"payment": payment_json(payment, "")},
            payment.webhooks,
        )
        if how == WebhookPlan.OUT_OF_ORDER:
            stale = {"payment": {**about["payment"], "state": SandboxState.PROCESSING}}
            writer.add_webhook("payment.processing", payment.id, stale, after_s=self.settings.out_of_order_s)
        after_s: float | None = WEBHOOK_FIRST_GRACE_S if reply is ReplyPlan.WEBHOOK_FIRST else 0.0
        if how == WebhookPlan.NEVER:
            after_s = None
        elif how == WebhookPlan.LATE:
            after_s = self.settings.late_s
        return writer.add_webhook(
            kind, payment.id, about, after_s=after_s, copies=2 if how == WebhookPlan.TWICE else 1
        )
