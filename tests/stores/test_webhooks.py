"""Webhooks in the ledger: stored once, settled by looking, tried again, dead, replayed."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from holdfast.app import App, asgi_app, open_app
from holdfast.bookings import BookingState
from holdfast.claim import Settlement
from holdfast.config import Config
from holdfast.payments.errors import NoSuchWebhook
from holdfast.payments.gateway import Answer, BadNotice, Charge
from holdfast.payments.jobs import WebhookJobs
from holdfast.payments.payment import Payment
from holdfast.payments.saga import Step
from holdfast.payments.webhook import Told, Verdict, WebhooksAsked
from tests.conftest import GATEWAY_SECRET, started
from tests.stores.test_payment_book import NO, confirmed, paying
from tests.support.gateway_webhooks import Letter, a_letter, charged
from tests.support.own_engines import Stage, hold
from tests.support.show_fixture import an_owner
from tests.support.wait import until

Show = Callable[..., Awaitable[int]]


@pytest.fixture
async def cut_off(config: Config) -> AsyncIterator[App]:
    """A box office whose gateway cannot be reached."""
    async with open_app(replace(config, gateway_url="http://127.0.0.1:9")) as opened:
        yield opened


async def told(app: App, letter: Letter) -> Verdict:
    return await app.webhooks_in.take_in(letter.raw, letter.raw_headers)


async def row_of(app: App, letter: Letter) -> Any:
    return await app.postgres.fetchrow("SELECT * FROM gateway_webhook WHERE event_id = $1", letter.event_id)


async def step_of(app: App, payment: Payment) -> Step:
    found = await app.payments.payment(payment.show_id, payment.number, payment.attempt)
    assert found is not None
    return found.step


async def waiting(app: App, show_id: int, *seats: int) -> Payment:
    """A payment nobody is charging at this moment: its payer has to do something."""
    payment = await paying(app, show_id, *seats)
    assert await app.payments.advance(payment, Step.LOOK_UP, Charge(answer=Answer.UNKNOWN), 60_000)
    return payment


async def turn_clock(app: App, letter: Letter) -> None:
    """It is due now."""
    sql = "UPDATE gateway_webhook SET due_at = now() WHERE event_id = $1 AND due_at IS NOT NULL"
    await app.postgres.execute(sql, letter.event_id)


async def work(app: App, letter: Letter) -> Any:
    """The job, once, when it is due; the row afterwards."""
    await turn_clock(app, letter)
    await WebhookJobs(app.webhooks_in).look()
    return await row_of(app, letter)


async def test_one_about_a_payment_that_is_settled_is_done_at_once(either_app: App, a_show: Show) -> None:
    payment = await confirmed(either_app, await paying(either_app, await a_show(), 1))
    letter = a_letter(payment)

    verdict = await told(either_app, letter)

    row = await row_of(either_app, letter)
    assert verdict is Verdict.DONE
    assert (row["tries"], row["copies"], row["due_at"], row["done_at"] is not None) == (0, 1, None, True)
    assert bytes(row["body"]) == letter.raw


async def test_one_that_overtakes_us_is_found_by_our_key_and_confirms(either_app: App, a_show: Show) -> None:
    payment = await waiting(either_app, await a_show(), 1, 2)
    charge = await charged(either_app, payment)
    letter = a_letter(payment, str(charge.reference))

    verdict = await told(either_app, letter)

    booking = await either_app.bookings.booking(payment.show_id, payment.number)
    assert verdict is Verdict.LOOK
    assert (await step_of(either_app, payment), booking and booking.state) == (
        Step.PAID,
        BookingState.CONFIRMED,
    )
    assert (await row_of(either_app, letter))["done_at"] is not None


async def test_whoever_is_charging_hears_first_and_then_nobody_has_to_look(app: App, a_show: Show) -> None:
    payment = await paying(app, await a_show(), 1)
    letter = a_letter(payment)

    verdict = await told(app, letter)
    before = await row_of(app, letter)
    await confirmed(app, payment)
    after = await work(app, letter)

    assert (verdict, before["done_at"], before["tries"]) == (Verdict.WAIT, None, 0)
    assert (after["done_at"] is not None, after["tries"]) == (True, 0)


async def test_what_a_dead_process_was_charging_is_carried_on(app: App, a_show: Show) -> None:
    payment = await paying(app, await a_show(), 1)
    charge = await charged(app, payment)
    letter = a_letter(payment, str(charge.reference))

    assert await told(app, letter) is Verdict.WAIT
    row = await work(app, letter)

    assert await step_of(app, payment) is Step.PAID
    assert (row["done_at"] is not None, row["tries"]) == (True, 1)


async def test_a_hundred_copies_at_once_are_one(either_app: App, a_show: Show) -> None:
    payment = await waiting(either_app, await a_show(), 1, 2)
    letter = a_letter(payment, str((await charged(either_app, payment)).reference))

    await asyncio.gather(*(told(either_app, letter) for _ in range(100)))

    postgres, show_id = either_app.postgres, payment.show_id
    row = await row_of(either_app, letter)
    assert (row["copies"], row["done_at"] is not None) == (100, True)
    assert await postgres.fetchval("SELECT count(*) FROM ticket WHERE show_id = $1", show_id) == 2
    kinds = await postgres.fetch("SELECT kind FROM outbox WHERE show_id = $1 ORDER BY id", show_id)
    assert [fact["kind"] for fact in kinds].count("booking.confirmed") == 1


async def test_verdicts_come_in_order_whatever_travels_together(app: App, a_show: Show) -> None:
    show_id = await a_show()
    settled = await confirmed(app, await paying(app, show_id, 1))
    open_one = await waiting(app, show_id, 2)
    letters = [
        a_letter(settled),
        a_letter(open_one, amount_minor=1),
        a_letter(open_one, currency="USD"),
        a_letter(open_one, "pay_2"),
        a_letter(settled, reference="somebody else's"),
        a_letter(settled, "pay_other"),
    ]
    read = [
        Told(app.webhooks_in.gateway.notice(one.raw, one.raw_headers, time.time()), one.raw)
        for one in letters
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
    letter = a_letter(payment, **change)

    with pytest.raises(BadNotice):
        await told(app, letter)

    assert await row_of(app, letter) is None
    assert await step_of(app, payment) is Step.LOOK_UP


async def test_one_about_nothing_of_ours_is_taken_and_not_kept(app: App, a_show: Show) -> None:
    payment = await paying(app, await a_show(), 1)
    letter = a_letter(payment, reference="order 7 of another shop")

    assert await told(app, letter) is Verdict.FOREIGN
    assert await row_of(app, letter) is None


async def test_a_key_that_names_the_booking_and_is_not_the_one_is_nobodys(app: App, a_show: Show) -> None:
    """As of another box office whose bookings have the same numbers."""
    payment = await waiting(app, await a_show(), 1)
    booking, _, attempt = payment.key.split("_")
    letter = a_letter(payment, reference=f"{booking}_other_{attempt}")

    assert await told(app, letter) is Verdict.FOREIGN
    assert await row_of(app, letter) is None


async def test_one_without_our_key_is_found_by_the_gateways(app: App, a_show: Show) -> None:
    payment = await paying(app, await a_show(), 1)
    charge = await charged(app, payment)
    assert await app.payments.advance(payment, Step.LOOK_UP, charge, 60_000)
    notice = replace(app.webhooks_in.gateway.notice(*_parts(a_letter(payment)), time.time()), key=None)

    (stored,) = await app.webhooks_in.store_many([Told(replace(notice, reference=charge.reference), b"{}")])
    (stranger,) = await app.webhooks_in.store_many([Told(replace(notice, reference="pay_nobody"), b"{}")])

    assert stored.place == (payment.show_id, payment.number, payment.attempt)
    assert stranger.verdict is Verdict.FOREIGN


def _parts(letter: Letter) -> tuple[bytes, dict[bytes, bytes]]:
    return letter.raw, letter.raw_headers


class TestAfterTheEnd:
    """Money for a payment that had come to nothing: the end is the one the gateway has (cell 13)."""

    async def test_taken_after_it_was_declined_confirms_if_the_seats_are_held(
        self, app: App, a_show: Show
    ) -> None:
        payment = await paying(app, await a_show(), 1)
        await app.payments.give_back(payment, NO, Step.DECLINED)
        letter = a_letter(payment, str((await charged(app, payment)).reference))

        await told(app, letter)

        assert await step_of(app, payment) is Step.PAID
        assert (await row_of(app, letter))["done_at"] is not None

    async def test_taken_after_the_seats_were_sold_goes_back(self, app: App, a_show: Show) -> None:
        show_id = await a_show()
        payment = await paying(app, show_id, 1)
        await app.payments.let_go(payment, is_sure=True)
        await app.holds.update_map(show_id, Settlement("release", payment.claim))
        await hold(app, show_id, an_owner(), 1)
        letter = a_letter(payment, str((await charged(app, payment)).reference))

        await told(app, letter)

        assert await step_of(app, payment) is Step.RETURNED

    async def test_one_that_was_declined_there_too_changes_nothing(self, app: App, a_show: Show) -> None:
        payment = await paying(app, await a_show(), 1)
        charge = await charged(app, payment, "tok_declined")
        await app.payments.give_back(payment, charge, Step.DECLINED)
        letter = a_letter(payment, str(charge.reference), "payment.declined")

        await told(app, letter)

        assert await step_of(app, payment) is Step.DECLINED
        assert (await row_of(app, letter))["done_at"] is not None

    async def test_a_second_payment_with_the_same_key_is_for_a_person(self, app: App, a_show: Show) -> None:
        payment = await confirmed(app, await paying(app, await a_show(), 1))
        letter = a_letter(payment, "pay_other")

        await told(app, letter)

        assert "another payment" in (await row_of(app, letter))["reason"]


class TestTriedAgain:
    async def ended(self, app: App, a_show: Show) -> Payment:
        """Declined here; whether money was taken only the gateway knows."""
        payment = await paying(app, await a_show(), 1)
        return await app.payments.give_back(payment, NO, Step.DECLINED)

    async def test_after_one_five_and_thirty_minutes_and_then_it_is_dead(
        self, app: App, cut_off: App, a_show: Show
    ) -> None:
        letter = a_letter(await self.ended(app, a_show))
        sql = "SELECT extract(epoch FROM due_at - now())::int FROM gateway_webhook WHERE event_id = $1"
        pauses = []

        await told(cut_off, letter)
        for _ in range(3):
            pauses.append(await app.postgres.fetchval(sql, letter.event_id))
            row = await work(cut_off, letter)
            assert "gateway" in row["reason"]

        assert [round(pause / 60) for pause in pauses] == [1, 5, 30]
        assert (row["dead"], row["due_at"], row["done_at"], row["tries"]) == (True, None, None, 4)
        assert await WebhookJobs(cut_off.webhooks_in).look() == 0

    async def test_a_gateway_that_is_back_settles_it(self, app: App, cut_off: App, a_show: Show) -> None:
        payment = await self.ended(app, a_show)
        letter = a_letter(payment, str((await charged(app, payment)).reference))

        await told(cut_off, letter)
        before = await step_of(app, payment)
        row = await work(app, letter)

        assert (before, await step_of(app, payment)) == (Step.DECLINED, Step.PAID)
        assert (row["done_at"] is not None, row["reason"]) == (True, None)

    async def test_a_dead_one_is_replayed(self, app: App, cut_off: App, a_show: Show) -> None:
        payment = await self.ended(app, a_show)
        letter = a_letter(payment, str((await charged(app, payment)).reference))
        await told(cut_off, letter)
        for _ in range(3):
            await work(cut_off, letter)

        assert ("sandbox", letter.event_id) in await app.webhooks_in.dead()
        listed = await app.webhooks_in.newest(WebhooksAsked(state="dead", size=200))
        page = await app.webhooks_in.replay("sandbox", letter.event_id)
        again = await app.webhooks_in.replay("sandbox", letter.event_id)

        assert letter.event_id in [one.event_id for one in listed.webhooks]
        assert (page.state, again.state) == ("done", "done")
        assert await step_of(app, payment) is Step.PAID

    async def test_nobody_replays_what_never_came(self, app: App) -> None:
        with pytest.raises(NoSuchWebhook):
            await app.webhooks_in.replay("sandbox", "evt_nobody")

    async def test_a_copy_that_finds_it_settled_closes_it(self, app: App, cut_off: App, a_show: Show) -> None:
        payment = await self.ended(app, a_show)
        letter = a_letter(payment)
        await told(cut_off, letter)
        await app.payments.book_late(await confirmed(app, payment), may_book=True)

        await told(app, letter)

        row = await row_of(app, letter)
        assert (row["copies"], row["due_at"], row["done_at"] is not None) == (2, None, True)


async def test_what_is_long_done_is_forgotten_and_what_is_not_done_is_kept(app: App, a_show: Show) -> None:
    show_id = await a_show()
    done = a_letter(await confirmed(app, await paying(app, show_id, 1)))
    due = a_letter(await paying(app, show_id, 2))
    for letter in (done, due):
        await told(app, letter)
        sql = "UPDATE gateway_webhook SET received_at = now() - interval '91 days' WHERE event_id = $1"
        await app.postgres.execute(sql, letter.event_id)

    await WebhookJobs(app.webhooks_in).forget()

    assert await row_of(app, done) is None
    assert await row_of(app, due) is not None


class TestRefunds:
    async def test_one_without_an_answer_is_asked_for_when_the_gateway_tells(
        self, app: App, a_show: Show
    ) -> None:
        payment = await paying(app, await a_show(), 1)
        charge = await charged(app, payment)
        await app.payments.let_go(payment, is_sure=True)
        late = await confirmed(app, payment, charge)
        await app.payments.book_late(late, may_book=False)
        letter = a_letter(payment, str(charge.reference), "refund.succeeded")

        await told(app, letter)

        sql = "SELECT state::text FROM refund WHERE show_id = $1"
        assert await app.postgres.fetchval(sql, payment.show_id) == "done"
        assert (await row_of(app, letter))["done_at"] is not None

    async def test_money_that_went_back_without_us_is_written_down(self, app: App, a_show: Show) -> None:
        payment = await paying(app, await a_show(), 1)
        charge = await charged(app, payment)
        await confirmed(app, payment, charge)
        gateway, reference = app.saga_runner.gateway, str(charge.reference)
        await gateway.refund(key=f"{payment.key}_x", reference=reference, amount_minor=700, currency="EUR")

        await told(app, a_letter(payment, reference, "refund.succeeded"))

        found = [one for one in (await app.reconciliation.latest()).differences if one.key == payment.key]
        assert [(one.kind, one.theirs) for one in found] == [("refunded", "taken 15.00 EUR, 7.00 EUR back")]


async def test_while_the_ledger_is_away_the_gateway_is_told_to_come_again(stage: Stage) -> None:
    """Cell 15: never 2xx before the commit."""
    till = await stage.till()
    config = replace(stage.app.config, gateway_secret=GATEWAY_SECRET)
    application = asgi_app(config)
    payment = await confirmed(stage.app, await paying(stage.app, till.show, 1))
    letter = a_letter(payment)

    async with started(application):
        transport = httpx2.ASGITransport(application)
        async with httpx2.AsyncClient(transport=transport, base_url="http://box.office") as client:
            await stage.engines.postgres.hold()
            refused = await client.post("/webhooks/sandbox", content=letter.raw, headers=letter.headers)
            await stage.engines.postgres.release()

            async def is_taken() -> bool:
                again = await client.post("/webhooks/sandbox", content=letter.raw, headers=letter.headers)
                return again.status_code == 200

            await until(is_taken, within_s=15)

    assert refused.status_code == 503
    assert "retry-after" in refused.headers
    assert (await row_of(stage.app, letter))["done_at"] is not None
