"""From a hold to a ticket without scripts: the booking page shows the real state at every step."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from holdfast.app import App
from holdfast.background import jobs_by_subject
from holdfast.claim import Settlement
from holdfast.config import Config
from holdfast.pricing import Terms
from tests.support.browser_session import ANN, Visitor, a_site, a_visitor, booking_key
from tests.support.cuttable_link import a_line
from tests.support.wait import until

FEES = Terms(fee_minor=150, tax_bp=700)

# The clock is turned by changing ends in the ledger.
HOLD_ENDS = "UPDATE booking SET expires_at = now() - interval '1 s' WHERE show_id = $1 AND number = $2"
PAYMENT_ENDS = """
    UPDATE payment
       SET deadline_at = now() - interval '1 s', hold_ends_at = now() - interval '2 s', due_at = now()
     WHERE show_id = $1 AND number = $2"""
WATCHED = """
    UPDATE payment SET step = 'watch', due_at = now() + interval '1 h' WHERE show_id = $1 AND number = $2"""
CHARGES = "SELECT count(*) FROM payment WHERE show_id = $1 AND number = $2"


async def time_passes(app: App, path: str) -> None:
    """In the ledger, and on the map."""
    await app.postgres.execute(HOLD_ENDS, *booking_key(path))
    await app.postgres.execute(PAYMENT_ENDS, *booking_key(path))
    booking = await app.bookings.booking(*booking_key(path))
    assert booking is not None
    await app.holds.update_map(booking.show_id, Settlement("release", booking.claim))


async def jobs_run(app: App, subject: str) -> None:
    for _, job in jobs_by_subject(app)[subject]:
        await job()


async def test_a_guest_pays_on_the_gateways_page_and_is_back_with_tickets(
    ann: Visitor, a_show: Callable[..., Any]
) -> None:
    path = await ann.holds(await a_show(seats=10, price_minor=1500, sold_on=FEES), "A-1", "A-2")
    assert ann.status == 200
    assert ann.says("Row A, seat 1")
    assert ann.says("Row A, seat 2")
    assert ann.says("Service fee")
    assert ann.says("€3")
    assert ann.says("Tax")
    assert ann.says("Pay €30")
    assert ann.says("Reserved until")

    await ann.pays(**ANN)

    assert ann.at == path
    assert ann.says("Your 2 tickets")
    assert ann.text.count('class="qr"') == 2
    assert "data:image/svg+xml;base64," in ann.text
    assert ann.says("ann@example.org")


async def test_the_buyers_details_are_required_and_typed_values_stay_in_the_form(
    ann: Visitor, a_show: Callable[..., Any]
) -> None:
    path = await ann.holds(await a_show(seats=10), "A-1")

    await ann.sends("/pay", name="Ann Otter", email="ann at example")

    assert ann.status == 422
    assert ann.says('aria-invalid="true"')
    assert ann.says("Please enter a valid email address")
    assert 'value="Ann Otter"' in ann.text
    assert 'value="ann at example"' in ann.text
    assert (await ann.goes(path)).says("Reserved until"), "nothing was begun"

    await ann.sends("/pay", name="", email="")
    assert ann.text.count('aria-invalid="true"') == 2


async def test_a_declined_payment_leaves_the_seats_held_and_the_next_one_is_good(
    ann: Visitor, a_show: Callable[..., Any]
) -> None:
    path = await ann.holds(await a_show(seats=10), "A-1")

    await ann.pays("decline", **ANN)
    assert ann.at == path
    assert ann.says("Payment declined.")
    assert ann.says("your seats are still reserved")
    assert 'value="ann@example.org"' in ann.text, "the buyer need not type it again"

    await ann.pays()
    assert ann.says("Your ticket")


async def test_a_card_at_its_limit_is_refunded_and_another_card_is_good(
    ann: Visitor, eve: Visitor, a_show: Callable[..., Any]
) -> None:
    show = await a_show(seats=10, sold_on=Terms(card_seats_max=1))
    await ann.holds(show, "A-1")
    await ann.pays(**ANN)
    path = await eve.holds(show, "A-5")

    await eve.pays(**ANN)

    assert ann.says("Your ticket")
    assert eve.at == path
    assert eve.says("This card has reached the limit of tickets per card")
    assert eve.says("Your money is on its way back")
    assert eve.says("Your seats are still reserved")
    assert not eve.says("You haven't been charged")


async def test_a_payment_that_the_bank_processes_needs_no_second_try(
    ann: Visitor, a_show: Callable[..., Any]
) -> None:
    path = await ann.holds(await a_show(seats=10), "A-1")
    await ann.sends("/pay", **ANN)
    gateway = ann.at
    await ann.goes(path)
    assert ann.says("Finish your payment")
    assert ann.says("Continue to payment")

    ann.at = gateway
    await ann.chooses("late")

    assert ann.says("Confirming your payment")
    assert not ann.says("Continue to payment"), "the payer has paid: a loud button would say otherwise"
    assert 'class="button pay"' not in ann.text


async def test_a_released_hold_that_another_tab_pays_for_is_shown_as_released_alone(
    ann: Visitor, a_show: Callable[..., Any]
) -> None:
    path = await ann.holds(await a_show(seats=10), "A-1")
    other = Visitor(ann.client)
    await other.goes(path)
    await ann.sends("/release")

    await other.sends("/pay", **ANN)

    assert other.status == 410
    assert other.says("Seats released")
    assert not other.says("expired")


async def test_two_tabs_that_pay_have_one_payment(ann: Visitor, app: App, a_show: Callable[..., Any]) -> None:
    path = await ann.holds(await a_show(seats=10), "A-1")
    other = Visitor(ann.client)
    await other.goes(path)

    await ann.sends("/pay", **ANN)
    await other.sends("/pay", **ANN)
    assert ann.at == other.at, "the second tab is led to the same page of the gateway"
    await ann.chooses("pay")
    assert ann.says("Your ticket")

    assert await app.postgres.fetchval(CHARGES, *booking_key(path)) == 1
    assert (await other.goes(path)).says("Your ticket")


async def test_a_stale_tab_that_pays_a_paid_booking_sees_the_tickets(
    ann: Visitor, app: App, a_show: Callable[..., Any]
) -> None:
    path = await ann.holds(await a_show(seats=10), "A-1")
    other = Visitor(ann.client)
    await other.goes(path)
    await ann.pays(**ANN)

    await other.sends("/pay", **ANN)

    assert other.at == path
    assert other.says("Your ticket")
    assert await app.postgres.fetchval(CHARGES, *booking_key(path)) == 1


async def test_an_undecided_payer_can_resume_or_cancel_the_payment(
    ann: Visitor, a_show: Callable[..., Any]
) -> None:
    path = await ann.holds(await a_show(seats=10), "A-1")
    await ann.pays("silent", **ANN)
    assert ann.at == path
    assert ann.says("Finish your payment")
    assert '<meta http-equiv="refresh"' in ann.text, "a browser without scripts looks again by itself"

    await ann.sends("/call-off")

    assert ann.says("Payment cancelled.")
    assert ann.text.count("been charged") == 1
    await ann.pays()
    assert ann.says("Your ticket")


async def test_reloading_going_away_and_coming_back_lose_nothing(
    ann: Visitor, a_show: Callable[..., Any]
) -> None:
    path = await ann.holds(await a_show(seats=10), "A-1")
    for _ in range(3):
        await ann.goes(path)
        assert ann.says("Reserved until")
    await ann.goes("/my")
    assert ann.says("To pay")
    assert path in ann.text
    await ann.goes(path)
    assert ann.says("Reserved until")


async def test_a_hold_can_be_extended_up_to_its_limit_and_released_at_once(
    ann: Visitor, eve: Visitor, a_show: Callable[..., Any]
) -> None:
    show = await a_show(seats=10, hold_ttl_s=900)
    path = await ann.holds(show, "A-1")
    await ann.sends("/extend")
    assert ann.says("Done. You have more time.")

    await ann.sends("/release")
    assert ann.says("Seats released")
    await eve.holds(show, "A-1")  # free at once
    assert (await ann.goes(path)).says("Released")


async def test_a_hold_at_its_maximum_length_says_so(
    ann: Visitor, app: App, a_show: Callable[..., Any]
) -> None:
    path = await ann.holds(await a_show(seats=10), "A-1")
    sql = "UPDATE booking SET opened_at = now() - interval '1795 s' WHERE show_id = $1 AND number = $2"
    await app.postgres.execute(sql, *booking_key(path))
    stale = Visitor(ann.client, ann.text, ann.at)

    await ann.goes(path)
    assert ann.says("reached the maximum of")
    assert "/extend" not in ann.text

    sql = "UPDATE booking SET opened_at = now() - interval '1800 s' WHERE show_id = $1 AND number = $2"
    await app.postgres.execute(sql, *booking_key(path))
    await stale.sends("/extend")
    assert stale.status == 409
    assert stale.says("Please pay now or release the seats.")


class TestTimeIsUp:
    async def test_an_expired_hold_can_be_repeated_with_one_click(
        self, ann: Visitor, app: App, a_show: Callable[..., Any]
    ) -> None:
        path = await ann.holds(await a_show(seats=10), "A-1", "A-2")
        await time_passes(app, path)
        await jobs_run(app, "sale")
        await ann.sends("/pay", **ANN)
        assert ann.status == 410
        assert ann.says("Your reservation expired")
        assert ann.says("You haven't been charged")

        await ann.sends("/again")

        assert ann.at != path
        assert ann.says("Reserved until")
        assert ann.says("Row A, seat 2")
        assert 'value="ann@example.org"' in ann.text, "what was typed is known"
        again = ann.at
        await ann.goes(path)
        await ann.sends("/again")
        assert ann.at == again, "a second click is the same hold"

    async def test_seats_that_another_buyer_took_are_reported_with_alternatives(
        self, ann: Visitor, eve: Visitor, app: App, a_show: Callable[..., Any]
    ) -> None:
        show = await a_show(seats=10)
        path = await ann.holds(show, "A-1", "A-2")
        await time_passes(app, path)
        await jobs_run(app, "sale")
        await eve.holds(show, "A-2")
        await ann.goes(path)

        await ann.sends("/again")

        assert ann.status == 409
        assert ann.says("Seats no longer available")
        assert ann.says("These seats nearby are available")
        await ann.sends("/again", seats=["A-3", "A-4"])
        assert ann.says("Row A, seat 3")
        assert ann.says("Reserved until")

    async def test_a_late_payment_books_seats_that_are_still_free(
        self, ann: Visitor, app: App, a_show: Callable[..., Any]
    ) -> None:
        path = await ann.holds(await a_show(seats=10), "A-1")
        await ann.sends("/pay", **ANN)
        gateway = ann.at
        await time_passes(app, path)
        await self.gives_up(app, path)
        assert (await ann.goes(path)).says("still waiting to hear whether your payment went through")

        ann.at = gateway
        await ann.chooses("pay")

        assert ann.at == path
        assert ann.says("Your ticket")
        assert ann.says("Your payment arrived late, but your seats were still available. They're yours.")

    async def test_a_late_payment_for_lost_seats_is_refunded(
        self, ann: Visitor, eve: Visitor, app: App, a_show: Callable[..., Any]
    ) -> None:
        show = await a_show(seats=10)
        path = await ann.holds(show, "A-1")
        await ann.sends("/pay", **ANN)
        gateway = ann.at
        await time_passes(app, path)
        await self.gives_up(app, path)
        await eve.holds(show, "A-1")

        ann.at = gateway
        await ann.chooses("pay")

        assert ann.says("Your payment came too late")
        assert ann.says("the full €15")
        assert ann.says("Paid too late")
        assert ann.says("Refund requested")

        async def is_back() -> bool:
            await jobs_run(app, "payments")
            return (await ann.goes(path)).says("It may take a few days to appear.")

        await until(is_back)

    async def gives_up(self, app: App, path: str) -> None:
        """The gateway was silent for long: the seats have gone, and the payment is watched."""
        await app.postgres.execute(WATCHED, *booking_key(path))
        payment = await app.payments.latest(*booking_key(path))
        assert payment is not None
        await app.payments.release(payment, is_sure=False, due_ms=3_600_000)


class TestTrouble:
    async def test_while_the_gateway_is_away_the_page_waits_and_says_so(
        self, config: Config, app: App, a_show: Callable[..., Any]
    ) -> None:
        unreachable = replace(config, gateway_url="http://127.0.0.1:9", gateway_timeout_ms=500)
        async with a_site(unreachable) as site, a_visitor(site) as ann:
            path = await ann.holds(await a_show(seats=10), "A-1")
            await ann.sends("/pay", **ANN)
            assert ann.at == path
            assert ann.says("Confirming your payment")
            assert ann.says("Your seats stay reserved")

        await jobs_run(app, "payments")  # and now it is back
        async with a_site(config) as site, a_visitor(site) as back:
            back.client.cookies = ann.client.cookies
            await back.goes(f"{path}/return")
            assert back.says("Finish your payment")
            payment = await app.payments.latest(*booking_key(path))
            assert payment is not None
            back.at = payment.action_url or ""
            await back.chooses("pay")
            assert back.says("Your ticket")

    async def test_a_form_sent_during_a_database_outage_can_be_sent_again_unchanged(
        self, config: Config, app: App, a_show: Callable[..., Any]
    ) -> None:
        show = await a_show(seats=10)
        async with a_line(config) as line, a_site(line.config) as site, a_visitor(site) as ann:
            path = await ann.holds(show, "A-1")
            line.cut()
            await ann.sends("/pay", **ANN)
            assert ann.status == 503
            assert ann.headers["retry-after"]
            assert 'value="Ann Otter"' in ann.text
            assert f'action="{path}/pay"' in ann.text
            assert (await ann.client.get(path)).headers["retry-after"], "the page itself says so too"

            line.mend()

            async def is_sent() -> bool:
                await ann.sends("/pay")
                return ann.status == 303

            await until(is_sent)
            await ann.chooses("pay")
            assert ann.says("Your ticket")
            assert await app.postgres.fetchval(CHARGES, *booking_key(path)) == 1


async def test_a_script_that_posts_a_form_gets_the_next_address_or_the_problem(
    ann: Visitor, a_show: Callable[..., Any]
) -> None:
    path = await ann.holds(await a_show(seats=10), "A-1")
    script = {"accept": "application/json"}
    page = (await ann.client.get(path, headers=script)).json()
    assert page["display_state"] == "held"
    assert 0 < page["left_ms"] <= 600_000

    wrong = await ann.client.post(f"{path}/pay", data={"name": "Ann", "email": "?"}, headers=script)
    assert (wrong.status_code, wrong.json()["field"]) == (422, "email")
    gone = await ann.client.post(f"{path}/release", headers=script)
    assert gone.json() == {"go": path}
    again = (await ann.client.get(path, headers=script)).json()
    assert again["view_version"] != page["view_version"]
