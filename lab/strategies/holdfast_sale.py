"""Holdfast: Redis decides fast, PostgreSQL decides for good. The product's own code, not a copy.

How it works. One script on Redis' one thread claims seats on the show's map and refuses every loser. A winner
becomes a row in PostgreSQL under a unique key over (show, seat), and gets its "yes" after the commit. While a
payment is under way the seat cannot lapse. Concurrent calls share one round trip to each engine.

How it fails. A Redis that has lost its data costs time, not seats: its map is rebuilt from PostgreSQL before
it sells again. Without Redis, PostgreSQL decides alone, a few at a time. Without PostgreSQL nothing is sold.
It needs two engines, and more code than any other here.

Right for: rushes on few seats, where losers outnumber winners by far.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from itertools import count
from typing import ClassVar

from holdfast.app import App, open_app
from holdfast.bookings import HoldGone, WrongMove
from holdfast.catalogue import OrphanRule, ShowOnSale
from holdfast.claim import Settlement
from holdfast.config import Config
from holdfast.engines import fault_injection
from holdfast.errors import Refusal
from holdfast.holds import HoldRequest, NamedSeats, compute_claim_id
from holdfast.payments import Charge, GatewayAnswer, PaymentRequest, PaymentStep
from lab.strategies.strategy import Hold, Strategy, Tools

OWNERS_PER_CLIENT = 10_000_000  # every attempt is another owner's: limits per buyer are not the subject here
BETWEEN = "ledger.open"  # the fault point after the claim in Redis and before the row in PostgreSQL


class HoldfastSale(Strategy):
    name = "holdfast"
    title = "Holdfast"
    uses_redis = True
    has_seat_rows = False
    _attempts: ClassVar = count(1)
    _app: App
    _show: ShowOnSale

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self._opened = AsyncExitStack()

    async def open(self) -> None:
        config = Config(
            database_url=self.tools.database_url, redis_url=self.tools.redis_url, gateway="sandbox"
        )
        self._app = await self._opened.enter_async_context(open_app(config))
        await self._app.waiting_rooms.guard.refresh()
        self._show = await self._app.catalogue.show_on_sale(self.show_id)

    async def close(self) -> None:
        await self._opened.aclose()

    async def hold(self, seat: int, client: int) -> Hold | None:
        attempt = next(self._attempts)
        owner_id, request_id = client * OWNERS_PER_CLIENT + attempt, f"lab {client} {attempt}"
        request = HoldRequest(
            show=self._show,
            owner_id=owner_id,
            request_id=request_id,
            claim_id=compute_claim_id(owner_id, request_id),
            body_hash=1,
            selection=NamedSeats((seat,), OrphanRule.OFF, ()),
        )
        try:
            booking = await self._app.holds.hold(request)
        except Refusal:
            return None
        return Hold(seat, client, booking.claim_id, booking)

    async def start_payment(self, hold: Hold) -> Hold | None:
        """From here on the seat does not lapse until the payment is settled. As SagaRunner.pay does it."""
        booking = hold.detail
        request = PaymentRequest(
            show_id=booking.show_id,
            number=booking.number,
            owner_id=booking.owner_id,
            request_id=f"pay {hold.hold_id}",
            body_hash=1,
            method="tok_ok",
            return_url="",
            salt=hold.hold_id,
        )
        started = await self._app.payments.start(request)
        if started.outcome not in ("charge", "same") or started.payment is None:
            return None
        await self._app.holds.update_map(booking.show_id, Settlement("extend", started.payment.claim, 0))
        return Hold(hold.seat, hold.client, hold.hold_id, started.payment)

    async def confirm(self, hold: Hold) -> bool:
        """The gateway has captured the money: the ledger decides whether the seats go with it."""
        await self.tools.critical("confirm", hold.seat, hold.client)
        payment = hold.detail
        charge = Charge(
            answer=GatewayAnswer.YES,
            reference=f"lab_{hold.hold_id}",
            amount_minor=payment.amount_minor,
            currency=payment.currency,
        )
        return (await self._app.saga_runner.confirm(payment, charge)).step is PaymentStep.PAID

    async def release(self, hold: Hold) -> None:
        try:
            await self._app.holds.cancel(hold.detail)
        except (HoldGone, WrongMove):
            self.tools.note(hold.client, "releases a hold that has ended")

    def stop_inside(self, stop: Callable[[], None]) -> bool:
        def fault_points(name: str) -> AbstractContextManager[object, None]:
            if name == BETWEEN:
                stop()
            return nullcontext()

        fault_injection.fault_points = fault_points
        return True
