"""Dead letters, notices and figures of every database, for operators and administrators (R36)."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from email.message import EmailMessage
from functools import partial
from typing import Any

import httpx2
import pytest

from holdfast.app import App, asgi_app
from holdfast.config import Config
from holdfast.web.caller import Role
from tests.conftest import started
from tests.support import shows as cast
from tests.support.browser_session import Visitor, a_visitor
from tests.support.cli_process import CommandResult, run_holdfast
from tests.support.desk import sit_down
from tests.support.pod_house import PODS, PodHouse, buys, drain, environment, shows_in_pods, without_pod
from tests.support.shows import Fan, problem
from tests.support.wait import until

DATABASES = ("", *PODS)


@pytest.fixture(scope="module")
def app(pod_app: App) -> App:
    return pod_app


@pytest.fixture(scope="module")
def api(pod_api: httpx2.AsyncClient) -> httpx2.AsyncClient:
    return pod_api


@pytest.fixture
async def admin(app: App, api: httpx2.AsyncClient) -> Fan:
    return (await cast.fans(app, api, 1, Role.ADMIN))[0]


@pytest.fixture
async def browser(pod_house: PodHouse) -> AsyncIterator[Visitor]:
    application = asgi_app(pod_house.config)
    async with started(application), a_visitor(application) as visitor:
        yield visitor


async def holdfast(house: PodHouse, *words: str, without: str = "") -> CommandResult:
    config = without_pod(house.config, without) if without else house.config
    return await run_holdfast(*words, **environment(config))


async def in_all(app: App, statement: str, *values: Any) -> None:
    for each in app.router.by_name.values():
        await each.postgres.execute(statement, *values)


DEAD_FACT = 2**40
BURY = (
    "INSERT INTO parked_fact (group_name, fact_id, key, fact, reason, dead_at)"
    " VALUES ('nightly', $1, '0:1', $2, 'too dark', now())"
)


@pytest.fixture
async def nightly(app: App) -> AsyncIterator[None]:
    """A group of every database that has read everything, and has given up on one fact: the same number."""
    fact = {"id": DEAD_FACT, "kind": "booking.held", "version": 1, "at": "2026-05-01T19:00:00Z", "show_id": 7}
    await in_all(app, "INSERT INTO consumer_group (name, checkpoint) VALUES ('nightly', 9223372036854775807)")
    await in_all(app, BURY, DEAD_FACT, json.dumps(fact).encode())
    yield
    await in_all(app, "DELETE FROM consumer_group WHERE name = 'nightly'")


async def dead_in(app: App) -> list[str]:
    return [
        name for name, each in app.router.by_name.items() if await each.outbox.is_dead("nightly", DEAD_FACT)
    ]


class TestDeadLetters:
    @pytest.mark.usefixtures("nightly")
    async def test_they_are_listed_and_tried_again_in_their_database(
        self, app: App, pod_house: PodHouse
    ) -> None:
        """Every database counts its own facts: one number is a fact in each of them."""
        listed = await holdfast(pod_house, "facts", "dead", "--group", "nightly", "--json")
        printed = await holdfast(pod_house, "facts", "dead", "--group", "nightly", without="east")
        which = ("--group", "nightly", "--id", str(DEAD_FACT))
        unclear = await holdfast(pod_house, "facts", "retry", *which)
        one = await holdfast(pod_house, "facts", "retry", *which, "--pod", "east")
        after_one = await dead_in(app)
        other = await holdfast(pod_house, "facts", "retry", "--group", "nightly", without="west")
        after_other = await dead_in(app)
        rest = await holdfast(pod_house, "facts", "retry", *which)

        assert [row["pod"] for row in listed.page] == list(DATABASES)
        assert f"west: nightly: {DEAD_FACT} booking.held, no booking: too dark" in printed.output
        assert (printed.code, "missing here: east" in printed.words) == (0, True)
        assert (unclear.code, "home and east and west: name one" in unclear.words) == (2, True), unclear.words
        assert (one.code, one.output) == (0, "1 will be tried again\n")
        assert after_one == ["", "west"]
        assert (other.code, other.output) == (2, "1 will be tried again\n"), other.words
        assert after_other == ["west"]
        assert (rest.code, rest.output) == (0, "1 will be tried again\n")

    @pytest.mark.usefixtures("nightly")
    async def test_an_administrator_sees_all_of_them_and_retries(
        self, app: App, admin: Fan, browser: Visitor
    ) -> None:
        await sit_down(app, browser, admin.account_id)
        await browser.goes("/desk/house")
        for name in DATABASES:
            assert f"<li>{name}-{DEAD_FACT} ".replace("<li>-", "<li>") in browser.text, name
        assert browser.says("east: nightly")

        await browser.sends("/dead-letters")

        assert await dead_in(app) == []
        await browser.sends("/audit")
        assert browser.status == 200

    @pytest.mark.usefixtures("nightly")
    async def test_groups_and_facts_name_their_pod(self, app: App, pod_house: PodHouse, alice: Fan) -> None:
        began = (await app.postgres.fetchval("SELECT now()")).isoformat()
        shows = await shows_in_pods(app)
        for show in shows.values():
            await buys(alice, show, "A-1")
            await drain(app, show)

        confirmed = ("facts", "list", "--from", began, "--kind", "booking.confirmed")
        listed = await holdfast(pod_house, *confirmed)
        east = await holdfast(pod_house, *confirmed, "--pod", "east")
        groups = await holdfast(pod_house, "facts", "groups", "--json")
        number = await holdfast(pod_house, "facts", "list", "--from", "5")
        unknown = await holdfast(pod_house, "facts", "groups", "--pod", "north")
        forgot = await holdfast(pod_house, "facts", "forget", "--group", "nightly")

        facts = [json.loads(line) for line in listed.output.splitlines()]
        assert [(one["pod"], one["show_id"]) for one in facts] == list(shows.items())
        assert [json.loads(line) for line in east.output.splitlines()] == facts[:1]
        assert [row["pod"] for row in groups.page if row["name"] == "nightly"] == list(DATABASES)
        assert (number.code, "every database counts its own facts" in number.words) == (2, True)
        assert (unknown.code, "HOLDFAST_PODS has no pod 'north'" in unknown.words) == (2, True)
        assert (forgot.code, await dead_in(app)) == (0, [])

    async def test_a_group_gets_the_facts_of_every_pod_again(
        self, app: App, pod_house: PodHouse, alice: Fan
    ) -> None:
        began = (await app.postgres.fetchval("SELECT now()")).isoformat()
        for show in (await shows_in_pods(app)).values():
            await buys(alice, show, "A-1")
            await drain(app, show)
        for each in app.router.by_name.values():
            await until(partial(has_read_all, each))

        again = await holdfast(pod_house, "facts", "replay", "--group", "reports", "--from", began)

        counts = "SELECT count(*) FROM outbox WHERE at >= $1::text::timestamptz"
        facts = [await each.postgres.fetchval(counts, began) for each in app.router.by_name.values()]
        assert (again.code, again.output) == (0, f"{sum(facts)} facts will be delivered again\n"), again.words


async def has_read_all(each: App) -> bool:
    query = (
        "SELECT checkpoint >= coalesce((SELECT max(id) FROM outbox), 0) FROM consumer_group"
        " WHERE name = 'reports'"
    )
    return bool(await each.postgres.fetchval(query))


NOTICE = 2**40
WRITE = (
    "INSERT INTO notice (id, kind, channel, address, name, locale, show_id, state, due_at, ended_at)"
    " OVERRIDING SYSTEM VALUE"
    " VALUES ($1, 'tickets', 'mail', $2, '', 'en', 7, 'dead', NULL, now())"
)


@pytest.fixture
async def notices(app: App) -> AsyncIterator[None]:
    """A dead notice in every database, with the same number; one more in the east."""
    for name, each in app.router.by_name.items():
        await each.postgres.execute(WRITE, NOTICE, f"{name or 'home'}@example.org")
    await app.router.by_name["east"].postgres.execute(WRITE, NOTICE + 1, "only@example.org")
    yield
    await in_all(app, "DELETE FROM notice WHERE id >= $1", NOTICE)


async def queued_in(app: App, number: int = NOTICE) -> list[str]:
    state = "SELECT count(*) FROM notice WHERE id = $1 AND state = 'queued'"
    return [name for name, each in app.router.by_name.items() if await each.postgres.fetchval(state, number)]


@pytest.mark.usefixtures("notices")
class TestNotices:
    async def test_an_administrator_lists_all_and_sends_one_again_in_its_pod(
        self, app: App, admin: Fan, api_without_east: httpx2.AsyncClient
    ) -> None:
        listed = (await admin.get("/admin/notices")).json()
        later = (await admin.get("/admin/notices", size=2, page=2)).json()
        without_east = Fan(admin.account_id, admin.token, api_without_east)
        part = (await without_east.get("/admin/notices")).json()
        unclear = await admin.post(f"/admin/notices/{NOTICE}/replay")
        again = await admin.post(f"/admin/notices/{NOTICE}/replay?pod=west")
        only = await admin.post(f"/admin/notices/{NOTICE + 1}/replay")
        away = await without_east.post(f"/admin/notices/{NOTICE}/replay")
        unknown = await admin.post(f"/admin/notices/{NOTICE}/replay?pod=north")

        found = [(one["pod"], one["notice_id"] - NOTICE) for one in listed["notices"]]
        assert set(found) == {("", 0), ("east", 0), ("west", 0), ("east", 1)}
        assert (later["notices"], later["more"]) == (listed["notices"][2:4], False)
        assert {one["pod"] for one in part["notices"]} == {"", "west"}
        assert (part["complete"], part["missing_pods"]) == (False, ["east"])
        assert (unclear.status_code, problem(unclear)["field"]) == (422, "pod")
        assert (again.status_code, again.json()["pod"], await queued_in(app)) == (200, "west", ["west"])
        assert (only.status_code, only.json()["pod"]) == (200, "east")
        assert away.status_code == 503, "the pod that is away may have one of this number"
        assert problem(unknown)["code"] == "no_such_notice"

    async def test_an_operator_does_the_same(self, app: App, pod_house: PodHouse) -> None:
        printed = await holdfast(pod_house, "notices", "list")
        unclear = await holdfast(pod_house, "notices", "replay", str(NOTICE))
        one = await holdfast(pod_house, "notices", "replay", f"west-{NOTICE}")
        after_one = await queued_in(app)
        rest = await holdfast(pod_house, "notices", "replay", "--all-dead", without="east")

        assert f"dead   east-{NOTICE}  tickets to east@example.org by mail" in printed.output
        assert (unclear.code, "home and east and west" in unclear.words) == (2, True), unclear.words
        assert (one.code, after_one) == (0, ["west"]), one.words
        assert (rest.code, "east" in rest.words, await queued_in(app)) == (2, True, ["", "west"])


STORE = "INSERT INTO stored_message (notice_id, subject, message) VALUES ($1, $2, $3)"


def mail_about(subject: str) -> bytes:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "house@example.org", "zoe@example.org", subject
    mail.set_content(subject)
    mail.add_alternative(f"<p>{subject}</p>", subtype="html")
    return mail.as_bytes()


@asynccontextmanager
async def mail_page(config: Config) -> AsyncIterator[httpx2.AsyncClient]:
    application = asgi_app(replace(config, mail_page=1))
    transport = httpx2.ASGITransport(application)
    async with started(application):
        async with httpx2.AsyncClient(transport=transport, base_url="http://box.office") as client:
            yield client


@pytest.mark.usefixtures("notices")
class TestMailPage:
    async def test_it_has_the_mail_of_every_database(self, app: App, pod_house: PodHouse) -> None:
        for name, each in app.router.by_name.items():
            subject = f"Seats in {name or 'home'}"
            await each.postgres.execute(STORE, NOTICE, subject, mail_about(subject))

        async with mail_page(pod_house.config) as client:
            page = (await client.get("/demo/mail")).text
            paths = [f"/demo/mail/{name}-{NOTICE}".replace("/-", "/") for name in DATABASES]
            texts = [(await client.get(f"{path}/text")).text.strip() for path in paths]
            unknown = await client.get(f"/demo/mail/north-{NOTICE}")
        async with mail_page(without_pod(pod_house.config, "east")) as client:
            part = (await client.get("/demo/mail")).text
            away = await client.get(f"/demo/mail/east-{NOTICE}")

        assert all(f'<a href="{path}">' in page for path in paths)
        assert "are missing" not in page
        assert texts == ["Seats in home", "Seats in east", "Seats in west"]
        assert (unknown.status_code, problem(unknown)["code"]) == (404, "no_such_notice")
        assert ("Mails of east are missing" in part, "Seats in west" in part) == (True, True)
        assert away.status_code == 503


class TestFigures:
    async def test_they_are_rebuilt_in_every_pod(self, app: App, pod_house: PodHouse, alice: Fan) -> None:
        shows = await shows_in_pods(app)
        for show in shows.values():
            await buys(alice, show, "A-1", "A-2")
            await drain(app, show)
            pod = app.router.for_show(show).postgres
            await pod.execute("DELETE FROM report_seat WHERE show_id = $1", show)

        part = await holdfast(pod_house, "figures", "rebuild", "--json", without="east")
        after_part = [await self.sold(app, show) for show in shows.values()]
        done = await holdfast(pod_house, "figures", "rebuild", "--json")

        assert (part.code, "east" in part.words) == (2, True), part.words
        assert after_part == [0, 2]
        assert (done.code, done.page["shows"] >= 2) == (0, True), done.words
        assert [await self.sold(app, show) for show in shows.values()] == [2, 2]

    async def sold(self, app: App, show: int) -> int:
        return (await app.router.for_show(show).reports.sums([show])).seats_sold
