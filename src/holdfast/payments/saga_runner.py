"""Moves payments from one step of the saga to the next: the only module that charges a gateway.

    pay ─► start (ledger) ─► pin (map) ─► charge (gateway) ─► confirm (ledger) ─► commit (map)

The same loop serves the buyer's request and the job that picks up payments of a dead process.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import msgspec
import structlog

from holdfast.bookings import BookingState, reference
from holdfast.catalogue import Catalogue
from holdfast.claim import Action, ClaimRequest, Claims, PoolMap, Settlement, UnitsTaken
from holdfast.config import Config
from holdfast.engines import fault_injection
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.engines.tracing import child, note
from holdfast.holds import HoldService
from holdfast.payments.errors import GatewayMissing
from holdfast.payments.gateway import Charge, ChargeOrder, Gateway, GatewayAnswer
from holdfast.payments.payment import Payment, PaymentRequest
from holdfast.payments.saga import ENDS, UNDER_WAY, DeadlineStatus, PaymentStep, due_step, next_step
from holdfast.payments.store import CapturedPayment, PaymentStart, PaymentStore

log = structlog.get_logger(__name__)

# Pauses between two look-ups of a payment, by the number of tries. While it waits for its payer its webhook
# comes first, and polls only make up for a lost one; a charge without an answer is looked up soon.
PAYER_PAUSES_MS = (15_000, 30_000, 60_000, 120_000, 240_000)
PAUSES_MS = (500, 1000, 2000, 4000, 8000, *PAYER_PAUSES_MS)
LAST_LOOK_MS = 5000  # before the deadline: paid at the last moment is not cancelled
WATCH_PAUSES_MS = (5_000, 15_000, 60_000, 300_000)
LATE_CLAIM_MS = 30_000  # the claim on the seats of a late payment, while the ledger decides
NO_LIMIT = 1_000_000  # the ledger enforces the owner's limit
CANCELS = (PaymentStep.CALL_OFF, PaymentStep.WATCH)
GATEWAY_FIELDS = ("reference", "action_url", "client_secret")  # stored when the gateway returns them


class SagaRunner:
    def __init__(
        self,
        payments: PaymentStore,
        holds: HoldService,
        claims: Claims,
        catalogue: Catalogue,
        gateway: Gateway,
        config: Config,
    ) -> None:
        self.gateway = gateway
        self._payments = payments
        self._holds = holds
        self._claims = claims
        self._catalogue = catalogue
        self._config = config
        self._calls = 0  # of the gateway, under way

    async def pay(self, request: PaymentRequest) -> PaymentStart:
        """Start a payment and carry it on as far as it goes while the buyer waits."""
        if self.gateway.name == "none":
            raise GatewayMissing
        started = await self._payments.start(request)
        if started.outcome == "which_card":  # only shows with a limit per card need the extra call
            card = await self.gateway.card_fingerprint(request.method) or ""
            started = await self._payments.start(msgspec.structs.replace(request, card=card))
        if started.outcome != "charge" or started.payment is None:
            return started
        payment = started.payment
        # Before any money moves: without this, the hold could expire in Redis while the gateway charges,
        # and another buyer could claim seats that are about to be paid for.
        await self._holds.update_map(payment.show_id, Settlement("extend", payment.claim, 0))
        return PaymentStart("charge", None, await self.carry_on(payment, is_first=True))

    async def carry_on(
        self, payment: Payment, *, is_first: bool = False, is_charged: bool = False
    ) -> Payment:
        """To its end, or to a step that has to wait. `is_charged`: another process is charging right now."""
        step = payment.step
        if step is PaymentStep.CHARGE and not is_first:
            # Another worker stored CHARGE and then died or lost its lease. It may have charged: charging
            # again without a look-up could overwrite its result, so the gateway is queried first.
            step = PaymentStep.LOOK_UP
        while step not in ENDS and step is not PaymentStep.LATE:
            now = payment.time(time.monotonic(), self._config.payment_grace_s)
            step = due_step(step, now)
            if (written := await self._write_step(payment, step)) is None:
                return await self._reload(payment)  # another worker has the turn: its result counts
            payment = written
            charge = await self._call_gateway(step, payment)
            if is_charged and charge.answer is GatewayAnswer.ABSENT:
                # The charge may still be on its way to the gateway, so "absent" proves nothing yet. Giving
                # the seats back now could leave money without seats. When the other worker's lease has
                # ended, it has its answer or is dead; only then does the look-up decide.
                charge = replace(charge, answer=GatewayAnswer.UNKNOWN)
                wait_ms = self._payments.lease_ms
                return await self._write_step(payment, step, charge, wait_ms) or await self._reload(payment)
            step = next_step(step, charge.answer, now)
            match step:
                case PaymentStep.CONFIRM:
                    payment = await self.confirm(payment, charge)
                    return (
                        payment if payment.step is not PaymentStep.LATE else await self._settle_late(payment)
                    )
                case PaymentStep.GIVE_BACK:
                    return await self._give_back(payment, charge)
                case PaymentStep.RELEASE:
                    return await self._release(payment, is_sure=True)
                case PaymentStep.WATCH if payment.step is not PaymentStep.WATCH:
                    return await self._release(payment, is_sure=False)
                case PaymentStep.LOOK_UP | PaymentStep.CALL_OFF | PaymentStep.WATCH:
                    due_ms = pause_ms(step, payment, charge, now)
                    return await self._write_step(payment, step, charge, due_ms) or await self._reload(
                        payment
                    )
        return await self._settle_late(payment) if step is PaymentStep.LATE else payment

    async def confirm(self, payment: Payment, charge: Charge) -> Payment:
        """The money was captured: PAID with the seats confirmed, or LATE. Another amount changes nothing."""
        show = self._catalogue.recent_show(payment.show_id) or await self._catalogue.show_on_sale(
            payment.show_id
        )
        terms = await self._catalogue.terms(show, payment.revision)
        lines = [terms.lines(price) for price in payment.prices_minor]
        fee, tax = sum(line.fee_minor for line in lines), sum(line.tax_minor for line in lines)
        after = await self._payments.confirm(CapturedPayment(payment, charge, fee, tax))
        metrics.add("payments_total", step=after.step)
        if after.step not in (PaymentStep.PAID, PaymentStep.LATE, PaymentStep.RETURNED):
            log.error("the ledger refused another amount", key=payment.key, captured=charge.amount_minor)
        if after.step is PaymentStep.PAID:
            await self._holds.update_map(after.show_id, Settlement("commit", after.claim))
        return after

    async def call_off(self, payment: Payment) -> Payment:
        """The owner cancels the payment; too late if the money was captured."""
        taken = await self._payments.take_turn(payment)
        if taken is None or taken.step not in UNDER_WAY:
            return taken or await self._reload(payment)
        is_charged = taken.step is PaymentStep.CHARGE
        if (written := await self._write_step(taken, PaymentStep.CALL_OFF)) is None:
            return await self._reload(payment)
        return await self.carry_on(written, is_charged=is_charged)

    async def refresh_from_gateway(self, payment: Payment) -> Payment:
        """Look the payment up at the gateway and carry it on. One that had ended may have been paid since."""
        if payment.step in (PaymentStep.PAID, PaymentStep.RETURNED):
            return payment
        # Taking the turn fences off the worker that has it: both would see the same answer, but only the
        # newer turn can write it.
        if (taken := await self._payments.take_turn(payment)) is not None:
            return await self.carry_on(taken)
        charge = await self._call_gateway(PaymentStep.LOOK_UP, payment)
        if charge.answer is not GatewayAnswer.YES:
            return payment
        # The payment had ended without money (declined, expired, cancelled) and was charged all the same:
        # its booking may be gone, so confirm() reports LATE and the money is booked or refunded.
        log.warning("money for a payment that had ended", key=payment.key, step=payment.step)
        return await self._settle_late(await self.confirm(payment, charge))

    async def refresh_for_payer(self, payment: Payment) -> Payment:
        """The payer looks again: at the gateway within its budget, otherwise as far as it is known."""
        if payment.step in (PaymentStep.PAID, PaymentStep.RETURNED):
            return payment
        if await self._payments.may_look(payment):
            return await self.refresh_from_gateway(payment)
        metrics.add("payment_looks_refused_total")
        return await self._reload(payment)

    @contextmanager
    def _counted_call(self) -> Iterator[None]:
        """Waiting rooms let fewer people in while very many calls are under way."""
        self._calls += 1
        metrics.set("gateway_calls", self._calls)
        try:
            yield
        finally:
            self._calls -= 1
            metrics.set("gateway_calls", self._calls)

    async def _call_gateway(self, step: PaymentStep, payment: Payment) -> Charge:
        """The gateway's answer to a step. Money of another amount or currency than ours becomes UNKNOWN."""
        key, reference = payment.key, payment.reference
        if payment.gateway != self.gateway.name:
            # Another gateway was configured when it was made. "Absent" from this one would prove nothing.
            log.error("payment belongs to another gateway", key=key, gateway=payment.gateway)
            return Charge(answer=GatewayAnswer.UNKNOWN)
        began = time.monotonic()
        with (
            fault_injection.fault_points(f"gateway.{step}"),
            self._counted_call(),
            child("gateway", step, "client", {"holdfast.gateway": self.gateway.name}),
        ):
            match step:
                case PaymentStep.CHARGE:
                    charge = await self.gateway.charge(self._charge_order(payment))
                case PaymentStep.LOOK_UP:
                    charge = await self.gateway.look_up(key=key, reference=reference)
                case _ if step in CANCELS:
                    charge = await self._cancel_or_find_capture(key, reference)
                case _:
                    raise AssertionError(f"{step} is not a call of the gateway")
            note("holdfast.answer", charge.answer.value)
        metrics.observe("gateway_seconds", time.monotonic() - began, step=step)
        metrics.add("gateway_answers_total", step=step, answer=charge.answer)
        # YES to a cancel request means that no money moves; NO means that it has moved.
        captured = GatewayAnswer.NO if step in CANCELS else GatewayAnswer.YES
        if charge.answer is captured and not payment.is_for(charge):
            metrics.add("payment_mismatches_total")
            log.error(
                "the gateway captured another amount",
                key=key,
                expected=(payment.amount_minor, payment.currency),
                captured=(charge.amount_minor, charge.currency),
            )
            return replace(charge, answer=GatewayAnswer.UNKNOWN)
        return charge

    async def _cancel_or_find_capture(self, key: str, reference: str | None) -> Charge:
        """Cancel a charge. NO only with the captured money in it, which the caller compares with ours.

        "Too late, it was captured" does not say how much: confirming on it alone would book any amount.
        """
        cancelled = await self.gateway.call_off(key=key, reference=reference)
        if cancelled.answer is not GatewayAnswer.NO:
            return cancelled
        captured = await self.gateway.look_up(key=key, reference=cancelled.reference or reference)
        if captured.answer is not GatewayAnswer.YES:
            return Charge(answer=GatewayAnswer.UNKNOWN, reference=cancelled.reference)
        return replace(captured, answer=GatewayAnswer.NO)

    def _charge_order(self, payment: Payment) -> ChargeOrder:
        return ChargeOrder(
            key=payment.key,
            amount_minor=payment.amount_minor,
            currency=payment.currency,
            method=payment.method,
            description=f"Booking {reference(payment.show_id, payment.number)}",
            return_url=payment.return_url,
        )

    async def _write_step(
        self, payment: Payment, step: PaymentStep, charge: Charge | None = None, due_ms: int = 0
    ) -> Payment | None:
        """Store the step before it is tried, unless it is stored; None: another worker has the turn."""
        if step is payment.step and charge is None:
            return payment
        if not await self._payments.advance(payment, step, charge, due_ms or self._payments.lease_ms):
            return None
        known = (
            {name: getattr(charge, name) or getattr(payment, name) for name in GATEWAY_FIELDS}
            if charge
            else {}
        )
        if charge and charge.is_processing:
            known |= {"action_url": None, "client_secret": None}
        return msgspec.structs.replace(payment, step=step, **known)

    async def _reload(self, payment: Payment) -> Payment:
        found = await self._payments.payment(payment.show_id, payment.number, payment.attempt)
        assert found is not None  # payments are never deleted
        return found

    async def _give_back(self, payment: Payment, charge: Charge) -> Payment:
        end = (
            PaymentStep.DECLINED
            if charge.answer is GatewayAnswer.NO and payment.step is not PaymentStep.CALL_OFF
            else PaymentStep.CALLED_OFF
        )
        after = await self._payments.give_back(payment, charge, end)
        metrics.add("payments_total", step=after.step)
        await self._restore_claim(after)
        return after

    async def _restore_claim(self, after: Payment) -> None:
        """On the map a booking that is HELD again has the time that its hold has left."""
        left_ms = after.hold_left_ms + self._config.claim_grace_ms
        what = (
            Settlement("extend", after.claim, left_ms) if left_ms > 0 else Settlement("release", after.claim)
        )
        if after.booking_state is BookingState.HELD:
            await self._holds.update_map(after.show_id, what)

    async def _release(self, payment: Payment, *, is_sure: bool) -> Payment:
        after = await self._payments.release(payment, is_sure=is_sure, due_ms=WATCH_PAUSES_MS[0])
        metrics.add("payments_total", step=after.step)
        if after.booking_state is BookingState.EXPIRED:
            # The ledger has counted a hold that ended unpaid; so does the map.
            await self._holds.update_map(after.show_id, Settlement("lapse", after.claim))
        return after

    async def _settle_late(self, payment: Payment) -> Payment:
        """Book all its seats if they are free on the map and in the ledger; else refund all of its money."""
        if payment.step is not PaymentStep.LATE:
            return payment
        if payment.code == "card_limit":
            return await self._return_over_limit(payment)
        after = await self._payments.book_late(payment, may_book=await self._claim_again(payment))
        action: Action = "commit" if after.step is PaymentStep.PAID else "release"
        metrics.add("late_payments_total", end=after.step)
        log.warning("late payment settled", key=payment.key, end=after.step)
        if after.step is PaymentStep.PAID or after.booking_state not in (
            BookingState.HELD,
            BookingState.PAYING,
            BookingState.CONFIRMED,
        ):
            await self._holds.update_map(after.show_id, Settlement(action, after.claim))
        return after

    async def _return_over_limit(self, payment: Payment) -> Payment:
        """The card has all the seats it may have: its money goes back, and the hold continues."""
        after = await self._payments.book_late(payment, may_book=False)
        metrics.add("payments_over_card_limit_total")
        await self._restore_claim(after)
        return after

    async def _claim_again(self, payment: Payment) -> bool:
        """Claim the seats on the map before the ledger books them for a late payment.

        Another buyer may have claimed one of them in Redis without having reached the ledger yet. Booking
        from the ledger alone would take seats that this buyer was already shown as theirs.
        """
        wish = ClaimRequest(payment.claim_id, payment.owner_id, LATE_CLAIM_MS, NO_LIMIT, payment.seats)
        try:
            with fault_injection.fault_points("map.claim_again"):
                (outcome,) = await self._claims.claim_many(payment.show_id, [wish])
            if not isinstance(outcome, UnitsTaken):
                return True
            # Perhaps by this payment's own claim: a claim without an owner key is not found by name.
            pool = await self._claims.read(payment.show_id, with_claims=True)
            return isinstance(pool, PoolMap) and str(payment.claim) in (pool.claims or ())
        except EngineDown:
            return True  # the ledger decides alone


def pause_ms(step: PaymentStep, payment: Payment, charge: Charge, now: DeadlineStatus) -> int:
    """Until the next look-up: longer each time, but once shortly before the deadline, and at the deadline."""
    pauses: tuple[int, ...] = WATCH_PAUSES_MS if step is PaymentStep.WATCH else PAUSES_MS
    if step is PaymentStep.LOOK_UP and any(
        getattr(one, name) for one in (charge, payment) for name in ("action_url", "client_secret")
    ):
        pauses = PAYER_PAUSES_MS
    pause = pauses[min(payment.tries, len(pauses) - 1)]
    if now is not DeadlineStatus.LEFT:
        return pause
    left = max(payment.left_ms, 0)
    return min(pause, left - LAST_LOOK_MS) if left > LAST_LOOK_MS else min(pause, left + 50)
