"""What belongs to a person, whichever database sells the show: invoices, data, erasure (R36)."""

import httpx2
import pytest

from holdfast.app import App
from holdfast.background import build_pod_erasure
from holdfast.bookings import from_public_id
from holdfast.invoices.invoices import credit_note_consumer
from holdfast.tickets import Giver
from tests.support.paid_bookings import refund_jobs
from tests.support.pod_house import PODS, PodHouse, buys, count_rows, drain, move, shows_in_pods
from tests.support.shows import Fan
from tests.support.wait import until

SERIALS = "SELECT serial, refund_id, credits FROM invoice WHERE show_id = $1 AND number = $2 ORDER BY serial"


@pytest.fixture(scope="module")
def app(pod_app: App) -> App:
    return pod_app


@pytest.fixture(scope="module")
def api(pod_api: httpx2.AsyncClient) -> httpx2.AsyncClient:
    return pod_api


async def serials(app: App, booking: str) -> list[tuple[int | None, ...]]:
    return [tuple(row) for row in await app.postgres.fetch(SERIALS, *from_public_id(booking))]


async def email_of(app: App, fan: Fan) -> str:
    return str(await app.postgres.fetchval("SELECT email FROM account WHERE id = $1", fan.account_id))


class TestInvoices:
    """Numbers without gaps are drawn at home, for bookings of every pod."""

    async def test_shows_of_different_pods_share_one_sequence(
        self, app: App, pod_house: PodHouse, alice: Fan
    ) -> None:
        shows = await shows_in_pods(app)
        bookings = [await buys(alice, show, "A-1") for show in shows.values()]
        last = await app.postgres.fetchval("SELECT last_number FROM invoice_count WHERE organiser_id = 1")
        for booking in (*bookings, *bookings):
            file = await alice.get(f"/bookings/{booking}/invoice.pdf")
            assert (file.status_code, file.content[:5]) == (200, b"%PDF-"), file.text
        first = (last or 0) + 1
        assert [await serials(app, one) for one in bookings] == [[(first, 0, None)], [(first + 1, 0, None)]]
        assert [await count_rows(pod_house, pod, "invoice", shows[pod]) for pod in PODS] == [0, 0]

    async def test_a_refund_has_one_credit_note_whatever_a_worker_repeats(self, app: App, alice: Fan) -> None:
        show = (await shows_in_pods(app))["east"]
        pod = app.router.for_show(show)
        booking = await buys(alice, show, "A-1", "A-2")
        assert (await alice.delete(f"/bookings/{booking}?seats=A-2")).status_code == 200
        await refund_jobs(pod).carry_out()
        await pod.outbox.settle(100_000)
        facts = await pod.outbox.facts_after(0, 100_000)
        (done,) = [fact for fact in facts if fact.kind == "refund.done" and fact.show_id == show]
        # A worker that dies between the commit at home and its checkpoint in the pod: the fact comes again.
        await credit_note_consumer(pod.invoices).handle(done)
        first = await serials(app, booking)
        await drain(app, show)
        assert [row[1] for row in first] == [0, 1]
        assert await serials(app, booking) == first
        groups = {row["name"] for row in await pod.outbox.groups()}
        assert "invoices" in groups, "the fact must lead there without us"

    async def test_the_fact_of_a_refund_leads_to_documents_at_home(self, app: App, alice: Fan) -> None:
        show = (await shows_in_pods(app))["west"]
        booking = await buys(alice, show, "A-1", "A-2")
        assert (await alice.delete(f"/bookings/{booking}?seats=A-2")).status_code == 200
        await refund_jobs(app.router.for_show(show)).carry_out()
        await drain(app, show)
        documents = await serials(app, booking)
        assert [row[1] for row in documents] == [0, 1]
        assert documents[1][2] == documents[0][0], "the credit note names its invoice"

    async def test_a_moved_show_goes_on_with_its_documents(self, app: App, alice: Fan) -> None:
        show = (await shows_in_pods(app))["east"]
        booking = await buys(alice, show, "A-1")
        await alice.get(f"/bookings/{booking}/invoice.pdf")
        before = await serials(app, booking)
        await move(app, show, "west")

        async def is_printed() -> bool:
            return (await alice.get(f"/bookings/{booking}/invoice.pdf")).status_code == 200

        await until(is_printed)
        assert await serials(app, booking) == before


TABLES = (
    "SELECT table_name FROM information_schema.tables"
    " WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
)


async def tables_with(app: App, text: str) -> list[str]:
    """The tables that have this text in a row."""
    found = []
    for row in await app.postgres.fetch(TABLES):
        name = row["table_name"]
        has = f"SELECT EXISTS (SELECT FROM {name} AS t WHERE strpos(t::text, $1) > 0)"  # noqa: S608
        if await app.postgres.fetchval(has, text):
            found.append(name)
    return found


async def gives(app: App, giver: Fan, show: int, seat: str, email: str) -> None:
    """A ticket to an address, and the notices about it."""
    booking = await buys(giver, show, seat)
    pod = app.router.for_show(show)
    (ticket,) = await pod.tickets.of_booking(*from_public_id(booking))
    await pod.transfers.give(show, ticket.serial, Giver(giver.account_id, None), email)
    await drain(app, show)


