"""The desk without scripts: shows and figures, finding a booking, refunding tickets, cancelling (R31–R33)."""

import re

import httpx2
import pytest

from holdfast.app import App
from holdfast.bookings import BookingState, public_id
from holdfast.house import HouseBody
from tests.support.browser_session import Visitor
from tests.support.desk import DeskHouse, a_desk_house, sit_down
from tests.support.paid_bookings import bought, now_of, refunds_of
from tests.support.shows import fans
from tests.support.wait import until


@pytest.fixture
async def house(app: App, api: httpx2.AsyncClient) -> DeskHouse:
    return await a_desk_house(app, api)


@pytest.fixture
async def clerk(app: App, ann: Visitor, house: DeskHouse) -> Visitor:
    """The owner, in a browser."""
    return await sit_down(app, ann, house.organisation_id)


class TestHome:
    async def test_a_member_of_one_organisation_lands_at_its_shows(
        self, clerk: Visitor, house: DeskHouse
    ) -> None:
        await clerk.goes("/desk")

        assert clerk.at == house.path
        assert clerk.says("The Paper Boats")
        assert clerk.says("0 of 40 sold")

    async def test_a_member_of_two_chooses(
        self, app: App, api: httpx2.AsyncClient, clerk: Visitor, house: DeskHouse
    ) -> None:
        other = await a_desk_house(app, api)
        await app.organisations.add_member(other.organisation_id, house.organisation_id, ["door"])

        await clerk.goes("/desk")

        assert clerk.at == "/desk"
        assert f'href="{house.path}"' in clerk.text
        assert f'href="{other.path}"' in clerk.text

    async def test_strangers_sign_in_first_and_fans_are_sent_to_their_tickets(
        self, app: App, api: httpx2.AsyncClient, eve: Visitor, house: DeskHouse
    ) -> None:
        await eve.goes(house.path)
        assert eve.at == "/sign-in"

        (fan,) = await fans(app, api, 1)
        await (await sit_down(app, eve, fan.account_id)).goes("/desk")
        assert eve.at == "/my"


class TestBookings:
    async def test_a_booking_is_found_by_reference_mail_and_seat(
        self, app: App, clerk: Visitor, house: DeskHouse
    ) -> None:
        booking = await house.buys(app, 0, 1)
        page = f"{house.path}/bookings/{public_id(booking.show_id, booking.number)}"

        for words in (house.reference(booking), "A-1"):
            await clerk.goes(f"{house.path}/bookings?q={words}")
            assert clerk.at == page, words
        assert clerk.says("Booking confirmed")

    async def test_one_of_two_tickets_is_refunded(self, app: App, clerk: Visitor, house: DeskHouse) -> None:
        booking = await house.buys(app, 2, 3)
        page = f"{house.path}/bookings/{public_id(booking.show_id, booking.number)}"
        await clerk.goes(f"{page}/refund?seats=A-3")
        assert clerk.says("₹500")

        await clerk.sends("/refund", reason="Ill")

        assert clerk.at == page
        assert clerk.says("Refunded. The buyer has the money back.")
        assert (await now_of(app, booking)).seats == (3,)
        (refund,) = await refunds_of(app, booking)
        assert (refund.amount_minor, refund.note, refund.actor_id) == (50_000, "Ill", house.organisation_id)

    async def test_a_form_sent_twice_refunds_once(self, app: App, clerk: Visitor, house: DeskHouse) -> None:
        booking = await house.buys(app, 4, 5)
        page = f"{house.path}/bookings/{public_id(booking.show_id, booking.number)}"
        await clerk.goes(f"{page}/refund?seats=A-5")
        form = clerk.text

        await clerk.sends("/refund")
        clerk.text = form
        await clerk.sends("/refund")

        assert len(await refunds_of(app, booking)) == 1
        assert clerk.at == page

    async def test_an_amount_that_is_no_longer_right_refunds_nothing(
        self, app: App, clerk: Visitor, house: DeskHouse
    ) -> None:
        booking = await house.buys(app, 6)
        page = f"{house.path}/bookings/{public_id(booking.show_id, booking.number)}"
        await clerk.goes(f"{page}/refund?seats=A-7")

        await clerk.sends("/refund", amount="49999")

        assert clerk.status == 409
        assert (await now_of(app, booking)).state is BookingState.CONFIRMED

    async def test_a_form_of_another_site_is_refused(
        self, app: App, clerk: Visitor, house: DeskHouse
    ) -> None:
        booking = await house.buys(app, 7)
        page = f"{house.path}/bookings/{public_id(booking.show_id, booking.number)}"
        await clerk.goes(f"{page}/refund?seats=A-8")
        clerk.client.headers["sec-fetch-site"] = "cross-site"

        await clerk.sends("/refund")

        assert clerk.status == 403
        assert (await now_of(app, booking)).state is BookingState.CONFIRMED


async def test_the_figures_of_a_show_and_its_spreadsheets(app: App, clerk: Visitor, house: DeskHouse) -> None:
    await house.buys(app, 0, 1)
    await app.reports.rebuild_show(house.show_id)

    await clerk.goes(f"{house.path}/shows/{house.show_id}")

    assert clerk.says("2 of 40 sold")
    assert clerk.says("₹1,000")
    assert re.search(r'<rect class="bar"', clerk.text)
    await clerk.goes(f"{house.path}/shows/{house.show_id}/attendees.csv")
    assert clerk.text.count("\n") == 3
    await clerk.goes(f"{house.path}/events/{house.stage.event_id}")
    assert clerk.says("₹1,000")


async def test_times_are_those_of_the_venue_and_of_the_house(
    app: App, clerk: Visitor, house: DeskHouse
) -> None:
    """Not UTC, as soon as the house has a time zone."""
    show_id = await house.shows_at("2098-03-01T15:52:00Z")
    await bought(app, show_id, 0)
    await clerk.goes(f"{house.path}/events/{house.stage.event_id}")
    assert clerk.says("1 Mar 2098, 21:22")
    await clerk.goes(f"{house.path}/bookings?show={show_id}")
    assert clerk.says("1 Mar, 21:22")
    await clerk.goes(f"{house.path}/audit-log")
    assert clerk.says("(UTC)")
    await app.house.change(HouseBody(name="Lotus", currency="INR", timezone="Asia/Kolkata"))

    async def is_read_again() -> bool:
        return not (await clerk.goes(f"{house.path}/audit-log")).says("(UTC)")

    await until(is_read_again)


async def test_an_error_at_the_desk_leads_back_to_it(clerk: Visitor, house: DeskHouse) -> None:
    await clerk.goes(f"{house.path}/shows/{2**53}")
    assert clerk.status == 404
    assert '<a class="button quiet" href="/desk">' in clerk.text
