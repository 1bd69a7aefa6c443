"""What buyers do with shows of a pod, by HTTP: transfers, refunds, waitlist, waiting room, live map (R36)."""

import asyncio
import json

import httpx2
import pytest

from holdfast.accounts import MailToken, Purpose
from holdfast.app import App
from holdfast.bookings import from_public_id
from holdfast.cli.keys import send_in_pods
from holdfast.web.every_pod import find_in_pods
from tests.conftest import served
from tests.support.gateway_webhooks import a_webhook
from tests.support.own_engines import hold
from tests.support.paid_bookings import refund_jobs
from tests.support.pod_house import PodHouse, a_pod_show, buys, holds, shows_in_pods
from tests.support.shows import API, Fan, problem
from tests.support.wait import until
from tests.support.waiting_room import a_room


@pytest.fixture(scope="module")
def app(pod_app: App) -> App:
    return pod_app


@pytest.fixture(scope="module")
def api(pod_api: httpx2.AsyncClient) -> httpx2.AsyncClient:
    return pod_api


async def gives(app: App, giver: Fan, email: str) -> tuple[int, str, str]:
    """(show, ticket, the token that the mail to this address has)"""
    show = await a_pod_show(app)
    booking = await buys(giver, show, "A-1")
    (ticket,) = (await giver.get(f"/bookings/{booking}/tickets")).json()["tickets"]
    given = await giver.post(f"/tickets/{ticket['ticket_id']}/transfer", {"email": email})
    assert given.status_code == 200, given.text
    place = from_public_id(ticket["ticket_id"])
    issued = await app.router.for_show(show).tickets.find(*place)
    assert issued is not None
    token = MailToken(
        purpose=Purpose.CLAIM, email=email, show_id=show, number=place[1], edition=issued.edition
    )
    return show, ticket["ticket_id"], await app.mail_tokens.issue(token)


class TestTransfers:
    """The link is in the home database, the ticket in a pod."""

    async def test_the_link_accepts_a_ticket_once(self, app: App, alice: Fan, bob: Fan) -> None:
        show, ticket, token = await gives(app, alice, "friend@example.org")
        accepted = await bob.post("/tickets/claims", {"token": token})
        assert accepted.status_code == 200, accepted.text
        assert (accepted.json()["ticket_id"], accepted.json()["show_id"]) == (ticket, show)
        again = await alice.post("/tickets/claims", {"token": token})
        assert problem(again)["code"] == "link_gone"
        assert (await bob.get(f"/tickets/{ticket}")).status_code == 200

    async def test_a_process_that_died_after_the_pod_had_committed(
        self, app: App, alice: Fan, bob: Fan
    ) -> None:
        """The same account may use the link again; another one is refused."""
        show, ticket, token = await gives(app, alice, "friend@example.org")
        pod, place = app.router.for_show(show), from_public_id(ticket)
        issued = await pod.tickets.find(*place)
        assert issued is not None
        async with pod.postgres.transaction() as tx:
            await pod.transfers.accept(
                tx, place, account_id=bob.account_id, email="friend@example.org", edition=issued.edition
            )
        other = await alice.post("/tickets/claims", {"token": token})
        assert problem(other)["code"] == "no_such_ticket"
        assert (await bob.post("/tickets/claims", {"token": token})).status_code == 200
        assert problem(await bob.post("/tickets/claims", {"token": token}))["code"] == "link_gone"

    async def test_a_browser_without_a_session_gets_one(
        self, app: App, api: httpx2.AsyncClient, alice: Fan
    ) -> None:
        _, _, token = await gives(app, alice, "browser@example.org")
        async with httpx2.AsyncClient(transport=api._transport, base_url="http://box.office") as browser:
            page = await browser.get(f"/link/{token}")
            assert page.status_code == 200, page.text
            accepted = await browser.post(f"/link/{token}", data={}, headers={"Origin": "http://box.office"})
            assert accepted.status_code == 303, accepted.text
            assert (await browser.get(accepted.headers["location"])).status_code == 200
            assert (await browser.get("/my")).text.count("/tickets/") > 0

    async def test_revoked_keys_send_tickets_of_pods_again(self, app: App, alice: Fan) -> None:
        shows = await shows_in_pods(app)
        for show in shows.values():
            await buys(alice, show, "A-1")
        east = shows["east"]
        pod = app.router.for_show(east)
        assert await app.tickets.revoke_keys(east) == 0, "the home database has no ticket of this show"
        assert await send_in_pods(app, east) == 1
        await pod.outbox.settle(100_000)
        facts = await pod.outbox.facts_after(0, 100_000)
        sent = [fact for fact in facts if fact.kind == "tickets.sent_again" and fact.show_id == east]
        assert len(sent) == 1