class TestErasure:
    """A person is erased in every database; a pod that is away does it later."""

    async def test_every_pod_forgets_the_person(self, app: App, alice: Fan, bob: Fan) -> None:
        email = await email_of(app, alice)
        shows = await shows_in_pods(app)
        for show in shows.values():
            await gives(app, bob, show, "C-1", email)
        pods = [app.router.for_show(show) for show in shows.values()]
        assert [set(await tables_with(pod, email)) >= {"ticket", "notice"} for pod in pods] == [True, True]
        await app.erasure.erase(alice.account_id)
        await until(lambda: _finishes(app))
        assert [await tables_with(each, email) for each in app.router.by_name.values()] == [[], [], []]

    async def test_a_pod_that_is_away_does_it_when_it_is_back(
        self, app: App, app_without_east: App, alice: Fan, bob: Fan
    ) -> None:
        email = await email_of(app, alice)
        show = (await shows_in_pods(app))["east"]
        await gives(app, bob, show, "C-1", email)
        await app_without_east.erasure.erase(alice.account_id)
        assert await build_pod_erasure(app_without_east).finish() == 0
        assert await tables_with(app, email) == ["erasure_due"]
        await until(lambda: _finishes(app))
        assert [await tables_with(each, email) for each in app.router.by_name.values()] == [[], [], []]

    async def test_the_next_person_with_the_address_loses_nothing(
        self, app: App, app_without_east: App, alice: Fan, bob: Fan
    ) -> None:
        """The pod was away for hours; meanwhile a ticket is given to the same address."""
        email = await email_of(app, alice)
        show = (await shows_in_pods(app))["east"]
        await gives(app, bob, show, "C-1", email)
        await app_without_east.erasure.erase(alice.account_id)
        await gives(app, bob, show, "C-2", email)
        await until(lambda: _finishes(app))
        pod = app.router.for_show(show)
        waiting = await pod.postgres.fetch(
            "SELECT seat FROM ticket WHERE show_id = $1 AND owner_email = $2", show, email
        )
        assert [row["seat"] for row in waiting] == [21]
        assert await pod.postgres.fetchval("SELECT count(*) FROM notice WHERE address = $1", email) == 1

    async def test_the_download_has_every_pod_and_says_which_is_missing(
        self, app: App, app_without_east: App, alice: Fan
    ) -> None:
        shows = await shows_in_pods(app)
        bought = [await buys(alice, show, "B-1") for show in shows.values()]
        whole = (await alice.get("/me/data")).json()
        assert (whole["complete"], whole["missing_parts"]) == (True, [])
        assert sorted(one["booking_id"] for one in whole["bookings"]) == sorted(bought)
        assert [len(whole[part]) for part in ("payments", "tickets")] == [2, 2]
        part = await app_without_east.personal_data.load(alice.account_id)
        assert (part["complete"], part["missing_parts"]) == (False, ["east"])
        assert [one["booking_id"] for one in part["bookings"]] == bought[1:]


async def _finishes(app: App) -> bool:
    await build_pod_erasure(app).finish()
    return not await app.postgres.fetchval("SELECT count(*) FROM erasure_due")


class TestMail:
    async def test_no_mail_is_lost_while_replication_is_cut(self, app: App, alice: Fan, bob: Fan) -> None:
        """A buyer whose address is not known in the pod yet would get none."""
        show = (await shows_in_pods(app))["east"]
        pod = app.router.for_show(show)
        await buys(alice, show, "A-1")
        await drain(app, show)
        await app.postgres.execute("UPDATE account SET verified_at = NULL WHERE id = $1", bob.account_id)
        await until(lambda: _is_proved(pod, bob, is_proved=False))
        await pod.postgres.execute("ALTER SUBSCRIPTION holdfast_home DISABLE")
        try:
            await app.postgres.execute("UPDATE account SET verified_at = now() WHERE id = $1", bob.account_id)
            booking = await buys(bob, show, "A-2")
            await until(lambda: _waits_for_home(pod))
            assert await _notices(pod, booking) == []
        finally:
            await pod.postgres.execute("ALTER SUBSCRIPTION holdfast_home ENABLE")
        await drain(app, show)
        assert "tickets" in await _notices(pod, booking)


async def _is_proved(pod: App, fan: Fan, *, is_proved: bool) -> bool:
    row = "SELECT verified_at IS NOT NULL FROM account WHERE id = $1"
    return bool(await pod.postgres.fetchval(row, fan.account_id) == is_proved)


async def _waits_for_home(pod: App) -> bool:
    """Every other consumer has read all facts."""
    behind = [row["name"] for row in await pod.outbox.groups() if row["behind"]]
    return behind == ["notifications"]


async def _notices(pod: App, booking: str) -> list[str]:
    kinds = "SELECT kind FROM notice WHERE show_id = $1 AND number = $2"
    return [row["kind"] for row in await pod.postgres.fetch(kinds, *from_public_id(booking))]
