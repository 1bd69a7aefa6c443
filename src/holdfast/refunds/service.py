"""The refund service: by policy for owners, by decision of an organiser, in full for a cancelled show.

    decide (ledger) ─► free (map) ─► refund (gateway) ─► settle (ledger)

From the decision on the money is owed, even if the process dies: a job calls the gateway under the same key
until it answers. The deciding request calls it at once, so that usually the refund is done before the answer.
"""

import asyncio
from collections.abc import Sequence

import msgspec
import structlog

from holdfast.bookings import (
    Booking,
    BookingState,
    HoldGone,
    NoSuchBooking,
    RefundShown,
    WrongMove,
    public_id,
)
from holdfast.catalogue import Catalogue, ShowOnSale
from holdfast.claim import Settlement
from holdfast.engines import fault_injection
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.engines.show_batch import OWN_LOCK_WAIT_MS
from holdfast.engines.tracing import child
from holdfast.errors import Busy
from holdfast.holds import HoldService
from holdfast.payments import GatewayAnswer, PaymentStore, RefundResult, SagaRunner
from holdfast.pricing import PolicyQuote, quote_refund
from holdfast.refunds.errors import (
    NotRefundable,
    OwnProposal,
    ProposalEnded,
    ProposalOutdated,
    RefundChanged,
    RefundTooMuch,
    SeatsNotYours,
    SeatsUsed,
    TicketGiven,
)
from holdfast.refunds.proposal import RefundProposal
from holdfast.refunds.refund import (
    RETURNED,
    Refund,
    RefundDecision,
    RefundQuote,
    RefundRequest,
    RefundScope,
    RefundState,
    build_quote,
    owner_reason,
    pause_ms,
)
from holdfast.refunds.store import RefundStore
from holdfast.web.caller import Origin

log = structlog.get_logger(__name__)

TRIES_MAX = 5  # a booking that has moved on while we looked at it
SHOW_BATCH = 100  # bookings of a cancelled show that are decided in one transaction
CALLED_OFF_AT_ONCE_MAX = 16
# Bookings that may have refunds; a late payment may belong to a booking that was released.
HAS_REFUNDS = {
    BookingState.CONFIRMED,
    BookingState.REFUNDED,
    BookingState.FAILED,
    BookingState.EXPIRED,
    BookingState.CANCELLED,
}
TOO_LATE = "The money had been taken: the booking is confirmed. Cancel it once more to give it back."