class TestMoney:
    async def test_a_refund_goes_back_and_a_webhook_reaches_the_pod(
        self, app: App, api: httpx2.AsyncClient, alice: Fan
    ) -> None:
        show = await a_pod_show(app)
        booking, pod = await buys(alice, show, "A-1", "A-2"), app.router.for_show(show)
        payment = await pod.payments.payment(*from_public_id(booking), 1)
        assert payment is not None
        assert payment.reference is not None
        webhook = a_webhook(payment, payment.reference)
        received = await api.post("/webhooks/sandbox", content=webhook.raw, headers=webhook.headers)
        assert received.status_code == 200, received.text
        stored = "SELECT count(*) FROM gateway_webhook WHERE show_id = $1"
        assert await pod.postgres.fetchval(stored, show) == 1
        given = await alice.delete(f"/bookings/{booking}?seats=A-2")
        assert given.status_code == 200, given.text
        await refund_jobs(pod).carry_out()
        timeline = (await alice.get(f"/bookings/{booking}/payments")).json()
        assert [one["state"] for one in timeline["attempts"][0]["refunds"]] == ["done"]

    async def test_a_payment_is_found_by_the_gateways_reference_alone(self, app: App, alice: Fan) -> None:
        """Stripe's webhooks about disputes name nothing else."""
        show = (await shows_in_pods(app))["west"]
        booking, pod = await buys(alice, show, "A-1"), app.router.for_show(show)
        payment = await pod.payments.payment(*from_public_id(booking), 1)
        assert payment is not None
        assert payment.reference is not None
        reference = payment.reference
        assert await find_in_pods(app, lambda each: each.webhooks_in.find_show(reference)) == show
        assert await find_in_pods(app, lambda each: each.webhooks_in.find_show("pay_of_others")) is None


async def test_the_waitlist_of_a_show_in_a_pod(app: App, alice: Fan, bob: Fan) -> None:
    show = await a_pod_show(app, seats=4)
    held = await holds(bob, show, "A-1", "A-2", "A-3", "A-4")
    joined = await alice.post(f"/shows/{show}/waitlist", {"seats": 2})
    assert joined.status_code == 201, joined.text
    await bob.delete(f"/bookings/{held}")
    await app.router.for_show(show).waitlists.steps.run(show)
    entry = (await alice.get(f"/shows/{show}/waitlist")).json()["entry"]
    paid = await alice.post(f"/bookings/{entry['offer']['booking_id']}/pay", {"method": "tok_ok"})
    assert paid.status_code == 200, paid.text


async def test_the_waiting_room_of_a_show_in_a_pod(app: App, alice: Fan) -> None:
    show = await a_pod_show(app)
    room = await a_room(app.router.for_show(show), show)
    queue = f"/shows/{show}/queue"

    async def joins() -> bool:
        return (await alice.post(queue)).status_code in (200, 201)

    await until(joins)
    await room.draw()
    await room.admit()

    async def redeems() -> bool:
        return (await alice.post(f"{queue}/pass")).status_code == 200

    await until(redeems)
    text = (await alice.post(f"{queue}/pass")).json()["text"]
    body, headers = {"seats": ["A-1"]}, {**alice.headers, "Admission": text}
    held = await alice.api.post(f"{API}/shows/{show}/holds", json=body, headers=headers)
    assert held.status_code == 201, held.text


async def test_the_live_map_of_a_show_in_a_pod(app: App, pod_house: PodHouse, alice: Fan) -> None:
    show = await a_pod_show(app)
    await holds(alice, show, "A-1")
    application = alice.api._transport.app  # type: ignore[attr-defined]
    async with served(application) as url, httpx2.AsyncClient(base_url=url, timeout=10) as client:
        async with client.stream("GET", f"{API}/shows/{show}/seats/stream") as stream, asyncio.timeout(10):
            lines = stream.aiter_lines()
            assert await _next_event(lines) is not None
            await holds(alice, show, "A-2")
            assert await _next_event(lines) is not None


async def _next_event(lines: object) -> dict[str, object]:
    async for line in lines:  # type: ignore[attr-defined]
        if line.startswith("data: "):
            found: dict[str, object] = json.loads(line.removeprefix("data: "))
            return found
    raise EOFError


async def test_what_a_guest_has_in_a_pod_counts_for_the_account(app: App, alice: Fan) -> None:
    """Otherwise signing in would double the limit of seats per person."""
    show = await a_pod_show(app, owner_seats_max=2)
    pod = app.router.for_show(show)
    cookie = await app.sessions.open_guest("en")
    guest = await app.sessions.load(cookie)
    assert guest is not None
    await until(lambda: _has_account(pod, guest.account_id))
    await hold(pod, show, guest.account_id, 3, 4)
    await app.postgres.execute(
        "UPDATE account SET guest_of = $1 WHERE id = $2", alice.account_id, guest.account_id
    )

    async def is_counted() -> bool:
        seats = "SELECT guest_seats FROM owner_count WHERE show_id = $1 AND owner_id = $2"
        return bool(await pod.postgres.fetchval(seats, show, alice.account_id) == 2)

    await until(is_counted)

    async def is_refused() -> bool:
        """After the web process has read the directory."""
        refused = await alice.holds(show, "B-1")
        assert refused.status_code != 201
        return bool(problem(refused)["code"] == "over_limit")

    await until(is_refused)


async def _has_account(app: App, account_id: int) -> bool:
    return bool(await app.postgres.fetchval("SELECT count(*) FROM account WHERE id = $1", account_id))
