"""The gateway's answers pass a proxy that changes the captured amount: nothing is ever confirmed for it.

Every order of up to six of the steps that can happen to a booking is covered: to pay, to look again, to
cancel, the deadline, a webhook, the payer on the gateway's page. Orders that reach the same state of booking,
payments and gateway continue in the same way, so each state is continued once, with every step.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pytest

from holdfast.app import App
from holdfast.bookings import Booking
from holdfast.config import Config
from holdfast.payments.gateway import BadWebhook
from holdfast.payments.payment import Payment
from tests.support.gateway_state import Bank, bank_of
from tests.support.gateway_webhooks import a_webhook
from tests.support.ledger_payments import request_for
from tests.support.opened import open_app
from tests.support.own_engines import hold
from tests.support.show_fixture import an_owner
from tests.support.shows import a_layout, a_show
from tests.support.tampering_proxy import (
    Tamper,
    a_tampering_proxy,
    another_amount,
    another_currency,
    no_amount,
)

STEPS_MAX = 6
ACTIONS = ("pay", "look", "call_off", "deadline", "webhook", "payer")
MONEY = "SELECT count(*) FROM journal WHERE show_id = $1 AND number = $2"
STATE = """
SELECT booking.state::text AS booking, booking.expires_at > now() AS is_held_on,
       (SELECT array_agg(row(step, reference IS NOT NULL, deadline_at > now(),
                             deadline_at > now() - interval '10 min')::text ORDER BY attempt)
          FROM payment WHERE show_id = $1 AND number = $2)::text AS payments
  FROM booking WHERE show_id = $1 AND number = $2
"""
PASS_DEADLINE = """
UPDATE payment SET deadline_at = CASE WHEN deadline_at > now() THEN now() - interval '1 s'
                                      ELSE now() - interval '1 h' END
 WHERE show_id = $1 AND number = $2 AND attempt = $3
"""


@dataclass
class Tampered:
    """An office behind the proxy, and the gateway as it really is."""

    app: App
    bank: Bank
    show: int
    seats: Any

    async def run(self, actions: tuple[str, ...], method: str) -> tuple[str, ...]:
        """The state that these steps lead to; fails if one of them confirms the booking."""
        booking = await hold(self.app, self.show, an_owner(), next(self.seats))
        for action in actions:
            await self.act(action, booking, method)
        return await self.checked_state(booking, actions)

    async def act(self, action: str, booking: Booking, method: str) -> None:
        app, saga = self.app, self.app.saga_runner
        if action == "pay":
            await saga.pay(request_for(booking, method=method, salt="t"))
            return
        payment = await app.payments.latest(booking.show_id, booking.number)
        match action:
            case "look" if payment:
                await saga.refresh_from_gateway(payment)
            case "call_off" if payment:
                await saga.call_off(payment)
            case "deadline" if payment:
                await app.postgres.execute(PASS_DEADLINE, booking.show_id, booking.number, payment.attempt)
                if (taken := await app.payments.take_turn(payment)) is not None:
                    await saga.carry_on(taken)
            case "webhook" if payment:
                await self.send_webhook(payment)
            case "payer" if payment:
                for waiting in await self.at_gateway(booking):
                    if waiting.state in ("requires_payer", "requires_action"):
                        await self.bank.decides(waiting)

    async def send_webhook(self, payment: Payment) -> None:
        webhook = a_webhook(payment, payment.reference or "pay_unknown")
        try:
            await self.app.webhooks_in.receive(webhook.raw, webhook.raw_headers)
        except BadWebhook:
            pytest.fail("a true webhook was rejected")

    async def at_gateway(self, booking: Booking) -> list[Any]:
        payments = await self.app.postgres.fetch(
            "SELECT key FROM payment WHERE show_id = $1 AND number = $2 ORDER BY attempt",
            booking.show_id,
            booking.number,
        )
        return [found for row in payments for found in await self.bank.by_key(row["key"])]

    async def checked_state(self, booking: Booking, actions: tuple[str, ...]) -> tuple[str, ...]:
        key = (booking.show_id, booking.number)
        row = await self.app.postgres.fetchrow(STATE, *key)
        assert row is not None
        assert row["booking"] != "confirmed", f"confirmed with another amount by {actions}"
        assert await self.app.postgres.fetchval(MONEY, *key) == 0, f"money in the journal by {actions}"
        theirs = [payment.state for payment in await self.at_gateway(booking)]
        return (row["booking"], str(row["is_held_on"]), str(row["payments"]), *theirs)


@asynccontextmanager
async def an_office(config: Config, tamper: Tamper) -> AsyncIterator[Tampered]:
    async with AsyncExitStack() as opened:
        proxy = await opened.enter_async_context(a_tampering_proxy(config.gateway_url, tamper))
        app = await opened.enter_async_context(open_app(replace(config, gateway_url=proxy)))
        bank = await opened.enter_async_context(bank_of(config))
        show = await a_show(app, layout=a_layout(1000, row=100))
        yield Tampered(app, bank, show, count(1))


@pytest.mark.parametrize(
    "tamper, method",
    [(another_amount, ""), (another_amount, "tok_ok"), (another_currency, "tok_ok"), (no_amount, "tok_ok")],
    ids=["amount on the page", "amount", "currency", "no amount"],
)
async def test_no_order_of_steps_confirms_another_amount(config: Config, tamper: Tamper, method: str) -> None:
    async with an_office(config, tamper) as office:
        known = await walk(office, method)

    assert {state[0] for state in known} == {"held", "paying", "expired"}  # every end but a confirmed one
    assert any("captured" in state for state in known)


async def walk(office: Tampered, method: str) -> set[tuple[str, ...]]:
    """Every state that up to STEPS_MAX steps lead to."""
    known: set[tuple[str, ...]] = set()
    frontier: list[tuple[str, ...]] = [()]
    for _ in range(STEPS_MAX):
        paths = [(*path, action) for path in frontier for action in ACTIONS]
        states = await asyncio.gather(*(office.run(path, method) for path in paths))
        fresh = dict(zip(reversed(states), reversed(paths), strict=True))
        frontier = [path for state, path in fresh.items() if state not in known]
        known |= fresh.keys()
    return known
