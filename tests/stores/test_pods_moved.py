"""What reaches a show after it has moved: mails that were queued, webhooks of the gateway (R36)."""

import time
from dataclasses import replace
from functools import partial

import asyncpg
import httpx2
import pytest

from holdfast.app import App, open_app
from holdfast.background import build_composer, build_pod_composer
from holdfast.bookings import from_public_id
from holdfast.checkin.every_pod import load_counts
from holdfast.errors import Busy
from holdfast.notifications.notice import Channel, DueNotice
from holdfast.payments.webhooks import ReceivedWebhook
from holdfast.routes import ROUTES
from holdfast.web.asgi import Application
from tests.conftest import started
from tests.support.dead_mover import fenced, two_shows_of_one_pod
from tests.support.gateway_webhooks import SignedWebhook, a_webhook
from tests.support.pod_house import PodHouse, a_pod_show, buys, drain, holds, move, other_than
from tests.support.shows import Fan

STORED = "SELECT count(*) FROM gateway_webhook WHERE show_id = $1"


@pytest.fixture(scope="module")
def app(pod_app: App) -> App:
    return pod_app


@pytest.fixture(scope="module")
def api(pod_api: httpx2.AsyncClient) -> httpx2.AsyncClient:
    return pod_api


class TestMail:
    async def test_tickets_whose_mail_was_queued_before_the_move_are_sent(self, app: App, alice: Fan) -> None:
        """The notice stays in the old pod, which has no ticket any more: it would count as obsolete."""
        show = await a_pod_show(app)
        source = app.router.for_show(show)
        booking = await buys(alice, show, "A-1")
        await drain(app, show)
        await move(app, show, other_than(source.pod))

        due = await take_tickets(source, booking)
        message = await build_pod_composer(source).compose(due)

        assert await build_composer(source).compose(due) is None
        assert message is not None
        assert message.stubs

    async def test_while_the_show_moves_it_is_tried_again(self, app: App, alice: Fan) -> None:
        show = await a_pod_show(app)
        pod = app.router.for_show(show)
        booking = await buys(alice, show, "A-1")
        await drain(app, show)
        due = await take_tickets(pod, booking)

        async with fenced(app, show):
            with pytest.raises(Busy):
                await build_pod_composer(pod).compose(due)

        assert await build_pod_composer(pod).compose(due) is not None


async def take_tickets(pod: App, booking: str) -> DueNotice:
    show_id, number = from_public_id(booking)
    (due,) = [
        one
        for one in await pod.notifications.take_due(1000, [Channel.MAIL])
        if (one.show_id, one.number, one.kind) == (show_id, number, "tickets")
    ]
    return due


async def test_lists_have_a_booking_once_while_its_show_is_in_two_databases(
    app: App, pod_house: PodHouse, alice: Fan
) -> None:
    """As between the copy and the switch, or for as long as a mover that died is not noticed."""
    show = await a_pod_show(app, price_minor=0)
    source = app.router.for_show(show)
    booking = await holds(alice, show, "A-1")
    copy = await source.postgres.fetch("SELECT * FROM booking WHERE show_id = $1", show)
    target = await asyncpg.connect(pod_house.url_of(other_than(source.pod)))
    async with target.transaction():
        await target.execute("SELECT set_config('holdfast.copies_show', 'on', true)")
        await target.copy_records_to_table("booking", records=[tuple(row) for row in copy])
    listed = (await alice.get("/bookings")).json()["bookings"]
    async with target.transaction():
        await target.execute("SELECT set_config('holdfast.copies_show', 'on', true)")
        await target.execute("DELETE FROM booking WHERE show_id = $1", show)
    await target.close()
    assert [one["booking_id"] for one in listed].count(booking) == 1


