"""Webhooks in the ledger: stored once, settled by looking, tried again, dead, replayed."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.bookings import BookingState
from holdfast.claim import Settlement
from holdfast.config import Config
from holdfast.payments.errors import NoSuchWebhook
from holdfast.payments.gateway import BadWebhook
from holdfast.payments.jobs import WebhookJobs
from holdfast.payments.payment import Payment
from holdfast.payments.saga import PaymentStep
from holdfast.payments.webhooks import ReceivedWebhook, WebhookQuery, WebhookVerdict
from tests.conftest import GATEWAY_SECRET, started
from tests.support.gateway_webhooks import SignedWebhook, a_webhook, charged
from tests.support.ledger_payments import NO, confirmed, paying, step_of, waiting
from tests.support.opened import asgi_app, open_app
from tests.support.own_engines import Stage, hold
from tests.support.show_fixture import an_owner
from tests.support.wait import until

Show = Callable[..., Awaitable[int]]


@pytest.fixture
async def cut_off(config: Config) -> AsyncIterator[App]:
    """A box office whose gateway cannot be reached."""
    async with open_app(replace(config, gateway_url="http://127.0.0.1:9")) as opened:
        yield opened


async def deliver(app: App, webhook: SignedWebhook) -> WebhookVerdict:
    return await app.webhooks_in.receive(webhook.raw, webhook.raw_headers)


async def row_of(app: App, webhook: SignedWebhook) -> Any:
    return await app.postgres.fetchrow("SELECT * FROM gateway_webhook WHERE event_id = $1", webhook.event_id)


async def turn_clock(app: App, webhook: SignedWebhook) -> None:
    """It is due now."""
    sql = "UPDATE gateway_webhook SET due_at = now() WHERE event_id = $1 AND due_at IS NOT NULL"
    await app.postgres.execute(sql, webhook.event_id)


async def work(app: App, webhook: SignedWebhook) -> Any:
    """The job, once, when it is due; the row afterwards."""
    await turn_clock(app, webhook)
    await WebhookJobs(app.webhooks_in).look()
    return await row_of(app, webhook)


async def test_one_about_a_payment_that_is_settled_is_done_at_once(either_app: App, a_show: Show) -> None:
    payment = await confirmed(either_app, await paying(either_app, await a_show(), 1))
    webhook = a_webhook(payment)

    verdict = await deliver(either_app, webhook)

    row = await row_of(either_app, webhook)
    assert verdict is WebhookVerdict.DONE
    assert (row["tries"], row["copies"], row["due_at"], row["done_at"] is not None) == (0, 1, None, True)
    assert bytes(row["body"]) == webhook.raw


async def test_one_that_overtakes_us_is_found_by_our_key_and_confirms(either_app: App, a_show: Show) -> None:
    payment = await waiting(either_app, await a_show(), 1, 2)
    charge = await charged(either_app, payment)
    webhook = a_webhook(payment, str(charge.reference))

    verdict = await deliver(either_app, webhook)

    booking = await either_app.bookings.booking(payment.show_id, payment.number)
    assert verdict is WebhookVerdict.LOOK
    assert (await step_of(either_app, payment), booking and booking.state) == (
        PaymentStep.PAID,
        BookingState.CONFIRMED,
    )
    assert (await row_of(either_app, webhook))["done_at"] is not None


async def test_a_running_charge_gets_the_webhook_and_no_lookup_follows(app: App, a_show: Show) -> None:
    payment = await paying(app, await a_show(), 1)
    webhook = a_webhook(payment)

    verdict = await deliver(app, webhook)
    before = await row_of(app, webhook)
    await confirmed(app, payment)
    after = await work(app, webhook)

    assert (verdict, before["done_at"], before["tries"]) == (WebhookVerdict.WAIT, None, 0)
    assert (after["done_at"] is not None, after["tries"]) == (True, 0)


async def test_a_charge_of_a_dead_process_is_continued(app: App, a_show: Show) -> None:
    payment = await paying(app, await a_show(), 1)
    charge = await charged(app, payment)
    webhook = a_webhook(payment, str(charge.reference))

    assert await deliver(app, webhook) is WebhookVerdict.WAIT
    row = await work(app, webhook)

    assert await step_of(app, payment) is PaymentStep.PAID
    assert (row["done_at"] is not None, row["tries"]) == (True, 1)


async def test_a_hundred_copies_at_once_are_one(either_app: App, a_show: Show) -> None:
    payment = await waiting(either_app, await a_show(), 1, 2)
    webhook = a_webhook(payment, str((await charged(either_app, payment)).reference))

    await asyncio.gather(*(deliver(either_app, webhook) for _ in range(100)))

    postgres, show_id = either_app.postgres, payment.show_id
    row = await row_of(either_app, webhook)
    assert (row["copies"], row["done_at"] is not None) == (100, True)
    assert await postgres.fetchval("SELECT count(*) FROM ticket WHERE show_id = $1", show_id) == 2
    kinds = await postgres.fetch("SELECT kind FROM outbox WHERE show_id = $1 ORDER BY id", show_id)
    assert [fact["kind"] for fact in kinds].count("booking.confirmed") == 1


async def test_verdicts_are_returned_in_order_for_any_batch(app: App, a_show: Show) -> None:
    show_id = await a_show()
    settled = await confirmed(app, await paying(app, show_id, 1))
    open_one = await waiting(app, show_id, 2)
    webhooks = [
        a_webhook(settled),
        a_webhook(open_one, amount_minor=1),
        a_webhook(open_one, currency="USD"),
        a_webhook(open_one, "pay_2"),
        a_webhook(settled, reference="of another shop"),
        a_webhook(settled, "pay_other"),
    ]
    read = [
        ReceivedWebhook(app.webhooks_in.gateway.parse_webhook(one.raw, one.raw_headers, time.time()), one.raw)
        for one in webhooks
    ]

    stored = await app.webhooks_in.store_many([*read, read[0]])

    assert [one.verdict for one in stored] == [
        "done",
        "amount",
        "currency",
        "look",
        "foreign",
        "look",
        "done",
    ]
    assert [one.is_first for one in stored] == [True, False, False, True, False, True, False]


@pytest.mark.parametrize("change", [{"amount_minor": 2999}, {"currency": "USD"}])
async def test_another_sum_is_refused_and_nothing_is_stored(
    app: App, a_show: Show, change: dict[str, Any]
) -> None:
    payment = await waiting(app, await a_show(), 1, 2)
    webhook = a_webhook(payment, **change)

    with pytest.raises(BadWebhook):
        await deliver(app, webhook)

    assert await row_of(app, webhook) is None
    assert await step_of(app, payment) is PaymentStep.LOOK_UP


async def test_a_webhook_about_an_unknown_payment_is_accepted_and_not_stored(app: App, a_show: Show) -> None:
    payment = await paying(app, await a_show(), 1)
    webhook = a_webhook(payment, reference="order 7 of another shop")

    assert await deliver(app, webhook) is WebhookVerdict.FOREIGN
    assert await row_of(app, webhook) is None


async def test_a_different_key_of_the_same_booking_matches_no_payment(app: App, a_show: Show) -> None:
    """As of another box office whose bookings have the same numbers."""
    payment = await waiting(app, await a_show(), 1)
    booking, _, attempt = payment.key.split("_")
    webhook = a_webhook(payment, reference=f"{booking}_other_{attempt}")

    assert await deliver(app, webhook) is WebhookVerdict.FOREIGN
    assert await row_of(app, webhook) is None


async def test_one_without_our_key_is_found_by_the_gateways(app: App, a_show: Show) -> None:
    payment = await paying(app, await a_show(), 1)
    charge = await charged(app, payment)
    assert await app.payments.advance(payment, PaymentStep.LOOK_UP, charge, 60_000)
    notice = replace(
        app.webhooks_in.gateway.parse_webhook(*_parts(a_webhook(payment)), time.time()), key=None
    )

    (stored,) = await app.webhooks_in.store_many(
        [ReceivedWebhook(replace(notice, reference=charge.reference), b"{}")]
    )
    (stranger,) = await app.webhooks_in.store_many(
        [ReceivedWebhook(replace(notice, reference="pay_unknown"), b"{}")]
    )

    assert stored.payment_key == (payment.show_id, payment.number, payment.attempt)
    assert stranger.verdict is WebhookVerdict.FOREIGN


def _parts(webhook: SignedWebhook) -> tuple[bytes, dict[bytes, bytes]]:
    return webhook.raw, webhook.raw_headers


class TestAfterTheEnd:
    """Money for a payment that had come to nothing: the end is the one the gateway has (cell 13)."""

    async def test_taken_after_it_was_declined_confirms_if_the_seats_are_held(
        self, app: App, a_show: Show
    ) -> None:
        payment = await paying(app, await a_show(), 1)
        await app.payments.give_back(payment, NO, PaymentStep.DECLINED)
        webhook = a_webhook(payment, str((await charged(app, payment)).reference))

        await deliver(app, webhook)

        assert await step_of(app, payment) is PaymentStep.PAID
        assert (await row_of(app, webhook))["done_at"] is not None

    async def test_money_taken_after_the_seats_were_sold_is_refunded(self, app: App, a_show: Show) -> None:
        show_id = await a_show()
        payment = await paying(app, show_id, 1)
        await app.payments.release(payment, is_sure=True)
        await app.holds.update_map(show_id, Settlement("release", payment.claim))
        await hold(app, show_id, an_owner(), 1)
        webhook = a_webhook(payment, str((await charged(app, payment)).reference))

        await deliver(app, webhook)

        assert await step_of(app, payment) is PaymentStep.RETURNED

    async def test_one_that_was_declined_there_too_changes_nothing(self, app: App, a_show: Show) -> None:
        payment = await paying(app, await a_show(), 1)
        charge = await charged(app, payment, "tok_declined")
        await app.payments.give_back(payment, charge, PaymentStep.DECLINED)
        webhook = a_webhook(payment, str(charge.reference), "payment.declined")

        await deliver(app, webhook)

        assert await step_of(app, payment) is PaymentStep.DECLINED
        assert (await row_of(app, webhook))["done_at"] is not None

    async def test_a_second_payment_with_the_same_key_is_for_a_person(self, app: App, a_show: Show) -> None:
        payment = await confirmed(app, await paying(app, await a_show(), 1))
        webhook = a_webhook(payment, "pay_other")

        await deliver(app, webhook)

        assert "another payment" in (await row_of(app, webhook))["reason"]


class TestTriedAgain:
    async def ended(self, app: App, a_show: Show) -> Payment:
        """Declined here; whether money was taken only the gateway knows."""
        payment = await paying(app, await a_show(), 1)
        return await app.payments.give_back(payment, NO, PaymentStep.DECLINED)

    async def test_after_one_five_and_thirty_minutes_and_then_it_is_dead(
        self, app: App, cut_off: App, a_show: Show
    ) -> None:
        webhook = a_webhook(await self.ended(app, a_show))
        sql = "SELECT extract(epoch FROM due_at - now())::int FROM gateway_webhook WHERE event_id = $1"
        pauses = []

        await deliver(cut_off, webhook)
        for _ in range(3):
            pauses.append(await app.postgres.fetchval(sql, webhook.event_id))
            row = await work(cut_off, webhook)
            assert "gateway" in row["reason"]

        assert [round(pause / 60) for pause in pauses] == [1, 5, 30]
        assert (row["dead"], row["due_at"], row["done_at"], row["tries"]) == (True, None, None, 4)
        assert await WebhookJobs(cut_off.webhooks_in).look() == 0

    async def test_a_gateway_that_is_back_settles_it(self, app: App, cut_off: App, a_show: Show) -> None:
        payment = await self.ended(app, a_show)
        webhook = a_webhook(payment, str((await charged(app, payment)).reference))

        await deliver(cut_off, webhook)
        before = await step_of(app, payment)
        row = await work(app, webhook)

        assert (before, await step_of(app, payment)) == (PaymentStep.DECLINED, PaymentStep.PAID)
        assert (row["done_at"] is not None, row["reason"]) == (True, None)

    async def test_a_dead_one_is_replayed(self, app: App, cut_off: App, a_show: Show) -> None:
        payment = await self.ended(app, a_show)
        webhook = a_webhook(payment, str((await charged(app, payment)).reference))
        await deliver(cut_off, webhook)
        for _ in range(3):
            await work(cut_off, webhook)

        assert ("sandbox", webhook.event_id) in await app.webhooks_in.list_dead()
        listed = await app.webhooks_in.list_newest(WebhookQuery(state="dead", size=200))
        page = await app.webhooks_in.replay("sandbox", webhook.event_id)
        again = await app.webhooks_in.replay("sandbox", webhook.event_id)

        assert webhook.event_id in [one.event_id for one in listed.webhooks]
        assert (page.state, again.state) == ("done", "done")
        assert await step_of(app, payment) is PaymentStep.PAID

    async def test_replaying_an_unknown_webhook_is_refused(self, app: App) -> None:
        with pytest.raises(NoSuchWebhook):
            await app.webhooks_in.replay("sandbox", "evt_unknown")

    async def test_a_copy_that_finds_it_settled_closes_it(self, app: App, cut_off: App, a_show: Show) -> None:
        payment = await self.ended(app, a_show)
        webhook = a_webhook(payment)
        await deliver(cut_off, webhook)
        await app.payments.book_late(await confirmed(app, payment), may_book=True)

        await deliver(app, webhook)

        row = await row_of(app, webhook)
        assert (row["copies"], row["due_at"], row["done_at"] is not None) == (2, None, True)


async def test_old_finished_webhooks_are_purged_and_unfinished_ones_stay(app: App, a_show: Show) -> None:
    show_id = await a_show()
    done = a_webhook(await confirmed(app, await paying(app, show_id, 1)))
    due = a_webhook(await paying(app, show_id, 2))
    for webhook in (done, due):
        await deliver(app, webhook)
        sql = "UPDATE gateway_webhook SET received_at = now() - interval '91 days' WHERE event_id = $1"
        await app.postgres.execute(sql, webhook.event_id)

    await WebhookJobs(app.webhooks_in).forget()

    assert await row_of(app, done) is None
    assert await row_of(app, due) is not None


class TestRefunds:
    async def test_an_unanswered_refund_is_looked_up_when_a_webhook_arrives(
        self, app: App, a_show: Show
    ) -> None:
        payment = await paying(app, await a_show(), 1)
        charge = await charged(app, payment)
        await app.payments.release(payment, is_sure=True)
        late = await confirmed(app, payment, charge)
        await app.payments.book_late(late, may_book=False)
        webhook = a_webhook(payment, str(charge.reference), "refund.succeeded")

        await deliver(app, webhook)

        sql = "SELECT state::text FROM refund WHERE show_id = $1"
        assert await app.postgres.fetchval(sql, payment.show_id) == "done"
        assert (await row_of(app, webhook))["done_at"] is not None

    async def test_a_refund_made_at_the_gateway_is_recorded(self, app: App, a_show: Show) -> None:
        payment = await paying(app, await a_show(), 1)
        charge = await charged(app, payment)
        await confirmed(app, payment, charge)
        gateway, reference = app.saga_runner.gateway, str(charge.reference)
        await gateway.refund(key=f"{payment.key}_x", reference=reference, amount_minor=700, currency="EUR")

        await deliver(app, a_webhook(payment, reference, "refund.succeeded"))

        found = [one for one in (await app.reconciliation.latest()).differences if one.key == payment.key]
        assert [(one.kind, one.theirs) for one in found] == [("refunded", "taken 15.00 EUR, 7.00 EUR back")]


async def test_while_postgres_is_down_the_gateway_gets_an_error_and_retries(stage: Stage) -> None:
    """Cell 15: never 2xx before the commit."""
    till = await stage.till()
    config = replace(stage.app.config, gateway_secret=GATEWAY_SECRET)
    application = asgi_app(config)
    payment = await confirmed(stage.app, await paying(stage.app, till.show, 1))
    webhook = a_webhook(payment)

    async with started(application):
        transport = httpx2.ASGITransport(application)
        async with httpx2.AsyncClient(transport=transport, base_url="http://box.office") as client:
            await stage.engines.postgres.hold()
            refused = await client.post("/webhooks/sandbox", content=webhook.raw, headers=webhook.headers)
            await stage.engines.postgres.release()

            async def is_taken() -> bool:
                again = await client.post("/webhooks/sandbox", content=webhook.raw, headers=webhook.headers)
                return again.status_code == 200

            await until(is_taken, within_s=15)

    assert refused.status_code == 503
    assert "retry-after" in refused.headers
    assert (await row_of(stage.app, webhook))["done_at"] is not None
