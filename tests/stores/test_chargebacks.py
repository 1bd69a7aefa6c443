"""After the sale: a payer disputes the payment, and a refund that was done comes back from the bank."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest

from holdfast.app import App
from holdfast.bookings import Booking, public_id
from holdfast.checkin.scan import Verdict, Way, describe_verdict
from holdfast.config import Config
from holdfast.payments.chargebacks import ChargebackQuery
from holdfast.payments.gateway import DisputeState
from holdfast.refunds.refund import Refund, RefundScope, RefundState
from tests.support.door import Doorway
from tests.support.gateway_state import Bank, bank_of
from tests.support.gateway_webhooks import a_webhook
from tests.support.opened import open_app
from tests.support.paid_bookings import a_refund, bought, refunds_of, violations
from tests.support.show_fixture import Till

Show = Callable[..., Awaitable[int]]


@pytest.fixture
async def bank(app: App) -> AsyncIterator[Bank]:
    async with bank_of(app.config) as opened:
        yield opened


async def webhook(app: App, booking: Booking, kind: str) -> None:
    payment = await app.payments.latest(booking.show_id, booking.number)
    assert payment is not None
    sent = a_webhook(payment, payment.reference or "", kind)
    await app.webhooks_in.receive(sent.raw, sent.raw_headers)


async def dispute(app: App, bank: Bank, booking: Booking, state: str) -> None:
    (taken,) = await bank.of(public_id(booking.show_id, booking.number))
    await bank.disputes(taken, state)
    await webhook(app, booking, f"dispute.{state}")


async def standings(app: App, booking: Booking) -> set[str]:
    rows = await app.postgres.fetch(
        "SELECT door_verdict(ticket, entry_policy_of(show_id), 'entry', edition, binding) AS verdict"
        "  FROM ticket WHERE show_id = $1 AND number = $2",
        booking.show_id,
        booking.number,
    )
    return {row["verdict"] for row in rows}


async def account(app: App, show_id: int, name: str) -> int:
    sql = "SELECT coalesce(sum(amount_minor), 0)::int FROM journal WHERE show_id = $1 AND account = $2"
    return int(await app.postgres.fetchval(sql, show_id, name))


class TestChargebacks:
    async def test_tickets_are_suspended_while_a_dispute_is_open_and_good_when_it_is_won(
        self, app: App, a_show: Show, bank: Bank
    ) -> None:
        show_id = await a_show()
        booking = await bought(app, show_id, 1, 2)
        paid = await account(app, show_id, "gateway:sandbox")

        await dispute(app, bank, booking, "open")
        during = (
            await standings(app, booking),
            await account(app, show_id, "gateway:sandbox"),
            await account(app, show_id, "disputed"),
        )
        found_during = await violations(app, show_id)
        await dispute(app, bank, booking, "won")

        assert during == ({"void"}, 0, paid)
        assert await standings(app, booking) == {"admitted"}
        assert await account(app, show_id, "gateway:sandbox") == paid
        assert (found_during, await violations(app, show_id)) == ([], [])

    async def test_a_lost_dispute_is_the_organisers_loss(self, app: App, a_show: Show, bank: Bank) -> None:
        show_id = await a_show()
        booking = await bought(app, show_id, 1)
        share = await account(app, show_id, "organiser")

        await dispute(app, bank, booking, "open")
        await dispute(app, bank, booking, "lost")
        await webhook(app, booking, "dispute.lost")  # a copy

        assert await standings(app, booking) == {"void"}
        assert await account(app, show_id, "organiser") == share + 1500
        assert await account(app, show_id, "disputed") == 0
        assert await violations(app, show_id) == []

    async def test_the_organiser_learns_of_it_by_fact_and_list(
        self, app: App, a_show: Show, bank: Bank
    ) -> None:
        booking = await bought(app, await a_show(), 1)
        await dispute(app, bank, booking, "open")

        body = await app.postgres.fetchval(
            "SELECT body->>'state' FROM outbox WHERE show_id = $1 AND kind = 'payment.disputed'",
            booking.show_id,
        )
        listed = await app.chargebacks.list_newest(None, ChargebackQuery(state=DisputeState.OPEN))

        assert body == "open"
        assert public_id(booking.show_id, booking.number) in {one.booking_id for one in listed.chargebacks}

    async def test_a_house_can_leave_the_tickets_alone(
        self, config: Config, a_show: Show, bank: Bank
    ) -> None:
        async with open_app(replace(config, chargebacks_suspend_tickets=False)) as lenient:
            booking = await bought(lenient, await a_show(), 1)
            await dispute(lenient, bank, booking, "open")

            assert await standings(lenient, booking) == {"admitted"}

    async def test_a_disputed_payment_is_not_refunded_as_well(
        self, app: App, a_show: Show, bank: Bank
    ) -> None:
        show_id = await a_show()
        booking = await bought(app, show_id, 1, 2)
        await dispute(app, bank, booking, "open")

        money = await app.refunds.decide(a_refund(booking, what=RefundScope.MONEY, amount_minor=100))
        seats = await app.refunds.decide(a_refund(booking))

        assert money.outcome == "much"
        assert seats.outcome == "decided"
        assert [refund.amount_minor for refund in await refunds_of(app, booking)] == [0]
        assert await violations(app, show_id) == []


class TestAtTheDoor:
    async def test_a_suspended_ticket_says_so_and_what_to_do(
        self, app: App, a_show: Show, bank: Bank
    ) -> None:
        show_id = await a_show()
        booking = await bought(app, show_id, 1)
        (ticket,) = await app.tickets.of_booking(show_id, booking.number)
        code, doorway = await app.tickets.fixed_code(ticket), Doorway(Till(app, show_id))
        north = await doorway.stand()
        await dispute(app, bank, booking, "open")

        scanned = await north.scans(code)
        offline = (await doorway.offline_gate(north)).decide(code, Way.ENTRY, time.time())

        assert (scanned.verdict, scanned.is_suspended) == (Verdict.VOID, True)
        assert (offline.verdict, offline.is_suspended) == (Verdict.VOID, True)
        words = describe_verdict(scanned.verdict, is_suspended=scanned.is_suspended)
        assert "Suspended" in words
        assert "box office" in words

    async def test_one_that_was_given_back_is_not_suspended(self, app: App, a_show: Show, bank: Bank) -> None:
        show_id = await a_show()
        booking = await bought(app, show_id, 1)
        (ticket,) = await app.tickets.of_booking(show_id, booking.number)
        await dispute(app, bank, booking, "open")
        await app.refunds.decide(a_refund(booking))
        code, doorway = await app.tickets.fixed_code(ticket), Doorway(Till(app, show_id))
        north = await doorway.stand()

        scanned = await north.scans(code)
        offline = (await doorway.offline_gate(north)).decide(code, Way.ENTRY, time.time())

        assert (scanned.verdict, scanned.is_suspended) == (Verdict.VOID, False)
        assert (offline.verdict, offline.is_suspended) == (Verdict.VOID, False)


class TestRefundsThatFailLater:
    async def failed(self, app: App, bank: Bank, booking: Booking) -> Refund:
        """Done, then returned by the payer's bank."""
        decision = await app.refunds.decide(a_refund(booking, what=RefundScope.SEATS, seats=(1,)))
        assert decision.refund is not None
        assert decision.refund.state is RefundState.DONE
        await bank.returns(decision.refund.reference or "")
        await webhook(app, booking, "refund.failed")
        (refund,) = await refunds_of(app, booking)
        return refund

    async def test_it_waits_for_a_person_and_is_owed_again(self, app: App, a_show: Show, bank: Bank) -> None:
        show_id = await a_show()
        booking = await bought(app, show_id, 1, 2)

        refund = await self.failed(app, bank, booking)
        await webhook(app, booking, "refund.failed")  # a copy

        assert (refund.state, refund.done_at) == (RefundState.BY_HAND, None)
        assert refund.reason == "The bank returned the refund."
        assert await account(app, show_id, "owed") == -1500
        assert await account(app, show_id, "gateway:sandbox") == 3000
        assert await violations(app, show_id) == []

    async def test_it_can_be_retried(self, app: App, a_show: Show, bank: Bank) -> None:
        show_id = await a_show()
        booking = await bought(app, show_id, 1, 2)
        refund = await self.failed(app, bank, booking)

        again = await app.refund_store.retry(refund)
        assert again is not None
        done = await app.refunds.carry_out(again)

        assert done.state is RefundState.DONE
        assert done.reference != refund.reference
        assert await account(app, show_id, "owed") == 0
        assert await violations(app, show_id) == []

    async def test_it_can_be_closed_by_hand(self, app: App, a_show: Show, bank: Bank) -> None:
        show_id = await a_show()
        booking = await bought(app, show_id, 1, 2)
        refund = await self.failed(app, bank, booking)

        done = await app.refund_store.settle_by_hand(refund, "paid by bank transfer")

        assert (done.state, done.settled_note) == (RefundState.DONE, "paid by bank transfer")
        assert await account(app, show_id, "by_hand") == -1500
        assert await violations(app, show_id) == []
