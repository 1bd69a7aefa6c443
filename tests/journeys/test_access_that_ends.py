"""Access ends in the middle of something: sign-out, a ban, an erased person, a removed member (R31, R32).

How each ends is in docs/operating/accounts.md and organisations.md.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import aiohttp
import httpx2
import pytest

from holdfast.app import App
from holdfast.bookings import Booking, BookingState, from_public_id, public_id
from holdfast.config import Config
from holdfast.payments.jobs import PaymentJobs
from holdfast.refunds.refund import RefundState
from holdfast.web.caller import Role
from tests.support import shows as cast
from tests.support.browser_session import Visitor, a_site, a_visitor
from tests.support.desk import DeskHouse, a_desk_house, sit_down
from tests.support.gates import a_device, scan
from tests.support.paid_bookings import now_of, refund_jobs, refunds_of, violations
from tests.support.show_fixture import Till
from tests.support.shows import API, Fan, problem
from tests.support.wait import until

UNREACHABLE = "http://127.0.0.1:9"
JOURNAL = "SELECT account, amount_minor, currency FROM journal WHERE show_id = $1 ORDER BY 1, 2"


@pytest.fixture
async def admin(app: App, api: httpx2.AsyncClient) -> Fan:
    return (await cast.fans(app, api, 1, Role.ADMIN))[0]


async def test_a_stolen_cookie_opens_nothing_after_sign_out(
    app: App,
    api: httpx2.AsyncClient,
    ann: Visitor,
    eve: Visitor,
    a_show: Callable[..., Any],
) -> None:
    """Neither pages nor forms, in this process and in others; it is not worth a guest's session either."""
    (owner,) = await cast.fans(app, api, 1, Role.ORGANISER)
    show_id = await a_show(10)
    mine = await (await sit_down(app, ann, owner.account_id)).holds(show_id, "A-1")
    stolen = ann.client.cookies["holdfast"]
    await (await steals(eve, stolen)).goes("/account")
    assert eve.at == "/account"
    forms = eve.text

    await ann.goes("/account")
    await ann.sends("/sign-out")

    for path in ("/account", "/account/security", "/desk", f"/desk/{owner.account_id}/team", mine):
        await (await steals(eve, stolen)).goes(path)
        assert eve.at == "/sign-in", path
    eve.text = forms
    await (await steals(eve, stolen)).sends("/account/name", name="Eve")
    assert eve.at == "/sign-in"
    assert (await app.account_admin.find(owner.account_id)).account.name != "Eve"
    assert await app.sessions.load(stolen) is None
    refused = await api.get(f"{API}/me", headers={"authorization": f"Bearer {stolen}"})
    assert refused.status_code == 401
    await (await steals(eve, stolen)).holds(show_id, "A-2")
    assert stolen not in [cookie.value for cookie in eve.client.cookies.jar if cookie.domain]


async def steals(eve: Visitor, cookie: str) -> Visitor:
    eve.client.cookies.clear()
    eve.client.cookies.set("holdfast", cookie)
    return eve


async def test_a_ban_during_a_purchase_takes_no_money_and_no_ticket(
    app: App, alice: Fan, bob: Fan, admin: Fan, a_show: Callable[..., Any]
) -> None:
    """The hold lapses, the payment under way ends as it would have, and what is paid is let in."""
    show_id = await a_show(20)
    held, paying, paid = [(await alice.holds(show_id, seat)).json() for seat in ("A-1", "A-2", "A-3")]
    assert (await alice.post(f"/bookings/{paid['booking_id']}/pay", {"method": "tok_ok"})).is_success
    begun = await alice.post(f"/bookings/{paying['booking_id']}/pay", {})
    assert begun.status_code == 202

    assert (await admin.post(f"/admin/accounts/{alice.account_id}/ban")).is_success

    for refused in (
        await alice.post(f"/bookings/{held['booking_id']}/pay", {"method": "tok_ok"}),
        await alice.post(f"/bookings/{held['booking_id']}/extend"),
        await alice.holds(show_id, "A-4"),
    ):
        assert refused.status_code == 401, refused.text
    await at_the_bank(begun.json()["action_url"])
    assert await is_in_the_end(app, paying, BookingState.CONFIRMED)
    device = await a_device(admin, show_id)
    for one in (paying, paid):
        (ticket,) = await app.tickets.of_booking(*from_public_id(one["booking_id"]))
        scanned = await scan(device, code=await app.tickets.fixed_code(ticket))
        assert scanned["verdict"] == "admitted"
    await Till(app, show_id).lapse(from_public_id(held["booking_id"])[1])
    await app.bookings.sweep(100)
    assert await is_in_the_end(app, held, BookingState.EXPIRED)
    await app.bookings.mark_map_stale(show_id)
    await app.seatmap.rebuild(show_id, "test")
    assert (await bob.holds(show_id, "A-1")).status_code == 201
    assert await violations(app, show_id) == []


async def at_the_bank(page: str) -> None:
    """The payer agrees on the gateway's page."""
    async with aiohttp.ClientSession() as session:
        async with session.post(page, data={"choice": "pay"}, allow_redirects=False) as answer:
            assert answer.status == 303


async def is_in_the_end(app: App, booking: dict[str, Any], state: BookingState) -> bool:
    show_id, number = from_public_id(booking["booking_id"])

    async def is_so() -> bool:
        await app.postgres.execute("UPDATE payment SET due_at = now() WHERE due_at > now()")
        await PaymentJobs(app.payments, app.saga_runner).carry_on()
        found = await app.bookings.booking(show_id, number)
        return found is not None and found.state is state

    await until(is_so)
    return True