async def test_what_has_just_moved_is_not_called_missing(app: App, pod_house: PodHouse, alice: Fan) -> None:
    """A payment is refused with "no such booking", and its Idempotency-Key would keep that answer."""
    show = await a_pod_show(app)
    source = app.router.directory.pod_of(show)
    booking = await holds(alice, show, "A-1")
    # Without jobs: its directory is that of now.
    application = Application(partial(open_app, pod_house.config), ROUTES)
    transport = httpx2.ASGITransport(application)
    async with started(application), httpx2.AsyncClient(transport=transport, base_url="http://box") as api:
        await move(app, show, other_than(source))
        answers = [await replace(alice, api=api).get(f"/bookings/{booking}") for _ in range(2)]
    assert [one.status_code for one in answers] == [503, 200]


async def test_the_counts_of_a_door_are_not_those_of_the_old_pod(
    app: App, pod_house: PodHouse, alice: Fan
) -> None:
    """A process that does not know of the move yet would count the tickets of the old pod: none."""
    show = await a_pod_show(app)
    source = app.router.directory.pod_of(show)
    await buys(alice, show, "A-1", "A-2")
    async with open_app(pod_house.config) as stale:
        await move(app, show, other_than(source))
        assert stale.router.directory.pod_of(show) == source
        (count,) = await load_counts(stale, [show])
    assert count.tickets == 2


class TestWebhooks:
    """A gateway that has its 2xx never sends the webhook again: none is taken where it would be lost."""

    async def test_a_router_with_an_old_directory_refuses_one(
        self, app: App, api: httpx2.AsyncClient, alice: Fan
    ) -> None:
        show = await a_pod_show(app)
        source = app.router.for_show(show)
        webhook = await about(source, await buys(alice, show, "A-1"))
        target = other_than(source.pod)
        await move(app, show, target)

        with pytest.raises(Busy):
            await source.webhooks_in.receive(webhook.raw, webhook.raw_headers)

        received = await api.post("/webhooks/sandbox", content=webhook.raw, headers=webhook.headers)
        while received.status_code == 503:  # its process learns of the move within half a second
            received = await api.post("/webhooks/sandbox", content=webhook.raw, headers=webhook.headers)
        assert received.status_code == 200, received.text
        counts = [
            await app.router.by_name[pod].postgres.fetchval(STORED, show) for pod in (source.pod, target)
        ]
        assert counts == [0, 1]

    async def test_one_is_refused_while_its_show_moves_and_others_are_taken(
        self, app: App, alice: Fan
    ) -> None:
        closed, other = await two_shows_of_one_pod(app)
        pod = app.router.for_show(closed)
        webhooks = {show: await about(pod, await buys(alice, show, "A-1")) for show in (closed, other)}

        async with fenced(app, closed):
            with pytest.raises(Busy):
                await pod.webhooks_in.receive(webhooks[closed].raw, webhooks[closed].raw_headers)
            await pod.webhooks_in.receive(webhooks[other].raw, webhooks[other].raw_headers)
            counts = [await pod.postgres.fetchval(STORED, show) for show in (closed, other)]

        assert counts == [0, 1]

    async def test_a_dispute_that_names_a_reference_alone_is_not_foreign_to_the_old_pod(
        self, app: App, alice: Fan
    ) -> None:
        """Foreign ones are acknowledged and forgotten."""
        show = await a_pod_show(app)
        source = app.router.for_show(show)
        webhook = await about(source, await buys(alice, show, "A-1"))
        found = source.webhooks_in.gateway.parse_webhook(webhook.raw, webhook.raw_headers, time.time())
        await move(app, show, other_than(source.pod))

        (stored,) = await source.webhooks_in.store_many(
            [ReceivedWebhook(replace(found, key=None), webhook.raw)]
        )

        assert stored.verdict == "elsewhere"


async def about(pod: App, booking: str) -> SignedWebhook:
    payment = await pod.payments.payment(*from_public_id(booking), 1)
    assert payment is not None
    assert payment.reference is not None
    return a_webhook(payment, payment.reference)