class RefundService:
    def __init__(
        self,
        store: RefundStore,
        payments: PaymentStore,
        saga_runner: SagaRunner,
        holds: HoldService,
        catalogue: Catalogue,
    ) -> None:
        self._store = store
        self._payments = payments
        self._saga_runner = saga_runner
        self._holds = holds
        self._catalogue = catalogue

    async def cancel(
        self, booking: Booking, seats: tuple[int, ...] | None, expected_minor: int | None = None
    ) -> tuple[Booking, bool]:
        """Cancel in whatever state it is; True: a payment is still being cancelled, look again later.

        With `seats` only those of a confirmed booking; for `expected_minor` or not at all. Idempotent.
        """
        for _ in range(TRIES_MAX):
            match booking.state:
                case BookingState.CANCELLED | BookingState.REFUNDED:
                    return booking, False
                case BookingState.CONFIRMED:
                    return await self.refund_by_policy(booking, seats, expected_minor), False
                case BookingState.EXPIRED | BookingState.FAILED:
                    raise HoldGone(state=booking.state)
                case _ if seats is not None:
                    raise WrongMove(state=booking.state, move="reduce")
                case BookingState.HELD:
                    try:
                        return await self._holds.cancel(booking), False
                    except WrongMove:
                        booking = await self._reload(booking)  # the owner has begun to pay for it meanwhile
                case _:
                    payment = await self._payments.latest(booking.show_id, booking.number)
                    assert payment is not None  # PAYING has one
                    await self._saga_runner.call_off(payment)
                    booking = await self._reload(booking)
                    if booking.state is BookingState.CONFIRMED:
                        raise WrongMove(state=booking.state, move="cancel", detail=TOO_LATE)
                    if booking.state is BookingState.PAYING:
                        return booking, True
        raise Busy(retry_after_s=1)

    async def quote(self, booking: Booking, seats: tuple[int, ...] | None = None) -> RefundQuote:
        """What the owner would get back now, by the terms the seats were held on."""
        page, _ = await self._build_quote(booking, seats)
        return page

    async def quote_in_full(self, booking: Booking, seats: Sequence[int]) -> RefundQuote:
        """What an organiser would give back for these seats: their price, less money that went back alone."""
        labels = (await self._catalogue.show_on_sale(booking.show_id)).layout.labels
        prices = dict(zip(booking.seats, booking.prices_minor, strict=True))
        paid = sum(prices.get(seat, 0) for seat in seats)
        amount = min(paid, max(0, booking.amount_minor - await self._alone_minor(booking)))
        whole = PolicyQuote(amount_minor=amount, percent=100, until=None, next_percent=None)
        return build_quote(booking, [labels[seat] for seat in seats], paid, whole, keep_fee=False)

    async def refund_by_policy(
        self, booking: Booking, seats: tuple[int, ...] | None = None, expected_minor: int | None = None
    ) -> Booking:
        """What the terms promise now. With another `expected_minor`: RefundChanged, and nothing happens."""
        for _ in range(TRIES_MAX):
            page, is_open = await self._build_quote(booking, seats)
            is_whole = seats is None or set(seats) == set(booking.seats)
            request = RefundRequest(
                booking=booking,
                why=owner_reason(booking, seats),
                what=RefundScope.WHOLE if is_whole else RefundScope.SEATS,
                seats=seats or (),
                amount_minor=page.amount,
                is_exact=expected_minor is not None,
                keep_fee=page.keeps_fee,
                actor_id=booking.owner_id,
            )
            is_changed = expected_minor not in (None, page.amount)
            if (is_changed or not is_open) and not await self._was_done(request):
                refusal = NotRefundable if not is_open else RefundChanged
                raise refusal(quote=msgspec.to_builtins(page))
            decision = await self.decide(request)
            if decision.outcome != "changed":
                return await self._owners_answer(booking, decision)
            booking = await self._reload(booking)
        raise Busy(retry_after_s=1)

    async def decide(self, request: RefundRequest) -> RefundDecision:
        """Decide in the ledger, free the seats on the map, and request the refund from the gateway once."""
        with fault_injection.fault_points("refund.decide"):
            decision = await self._store.decide(request)
        if decision.outcome != "decided":
            return decision
        assert decision.booking is not None
        shown = public_id(request.booking.show_id, request.booking.number)
        log.info("refund decided", why=request.why, booking=shown)
        if parts := _parts(request.booking, decision.booking):
            await self._holds.update_map(request.booking.show_id, *parts)
        if decision.refund is None or decision.refund.state is not RefundState.REQUESTED:
            return decision
        try:
            return msgspec.structs.replace(decision, refund=await self.carry_out(decision.refund))
        except EngineDown:  # it is decided and written: a job requests
            return decision

    async def approve(self, proposal: RefundProposal, approver_id: int, origin: Origin) -> RefundDecision:
        """Give the refund that another person proposed: exactly its amount, or a refusal."""
        if proposal.proposed_by == approver_id:
            raise OwnProposal
        booking = await self._holds.bookings.booking(proposal.show_id, proposal.number)
        if booking is None:
            raise NoSuchBooking()
        request = RefundRequest(
            booking=booking,
            why=proposal.why,
            what=RefundScope(proposal.what),
            seats=proposal.seats,
            amount_minor=proposal.amount_minor,
            is_exact=True,
            note=proposal.note,
            actor_id=proposal.proposed_by,
            origin=origin,
            proposal_id=proposal.id,
            approver_id=approver_id,
        )
        decision = await self.decide(request)
        if decision.outcome in ("ended", "same"):
            raise ProposalEnded(state=(await self._store.approvals.proposal(proposal.id)).state)
        if decision.outcome == "changed":
            raise ProposalOutdated
        if decision.outcome != "decided":
            raise build_refusal(decision, await self._catalogue.show_on_sale(proposal.show_id))
        return decision

    async def carry_out(self, refund: Refund) -> Refund:
        """Request the refund from the gateway once, and store its answer."""
        answer = await self._call_gateway(refund)
        metrics.add("gateway_answers_total", step="refund", answer=answer.answer)
        with fault_injection.fault_points("refund.settle"):
            match answer.answer:
                case GatewayAnswer.YES:
                    after = await self._store.settle(refund, RefundState.DONE, reference=answer.reference)
                case GatewayAnswer.NO:
                    reason = answer.reason or "The gateway refused."
                    after = await self._store.settle(refund, RefundState.BY_HAND, reason=reason)
                    log.error("refund must be paid by hand", refund=refund.refund_id, reason=reason)
                case _:
                    await self._store.wait(refund, pause_ms(refund))
                    after = refund
        metrics.add("refunds_total", state=after.state)
        return after

    async def refresh_from_gateway(self, show_id: int, number: int, attempt: int) -> None:
        """The gateway has news of a payment's refunds: request unanswered ones again, look up those done."""
        found = await self._store.refunds_of([(show_id, number)])
        for refund in found[show_id, number]:
            if refund.attempt == attempt and refund.state is RefundState.REQUESTED:
                await self.carry_out(refund)
            elif refund.attempt == attempt and refund.is_done_by_gateway:
                await self._look_up(refund)

    async def _look_up(self, refund: Refund) -> None:
        """A bank may return a refund days after the gateway made it: then it is not done."""
        if refund.gateway != self._saga_runner.gateway.name or refund.reference is None:
            return
        result = await self._saga_runner.gateway.look_up_refund(reference=refund.reference)
        if result.answer is GatewayAnswer.NO:
            reason = result.reason or "The refund failed at the gateway."
            await self._store.reopen(refund, reason)
            metrics.add("refunds_failed_later_total")
            log.error("refund failed after it was done", refund=refund.refund_id, reason=reason)

    async def cancel_batch(self, show_id: int) -> int:
        """The next bookings of a cancelled show: holds go, payments are called off, money goes back in full.

        Found from the ledger alone, so after a crash the next run finds the remaining bookings, each once.
        Returns how many; the refund job calls the gateway, a few refunds at a time.
        """
        bookings = await self._store.bookings_left(show_id, SHOW_BATCH)
        held = [booking for booking in bookings if booking.state is BookingState.HELD]
        confirmed = [booking for booking in bookings if booking.state is BookingState.CONFIRMED]
        gone = await self._store.let_holds_go(held) if held else []
        parts = [Settlement("release", claim) for claim in gone]
        done = len(gone)
        if confirmed:
            requests = [
                RefundRequest(booking=one, why="show", note="The show was cancelled.") for one in confirmed
            ]
            with fault_injection.fault_points("refund.decide"):
                decisions = await self._store.decide_many(requests, OWN_LOCK_WAIT_MS, due_ms=0)
            for booking, decision in zip(confirmed, decisions, strict=True):
                if decision.outcome == "decided" and decision.booking is not None:
                    done += 1
                    parts += _parts(booking, decision.booking)
        if parts:
            await self._holds.update_map(show_id, *parts)
        return done + await self._call_off(show_id)

    async def shown_many(self, bookings: Sequence[Booking]) -> list[Sequence[RefundShown]]:
        """Refunds as the owner sees them. Bookings that were never paid are not queried."""
        keys = [(b.show_id, b.number) for b in bookings if b.state in HAS_REFUNDS]
        found = await self._store.refunds_of(keys) if keys else {}
        return [
            [
                RefundShown(refund.amount_minor, refund.state, refund.requested_at)
                for refund in found.get((booking.show_id, booking.number), ())
            ]
            for booking in bookings
        ]

    async def _call_off(self, show_id: int) -> int:
        """Payments of a cancelled show; money that is taken all the same is returned as late, or refunded."""
        left = await self._store.payments_left(show_id, SHOW_BATCH)
        room = asyncio.Semaphore(CALLED_OFF_AT_ONCE_MAX)

        async def call_off(key: tuple[int, int, int]) -> None:
            async with room:
                payment = await self._payments.payment(*key)
                assert payment is not None
                await self._saga_runner.call_off(payment)

        await asyncio.gather(*(call_off(key) for key in left))
        return len(left)

    async def _call_gateway(self, refund: Refund) -> RefundResult:
        gateway = self._saga_runner.gateway
        if refund.gateway != gateway.name:
            log.error("refund belongs to another gateway", refund=refund.refund_id, gateway=refund.gateway)
            return RefundResult(answer=GatewayAnswer.UNKNOWN)
        if refund.payment_reference is None:
            return RefundResult(
                answer=GatewayAnswer.NO, reason="The gateway's reference of the payment is unknown."
            )
        with (
            fault_injection.fault_points("gateway.refund"),
            child("gateway", "refund", "client", {"holdfast.gateway": gateway.name}),
        ):
            return await gateway.refund(
                key=refund.gateway_key,
                reference=refund.payment_reference,
                amount_minor=refund.amount_minor,
                currency=refund.currency,
            )

    async def _build_quote(self, booking: Booking, seats: tuple[int, ...] | None) -> tuple[RefundQuote, bool]:
        """And whether the seats may be given back at all."""
        show = await self._catalogue.show_on_sale(booking.show_id)
        terms = await self._catalogue.terms(show, booking.revision)
        chosen = booking.seats if seats is None else seats
        prices = dict(zip(booking.seats, booking.prices_minor, strict=True))
        # Of seats that are not there any more: the ledger will say what became of them.
        lines = [terms.lines(prices.get(seat, 0)) for seat in chosen]
        now = await self._store.ledger_now()
        quote: PolicyQuote = quote_refund(
            terms.refund_policy, lines, starts_at=show.starts_at, now=now, cancelled=show.cancelled
        )
        paid = sum(line.price_minor for line in lines)
        alone = await self._alone_minor(booking)
        most = min(paid, max(0, booking.amount_minor - alone))
        quote = msgspec.structs.replace(quote, amount_minor=min(quote.amount_minor, most))
        if quote.next_amount_minor is not None:
            quote = msgspec.structs.replace(quote, next_amount_minor=min(quote.next_amount_minor, most))
        labels = [show.layout.labels[seat] for seat in chosen]
        keep_fee = terms.refund_policy.keep_fee and not show.cancelled
        # Free seats have no money to retain: they can be given back until the show starts.
        is_free = most == 0 and (now < show.starts_at or show.cancelled)
        return build_quote(booking, labels, paid, quote, keep_fee), quote.amount_minor > 0 or is_free

    async def _alone_minor(self, booking: Booking) -> int:
        """Money that went back without seats."""
        key = (booking.show_id, booking.number)
        found = await self._store.refunds_of([key])
        return sum(one.amount_minor for one in found[key] if not one.seats and one.why not in RETURNED)

    async def _was_done(self, request: RefundRequest) -> bool:
        key = (request.booking.show_id, request.booking.number)
        return any(refund.why == request.why for refund in (await self._store.refunds_of([key]))[key])

    async def _owners_answer(self, booking: Booking, decision: RefundDecision) -> Booking:
        if (
            decision.outcome in ("decided", "same", "gone", BookingState.REFUNDED)
            and decision.booking is not None
        ):
            return decision.booking
        show = await self._catalogue.show_on_sale(booking.show_id)
        raise build_refusal(decision, show)

    async def _reload(self, booking: Booking) -> Booking:
        return await self._holds.bookings.load_owned(booking.owner_id, booking.show_id, booking.number)


def build_refusal(decision: RefundDecision, show: ShowOnSale) -> Exception:
    """The refusal for an outcome of decision.decide()."""
    labels = [show.layout.labels[seat] for seat in decision.seats]
    match decision.outcome:
        case "none":
            return NoSuchBooking()
        case "used":
            return SeatsUsed(seats=labels)
        case "given":
            return TicketGiven(seats=labels)
        case "much":
            return RefundTooMuch(left=decision.left_minor or 0)
        case "seats" | "gone":
            return SeatsNotYours()
        case "changed":
            return Busy(retry_after_s=1)
    return WrongMove(state=decision.outcome, move="refund")


def _parts(before: Booking, after: Booking) -> Sequence[Settlement]:
    """Settlements for the map: free all seats of the booking, then book the remaining ones again."""
    if after.state is BookingState.REFUNDED:
        return [Settlement("free", before.claim)]
    if after.seats == before.seats:
        return []
    return [Settlement("free", before.claim), Settlement("commit", after.claim)]
