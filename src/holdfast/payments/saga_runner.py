"""Carries payments on, from one step of the saga to the next: the only place that asks a gateway for money.

    pay ─► start (ledger) ─► pin (map) ─► charge (gateway) ─► confirm (ledger) ─► commit (map)

The same loop serves whoever waits for their answer, and the job that finds what a dead process left.
"""

import time
from dataclasses import replace

import msgspec
import structlog

from holdfast.bookings import BookingState, reference
from holdfast.catalogue import Catalogue
from holdfast.claim import Action, ClaimRequest, Claims, PoolMap, Settlement, UnitsTaken
from holdfast.config import Config
from holdfast.engines.errors import EngineDown
from holdfast.engines.fault_injection import fault_points
from holdfast.engines.metrics import metrics
from holdfast.holds import HoldService
from holdfast.payments.gateway import Answer, Charge, Gateway, Order
from holdfast.payments.payment import Ask, Payment
from holdfast.payments.saga import ENDS, UNDER_WAY, Step, Time, due_step, next_step
from holdfast.payments.store import Came, PaymentStore, Started

log = structlog.get_logger(__name__)

# How soon somebody looks again at a payment that waits, by how often it was looked at.
PAUSES_MS = (500, 1000, 2000, 4000, 8000, 15_000)
WATCH_PAUSES_MS = (5_000, 15_000, 60_000, 300_000)
LATE_CLAIM_MS = 30_000  # for the seats of a late payment while the ledger decides
NO_LIMIT = 1_000_000  # the ledger counts
TOLD = ("reference", "action_url", "client_secret")  # by the gateway, and kept


