"""The till: create, confirm, find, cancel, refund. Every wire translates to these and back.

What a charge does is its plan (`behaviour.py`); the till carries plans out, once a key:

    the same key again           the answer that was kept, byte for byte
    the same key, other content  refused, 400 idempotency_error
    the same key, still at it    refused, 409 key_in_flight
    begun, then we were killed   what became of it, as soon as we are back

Everything a request changes (payment, notices, the answer to its key) is one function of one transaction.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from time import time

import msgspec
from msgspec.structs import replace

from holdfast.sandbox.behaviour import Notices, Plan, Refunds, Reply, Settings, card_of, plan_of, refunds_of
from holdfast.sandbox.database import Books, Kept, Writer, new_id
from holdfast.sandbox.errors import Refused
from holdfast.sandbox.payment import (
    Move,
    Notice,
    Order,
    Payment,
    Refund,
    State,
    after,
    payment_page,
    refund_page,
    refundable_minor,
)

REMEMBERED_MAX = 100_000  # keys whose first request failed or got lost on purpose
ANSWERS_KEPT_S = 48 * 3600
DUE_MAX = 200  # late payments captured in one transaction
SLOW_GRACE_S = 1.0  # when we are killed during a slow answer, its payment is captured this much later
NOTICE_FIRST_GRACE_S = 5.0

Made = Payment | Refund | Refused


class Call(msgspec.Struct, frozen=True):
    """A request as the till sees it: its key, a print of its content, and how its wire answers."""

    key: str | None
    print: bytes
    render: Callable[[Made], tuple[int, bytes]]  # status and body; runs in the writer's thread


class Done(msgspec.Struct, frozen=True):
    status: int
    body: bytes
    is_replayed: bool = False
    reply: Reply = Reply.NORMAL  # or LOST: the wire must stay silent
    made: Made | None = None
    notice: Notice | None = None


LOST = Done(0, b"", reply=Reply.LOST)


class Till:
    def __init__(self, books: Books) -> None:
        self._books = books
        kept = books.note("settings")
        self.settings = msgspec.json.decode(kept, type=Settings) if kept else Settings()
        self.counts: Counter[str] = Counter()
        self.send_now: Callable[[Notice], Awaitable[bool]] | None = None  # the post's, once it is there
        self._in_flight: set[str] = set()
        self._stumbled: Counter[str] = Counter()  # by key: requests that failed or got lost on purpose
        self._next_due = books.next_payment_due() or float("inf")

    async def create(self, order: Order, call: Call) -> Done:
        """With a method: charged at once. Without: its page is where the payer decides."""
        with self._alone(call.key):
            self.counts["charges"] += 1
            key = call.key or order.reference
            plan = self._plan(order.method, key) if order.method else None
            if plan is None:
                return await self._books.write(lambda w: self._once(w, call, lambda: self._open(w, order)))
            if plan.fails_first and self._stumbles(key):
                raise Refused(500, "sandbox_error", "Something went wrong here. Try again with the same key.")
            if not plan.is_made:
                self._stumbles(key)
                return LOST
            return await self._charge(call, plan, lambda w: self._new(w, order, plan))

    async def confirm(self, payment_id: str, method: str, call: Call) -> Done:
        """Charge a payment that waits for its payer."""
        with self._alone(call.key):
            plan = self._plan(method, call.key or payment_id)
            if not plan.is_made:
                return LOST
            return await self._charge(
                call, plan, lambda w: self._paid(w, w.payment(payment_id), plan, method)
            )

    async def decide(self, page: str, plan: Plan, method: str) -> Payment:
        """What the payer chose on the page."""

        def change(writer: Writer) -> tuple[Payment, Notice | None]:
            return self._paid(writer, writer.payment_by_page(page), plan, method)

        payment, notice = await self._books.write(change)
        await self._follow(payment, plan, notice)
        return payment

    async def cancel(self, payment_id: str, call: Call) -> Done:
        def change(writer: Writer) -> Payment:
            before = writer.payment(payment_id)
            moved = replace(before, state=after(before, Move.CANCEL), due_at=None)
            writer.move(before, moved)
            self._tell(writer, moved)
            return moved

        with self._alone(call.key):
            return await self._books.write(lambda w: self._once(w, call, lambda: (change(w), None)))

    async def refund(self, payment_id: str, amount_minor: int | None, call: Call) -> Done:
        """All that is left where no amount is given."""
        how = Refunds.GIVEN

        def change(writer: Writer) -> Refund:
            nonlocal how
            payment = writer.payment(payment_id)
            left_minor = refundable_minor(payment)
            wanted_minor = left_minor if amount_minor is None else amount_minor
            if not 0 < wanted_minor <= left_minor:
                raise Refused(400, "amount_too_large", f"At most {left_minor} can be refunded.")
            how = refunds_of(payment.method, call.key or payment_id, self.settings)
            return self._refunded(writer, payment, wanted_minor, is_refused=how is Refunds.REFUSED)

        with self._alone(call.key):
            self.counts["refunds"] += 1
            done = await self._books.write(lambda w: self._once(w, call, lambda: (change(w), None)))
        return replace(done, reply=Reply.LOST) if how is Refunds.LOST_ONCE else done

    def find(self, payment_id: str) -> Payment | None:
        return self._books.payment(payment_id)

    def find_by_reference(self, reference: str) -> list[Payment]:
        """The newest first; one captured before all others."""
        found = self._books.payments_by_reference(reference)
        return sorted(found, key=lambda payment: payment.state != State.CAPTURED)

    def find_by_page(self, page: str) -> Payment | None:
        return self._books.payment_by_page(page)

    def list(self, since: float, after: str | None, limit: int) -> list[Payment]:
        """Oldest first. `after` is the id of the last one of the page before."""
        last = self._books.payment(after) if after else None
        if after and last is None:
            raise Refused(400, "resource_missing", "There is no such payment to go on from.")
        return self._books.payments_since(since, last, limit)

    def find_refund(self, refund_id: str) -> Refund | None:
        return self._books.refund(refund_id)

    def refunds(self, payment_id: str) -> Sequence[Refund]:
        return self._books.refunds(payment_id)

    def notices(self, after_seq: int, limit: int) -> Sequence[Notice]:
        return self._books.notices_after(after_seq, limit)

    async def set(self, settings: Settings) -> None:
        text = msgspec.json.encode(settings).decode()
        await self._books.write(lambda writer: writer.write_note("settings", text))
        self.settings = settings

    # ── jobs ────────────────────────────────────────────────────────────────────────

    async def capture_due(self) -> int:
        """Payments whose time has come."""
        if time() < self._next_due:
            return 0

        def change(writer: Writer) -> int:
            due = writer.payments_due(DUE_MAX)
            for payment in due:
                self._captured(writer, payment)
            return len(due)

        self._next_due = float("inf")
        count = await self._books.write(change)
        self._next_due = min(self._next_due, self._books.next_payment_due() or float("inf"))
        return count

    async def forget_answers(self) -> int:
        return await self._books.write(lambda writer: writer.forget_answers(ANSWERS_KEPT_S))

    # ── beneath ───────────────────────────────────────────────────────────────────────

    @contextmanager
    def _alone(self, key: str | None) -> Iterator[None]:
        if key is None:
            yield
            return
        if key in self._in_flight:
            self.counts["in_flight"] += 1
            raise Refused(409, "key_in_flight", "The first request with this key is still under way.")
        self._in_flight.add(key)
        try:
            yield
        finally:
            self._in_flight.discard(key)

    def _plan(self, method: str, key: str) -> Plan:
        return plan_of(method, key, self.settings, lost=self._stumbled[key])

    def _stumbles(self, key: str) -> bool:
        """Whether this is the first request with the key; one that is answered already does not stumble."""
        if len(self._stumbled) > REMEMBERED_MAX:
            self._stumbled.clear()
        self._stumbled[key] += 1
        return self._stumbled[key] == 1 and not self._books.is_answered(key)

    async def _charge(
        self, call: Call, plan: Plan, change: Callable[[Writer], tuple[Payment, Notice | None]]
    ) -> Done:
        is_slow = plan.reply is Reply.SLOW
        done = await self._books.write(lambda w: self._once(w, call, lambda: change(w), begins=is_slow))
        if done.is_replayed or not isinstance(done.made, Payment):
            self.counts["replays"] += done.is_replayed
            return done
        payment = done.made
        self.counts[payment.state] += 1
        await self._follow(payment, plan, done.notice)
        if is_slow:
            return await self._books.write(lambda writer: self._finish(writer, payment.id, call))
        return replace(done, reply=Reply.LOST) if plan.reply is Reply.LOST else done

    async def _follow(self, payment: Payment, plan: Plan, notice: Notice | None) -> None:
        """What has to happen before the answer."""
        if payment.due_at is not None:
            self._next_due = min(self._next_due, payment.due_at)
        if plan.reply is Reply.SLOW:
            await asyncio.sleep(self.settings.slow_s)
        elif plan.reply is Reply.NOTICE_FIRST and notice is not None and self.send_now is not None:
            await self.send_now(notice)

    def _once(
        self,
        writer: Writer,
        call: Call,
        act: Callable[[], tuple[Made, Notice | None]],
        *,
        begins: bool = False,
    ) -> Done:
        if call.key is not None and (kept := writer.kept(call.key)) is not None:
            return self._again(writer, call, kept)
        notice = None
        try:
            made, notice = act()
        except Refused as refused:  # that is an answer, too, and kept
            made = refused
        status, body = call.render(made)
        if call.key is not None:
            made_id = None if isinstance(made, Refused) else made.id
            is_begun = begins and made_id is not None
            writer.keep(call.key, call.print, made_id, None if is_begun else (status, body))
        return Done(status, body, made=made, notice=notice)

    def _again(self, writer: Writer, call: Call, kept: Kept) -> Done:
        if kept.print != call.print:
            raise Refused(400, "idempotency_error", "This key was used with other parameters.")
        if kept.status is not None and kept.body is not None:
            return Done(kept.status, kept.body, is_replayed=True)
        assert call.key is not None
        assert kept.made is not None
        answer = call.render(writer.payment(kept.made))
        writer.answer(call.key, answer)
        return Done(*answer, is_replayed=True)

    def _finish(self, writer: Writer, payment_id: str, call: Call) -> Done:
        payment = writer.payment(payment_id)
        if payment.state == State.PROCESSING:
            payment = self._captured(writer, payment)
        answer = call.render(payment)
        if call.key is not None:
            writer.answer(call.key, answer)
        return Done(*answer, made=payment)

    def _open(self, writer: Writer, order: Order) -> tuple[Payment, None]:
        return writer.add_payment(_payment(order, writer.now, page=os.urandom(18).hex())), None

    def _new(self, writer: Writer, order: Order, plan: Plan) -> tuple[Payment, Notice | None]:
        page = os.urandom(18).hex() if plan.move is Move.ASK else ""
        fresh = _payment(order, writer.now, page=page)
        payment = writer.add_payment(self._moved(fresh, plan, order.method, writer.now))
        return payment, self._tell(writer, payment, plan.reply)

    def _paid(
        self, writer: Writer, before: Payment, plan: Plan, method: str
    ) -> tuple[Payment, Notice | None]:
        moved = self._moved(before, plan, method, writer.now)
        writer.move(before, moved)
        return moved, self._tell(writer, moved, plan.reply)

    def _moved(self, before: Payment, plan: Plan, method: str, now: float) -> Payment:
        """`before`, as the plan leaves it for now."""
        is_slow = plan.reply is Reply.SLOW
        move = Move.SUBMIT if is_slow else plan.move
        due_at = now + self.settings.slow_s + SLOW_GRACE_S if is_slow else None
        return replace(
            before,
            state=after(before, move),
            method=method or before.method,
            card=card_of(method) if method else before.card,
            code=plan.code,
            reason=plan.reason,
            is_firm=int(plan.is_firm or is_slow),
            notices=plan.notices,
            due_at=now + self.settings.late_s if plan.is_late else due_at,
        )

    def _captured(self, writer: Writer, before: Payment) -> Payment:
        moved = replace(before, state=after(before, Move.CAPTURE), due_at=None)
        writer.move(before, moved)
        self._tell(writer, moved)
        return moved

    def _refunded(self, writer: Writer, payment: Payment, amount_minor: int, *, is_refused: bool) -> Refund:
        state, reason = ("refused", "The bank refuses this refund.") if is_refused else ("succeeded", None)
        refund = Refund(0, new_id("re"), payment.id, amount_minor, state, reason, writer.now)
        writer.add_refund(refund)
        if not is_refused:
            payment = replace(payment, refunded_minor=payment.refunded_minor + amount_minor)
        kind = "refund.failed" if is_refused else "refund.succeeded"
        writer.tell(kind, payment.id, {"payment": payment_page(payment, ""), "refund": refund_page(refund)})
        return refund

    def _tell(self, writer: Writer, payment: Payment, reply: Reply = Reply.NORMAL) -> Notice | None:
        """The notice of a payment that has come to its end; before that, there is none."""
        if payment.state not in (State.CAPTURED, State.DECLINED, State.CANCELLED):
            return None
        kind, about, how = f"payment.{payment.state}", {"payment": payment_page(payment, "")}, payment.notices
        if how == Notices.OUT_OF_ORDER:
            stale = {"payment": {**about["payment"], "state": State.PROCESSING}}
            writer.tell("payment.processing", payment.id, stale, after_s=self.settings.out_of_order_s)
        after_s: float | None = NOTICE_FIRST_GRACE_S if reply is Reply.NOTICE_FIRST else 0.0
        if how == Notices.NEVER:
            after_s = None
        elif how == Notices.LATE:
            after_s = self.settings.late_s
        return writer.tell(kind, payment.id, about, after_s=after_s, copies=2 if how == Notices.TWICE else 1)


def _payment(order: Order, now: float, *, page: str) -> Payment:
    return Payment(
        seq=0,
        id=new_id("pay"),
        reference=order.reference,
        amount_minor=order.amount_minor,
        currency=order.currency,
        state=State.REQUIRES_PAYER,
        method=order.method,
        card=None,
        code=None,
        reason=None,
        description=order.description,
        return_url=order.return_url,
        page=page,
        refunded_minor=0,
        is_firm=0,
        notices=Notices.ONCE,
        due_at=None,
        created_at=now,
        metadata=order.metadata,
    )