async def test_an_erased_persons_tickets_are_let_in_and_the_journal_stays(
    app: App, alice: Fan, admin: Fan, a_show: Callable[..., Any]
) -> None:
    show_id = await a_show(20)
    booking = (await alice.holds(show_id, "A-1", "A-2")).json()
    path = f"/bookings/{booking['booking_id']}"
    assert (await alice.post(f"{path}/pay", {"method": "tok_ok"})).is_success
    saved, other = (await alice.get(f"{path}/tickets")).json()["tickets"]
    email = (await alice.get("/me")).json()["email"]
    journal = await app.postgres.fetch(JOURNAL, show_id)
    assert journal

    assert (await admin.post(f"/admin/accounts/{alice.account_id}/erase")).is_success

    assert await app.postgres.fetch(JOURNAL, show_id) == journal
    assert await violations(app, show_id) == []
    for refused in (
        await alice.get(f"{path}/tickets"),
        await alice.get(f"/tickets/{saved['ticket_id']}"),
        await alice.post(f"/tickets/{saved['ticket_id']}/transfer", {"email": "bob@example.org"}),
        await alice.delete(path),
    ):
        assert refused.status_code == 401, refused.text
    assert (await alice.api.get(saved["page_url"])).status_code == 200
    assert (await scan(await a_device(admin, show_id), code=saved["code"]))["verdict"] == "admitted"
    found = await admin.get(f"/admin{path}")
    assert email not in found.text
    body = {"reason": "Ill", "seats": [other["seat"]]}
    given = await admin.post(f"/admin{path}/refunds", body, key="erased")
    assert given.is_success, given.text
    assert await violations(app, show_id) == []


class TestAMemberRemovedDuringARefund:
    @pytest.fixture
    async def house(self, app: App, api: httpx2.AsyncClient) -> DeskHouse:
        return await a_desk_house(app, api)

    @pytest.fixture
    async def clerk(self, app: App, api: httpx2.AsyncClient, house: DeskHouse) -> Fan:
        (fan,) = await cast.fans(app, api, 1)
        await app.organisations.add_member(house.organisation_id, fan.account_id, ["refund"])
        return fan

    @pytest.fixture
    async def cut_off(self, config: Config) -> AsyncIterator[Visitor]:
        """The clerk's browser, at a process that does not reach the gateway."""
        async with a_site(replace(config, gateway_url=UNREACHABLE)) as application:
            async with a_visitor(application) as visitor:
                yield visitor

    async def removes(self, house: DeskHouse, clerk: Fan) -> None:
        path = f"/organisations/{house.organisation_id}/members/{clerk.account_id}"
        assert (await house.owner.who.delete(path)).is_success

    async def test_one_that_was_decided_is_paid_out(
        self, app: App, house: DeskHouse, clerk: Fan, cut_off: Visitor
    ) -> None:
        booking = await house.buys(app, 0, 1)
        page = f"{house.path}/bookings/{public_id(booking.show_id, booking.number)}"
        await sit_down(app, cut_off, clerk.account_id)
        await cut_off.goes(f"{page}/refund?seats=A-1")
        await cut_off.sends("/refund")
        assert (await refunds_of(app, booking))[0].state is RefundState.REQUESTED

        await self.removes(house, clerk)

        async def is_paid_out() -> bool:
            await app.postgres.execute("UPDATE refund SET due_at = now() WHERE due_at > now()")
            await refund_jobs(app).carry_out()
            return (await refunds_of(app, booking))[0].state is RefundState.DONE

        await until(is_paid_out)
        (refund,) = await refunds_of(app, booking)
        assert (refund.amount_minor, refund.actor_id) == (50_000, clerk.account_id)
        assert await violations(app, house.show_id) == []

    async def test_a_form_that_was_open_refunds_nothing(
        self, app: App, house: DeskHouse, clerk: Fan, ann: Visitor
    ) -> None:
        booking = await house.buys(app, 0)
        page = f"{house.path}/bookings/{public_id(booking.show_id, booking.number)}"
        await sit_down(app, ann, clerk.account_id)
        await ann.goes(f"{page}/refund?seats=A-1")
        form = ann.text
        owner = await sit_down(app, Visitor(ann.client), house.organisation_id)
        await owner.goes(f"{house.path}/team")
        await owner.sends(f"/{clerk.account_id}/remove")

        await sit_down(app, ann, clerk.account_id)
        ann.text = form
        await ann.sends("/refund")

        assert ann.status == 404
        assert await refunds_of(app, booking) == []
        assert (await now_of(app, booking)).state is BookingState.CONFIRMED

    async def test_at_the_same_moment_it_is_made_or_refused_and_never_half(
        self, app: App, house: DeskHouse, clerk: Fan
    ) -> None:
        bookings = [await house.buys(app, seat) for seat in range(6)]

        answers = await asyncio.gather(
            *(self.refund(clerk, one) for one in bookings[:3]),
            self.removes(house, clerk),
            *(self.refund(clerk, one) for one in bookings[3:]),
        )

        for booking, answer in zip(bookings, (one for one in answers if one is not None), strict=True):
            made, state = await refunds_of(app, booking), (await now_of(app, booking)).state
            if answer.is_success:
                assert ([one.state for one in made], state) == ([RefundState.DONE], BookingState.REFUNDED)
            else:
                assert problem(answer)["code"] in ("not_a_member", "not_allowed")
                assert (made, state) == ([], BookingState.CONFIRMED)
        assert (await self.refund(clerk, bookings[0])).status_code == 403
        assert await violations(app, house.show_id) == []

    async def refund(self, clerk: Fan, booking: Booking) -> httpx2.Response:
        path = f"/admin/bookings/{public_id(booking.show_id, booking.number)}/refunds"
        return await clerk.post(path, {"reason": "Ill", "full": True}, key=f"refund-{booking.number}")