class SagaRunner:
    def __init__(
        self,
        book: PaymentStore,
        sales: HoldService,
        claims: Claims,
        catalogue: Catalogue,
        gateway: Gateway,
        config: Config,
    ) -> None:
        self.gateway = gateway
        self._book = book
        self._sales = sales
        self._claims = claims
        self._catalogue = catalogue
        self._config = config

    async def pay(self, ask: Ask) -> Started:
        """What was started, carried on as far as it goes while the asker waits."""
        started = await self._book.start(ask)
        if started.outcome != "charge" or started.payment is None:
            return started
        payment = started.payment
        # Before any money moves: from here on the seats wait for the payment, not for the clock of Redis.
        await self._sales.update_map(payment.show_id, Settlement("extend", payment.claim, 0))
        return Started("charge", None, await self.carry_on(payment, is_first=True))

    async def carry_on(
        self, payment: Payment, *, is_first: bool = False, is_charged: bool = False
    ) -> Payment:
        """To its end, or to where somebody has to wait. `is_charged`: by another process, at this moment."""
        step = payment.step
        if step is Step.CHARGE and not is_first:
            step = Step.LOOK_UP  # somebody was about to charge: nobody knows whether they did
        while step not in ENDS and step is not Step.LATE:
            now = payment.time(time.monotonic(), self._config.payment_let_go_s)
            step = due_step(step, now)
            if (written := await self._written(payment, step)) is None:
                return await self._as_it_is(payment)  # somebody else carries it on
            payment = written
            charge = await self._ask(step, payment)
            if is_charged and charge.answer is Answer.ABSENT:
                # It may be on its way: whoever sent it has an answer when their turn is over, or is dead.
                charge = replace(charge, answer=Answer.UNKNOWN)
                wait_ms = self._book.lease_ms
                return await self._written(payment, step, charge, wait_ms) or await self._as_it_is(payment)
            step = next_step(step, charge.answer, now)
            match step:
                case Step.CONFIRM:
                    payment = await self.confirm(payment, charge)
                    return payment if payment.step is not Step.LATE else await self._settle_late(payment)
                case Step.GIVE_BACK:
                    return await self._give_back(payment, charge)
                case Step.LET_GO:
                    return await self._let_go(payment, is_sure=True)
                case Step.WATCH if payment.step is not Step.WATCH:
                    return await self._let_go(payment, is_sure=False)
                case Step.LOOK_UP | Step.CALL_OFF | Step.WATCH:
                    due_ms = pause_ms(step, payment, now)
                    return await self._written(payment, step, charge, due_ms) or await self._as_it_is(payment)
        return await self._settle_late(payment) if step is Step.LATE else payment

    async def confirm(self, payment: Payment, charge: Charge) -> Payment:
        """The money has come: PAID and the seats are theirs, or LATE."""
        show = self._catalogue.recent_show(payment.show_id) or await self._catalogue.show_on_sale(
            payment.show_id
        )
        terms = await self._catalogue.terms(show, payment.revision)
        lines = [terms.lines(price) for price in payment.prices_minor]
        fee, tax = sum(line.fee_minor for line in lines), sum(line.tax_minor for line in lines)
        after = await self._book.confirm(Came(payment, charge, fee, tax))
        metrics.add("payments_total", step=after.step)
        if after.step is Step.PAID:
            await self._sales.update_map(after.show_id, Settlement("commit", after.claim))
        return after

    async def call_off(self, payment: Payment) -> Payment:
        """The owner does not want to pay after all; too late if the money was taken."""
        taken = await self._book.take_turn(payment)
        if taken is None or taken.step not in UNDER_WAY:
            return taken or await self._as_it_is(payment)
        is_charged = taken.step is Step.CHARGE
        if (written := await self._written(taken, Step.CALL_OFF)) is None:
            return await self._as_it_is(payment)
        return await self.carry_on(written, is_charged=is_charged)

    async def hear(self, payment: Payment) -> Payment:
        """There is news of it at the gateway: look, and carry on; one that had ended may have been paid."""
        if payment.step in (Step.PAID, Step.RETURNED):
            return payment
        if (taken := await self._book.take_turn(payment)) is not None:
            return await self.carry_on(taken)
        charge = await self._ask(Step.LOOK_UP, payment)
        if charge.answer is not Answer.YES:
            return payment
        log.warning("money for a payment that had ended", key=payment.key, step=payment.step)
        return await self._settle_late(await self.confirm(payment, charge))

    async def _ask(self, step: Step, payment: Payment) -> Charge:
        """One question to the gateway. Money of another amount than we asked for is not an answer to it."""
        key, reference = payment.key, payment.reference
        with fault_points(f"gateway.{step}"):
            match step:
                case Step.CHARGE:
                    charge = await self.gateway.charge(self._order(payment))
                case Step.LOOK_UP:
                    charge = await self.gateway.look_up(key=key, reference=reference)
                case Step.CALL_OFF | Step.WATCH:
                    charge = await self.gateway.call_off(key=key, reference=reference)
                case _:
                    raise AssertionError(f"nobody asks a gateway to {step}")
        metrics.add("gateway_answers_total", step=step, answer=charge.answer)
        wrong = charge.amount_minor not in (None, payment.amount_minor)
        if wrong or charge.currency not in (None, payment.currency):
            metrics.add("payment_mismatches_total")
            log.error(
                "the gateway took another amount",
                key=key,
                asked=payment.amount_minor,
                taken=charge.amount_minor,
                currency=charge.currency,
            )
            return replace(charge, answer=Answer.UNKNOWN)
        return charge

    def _order(self, payment: Payment) -> Order:
        return Order(
            key=payment.key,
            amount_minor=payment.amount_minor,
            currency=payment.currency,
            method=payment.method,
            description=f"Booking {reference(payment.show_id, payment.number)}",
            return_url=payment.return_url,
        )

    async def _written(
        self, payment: Payment, step: Step, charge: Charge | None = None, due_ms: int = 0
    ) -> Payment | None:
        """The step in the ledger, before it is tried; what is there already is not written again."""
        if step is payment.step and charge is None:
            return payment
        if not await self._book.advance(payment, step, charge, due_ms or self._book.lease_ms):
            return None
        known = {name: getattr(charge, name) or getattr(payment, name) for name in TOLD} if charge else {}
        return msgspec.structs.replace(payment, step=step, **known)

    async def _as_it_is(self, payment: Payment) -> Payment:
        found = await self._book.payment(payment.show_id, payment.number, payment.attempt)
        assert found is not None  # payments are never deleted
        return found

    async def _give_back(self, payment: Payment, charge: Charge) -> Payment:
        end = (
            Step.DECLINED
            if charge.answer is Answer.NO and payment.step is not Step.CALL_OFF
            else Step.CALLED_OFF
        )
        after = await self._book.give_back(payment, charge, end)
        metrics.add("payments_total", step=after.step)
        left_ms = after.hold_left_ms + self._config.claim_grace_ms
        what = (
            Settlement("extend", after.claim, left_ms) if left_ms > 0 else Settlement("release", after.claim)
        )
        if after.booking_state is BookingState.HELD:
            await self._sales.update_map(after.show_id, what)
        return after

    async def _let_go(self, payment: Payment, *, is_sure: bool) -> Payment:
        after = await self._book.let_go(payment, is_sure=is_sure, due_ms=WATCH_PAUSES_MS[0])
        metrics.add("payments_total", step=after.step)
        if after.booking_state is BookingState.EXPIRED:
            await self._sales.update_map(after.show_id, Settlement("release", after.claim))
        return after

    async def _settle_late(self, payment: Payment) -> Payment:
        """All its seats if they are free on the map and in the ledger; else all of its money goes back."""
        if payment.step is not Step.LATE:
            return payment
        after = await self._book.book_late(payment, may_book=await self._claim_again(payment))
        action: Action = "commit" if after.step is Step.PAID else "release"
        metrics.add("late_payments_total", end=after.step)
        log.warning("a payment came late", key=payment.key, end=after.step)
        if after.step is Step.PAID or after.booking_state not in (
            BookingState.HELD,
            BookingState.PAYING,
            BookingState.CONFIRMED,
        ):
            await self._sales.update_map(after.show_id, Settlement(action, after.claim))
        return after

    async def _claim_again(self, payment: Payment) -> bool:
        """Whoever holds one of the seats on the map, and has not reached the ledger yet, is not robbed."""
        wish = ClaimRequest(payment.claim_id, payment.owner_id, LATE_CLAIM_MS, NO_LIMIT, payment.seats)
        try:
            with fault_points("map.claim_again"):
                (outcome,) = await self._claims.claim_many(payment.show_id, [wish])
            if not isinstance(outcome, UnitsTaken):
                return True
            # By itself, perhaps: a claim without a key of its owner's is not known by its name.
            pool = await self._claims.read(payment.show_id, with_claims=True)
            return isinstance(pool, PoolMap) and str(payment.claim) in (pool.claims or ())
        except EngineDown:
            return True  # the ledger decides alone


def pause_ms(step: Step, payment: Payment, now: Time) -> int:
    """Until somebody looks again: longer each time, but the deadline is kept."""
    pauses = WATCH_PAUSES_MS if step is Step.WATCH else PAUSES_MS
    pause = pauses[min(payment.tries, len(pauses) - 1)]
    return min(pause, max(payment.left_ms, 0) + 50) if now is Time.LEFT else pause
