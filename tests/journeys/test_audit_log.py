"""The audit log: what staff change is in it with who, when, from where, before and after."""

import csv
import io
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.web.caller import Role
from tests.support.organiser import Organiser, Stage, a_stage, an_event, show_of, sign_in_organiser

HEADERS = {"user-agent": "Desk/1.0"}


@dataclass(frozen=True)
class House:
    organiser: Organiser
    admin: Organiser
    stage: Stage


@pytest.fixture(scope="module")
async def house(app: App, api: httpx2.AsyncClient) -> House:
    organiser = await sign_in_organiser(app, api)
    return House(organiser, await sign_in_organiser(app, api, Role.ADMIN), await a_stage(app, api, organiser))


async def entries(who: Organiser, **filters: Any) -> list[dict[str, Any]]:
    page = await who.send("GET", "/audit-log", params=filters)
    assert page.status_code == 200, page.text
    found: list[dict[str, Any]] = page.json()["entries"]
    return found


async def newest(who: Organiser, **filters: Any) -> dict[str, Any]:
    return (await entries(who, size=1, **filters))[0]


async def test_a_change_says_who_from_where_before_and_after(house: House) -> None:
    event = await house.organiser.create("/events", an_event(title="Old title"))

    await house.organiser.send("PATCH", f"/events/{event['id']}", {"title": "New title"}, headers=HEADERS)

    entry = await newest(house.organiser)
    assert (entry["action"], entry["subject_kind"], entry["subject_id"]) == (
        "event.changed",
        "event",
        str(event["id"]),
    )
    assert (entry["before"], entry["after"]) == ({"title": "Old title"}, {"title": "New title"})
    assert entry["actor"]["account_id"] == house.organiser.who.account_id
    assert "@example." in entry["actor"]["email"]
    assert (entry["via"], entry["agent"]) == ("api", "Desk/1.0")
    assert entry["address"]
    assert entry["request_id"]


async def test_a_change_that_changes_nothing_is_not_in_it(house: House) -> None:
    event = await house.organiser.create("/events", an_event())
    before = await newest(house.organiser)

    await house.organiser.send("PATCH", f"/events/{event['id']}", {"title": event["title"]})

    assert (await newest(house.organiser))["number"] == before["number"]


async def test_a_refused_change_is_not_in_it(house: House) -> None:
    before = await newest(house.organiser)

    refused = await house.organiser.send("PATCH", f"/venues/{house.stage.venue_id}", {"city_id": 2**40})

    assert refused.status_code == 404
    assert (await newest(house.organiser))["number"] == before["number"]


async def test_an_admin_s_change_is_in_the_log_of_the_organiser(house: House) -> None:
    event = await house.organiser.create("/events", an_event())

    await house.admin.send("PATCH", f"/events/{event['id']}", {"featured": True})

    entry = await newest(house.organiser, subject="event", id=str(event["id"]))
    assert entry["after"] == {"featured": True}
    assert entry["actor"]["account_id"] == house.admin.who.account_id


async def test_prices_and_cancelling_have_their_words(house: House) -> None:
    show = await house.organiser.create("/shows", show_of(house.stage))
    path = f"/shows/{show['id']}"

    await house.organiser.send("PATCH", path, {"prices": {"Gold": 60_000}})
    await house.organiser.send("PATCH", path, {"cancelled": True})

    cancelled, priced, created = await entries(house.organiser, subject="show", id=str(show["id"]))
    assert [entry["action"] for entry in (created, priced, cancelled)] == [
        "show.created",
        "show.changed",
        "show.cancelled",
    ]
    assert priced["before"]["prices"] == {"Gold": 50_000}
    assert priced["after"]["prices"] == {"Gold": 60_000}
    assert cancelled["subject_name"] == "The Paper Boats"


async def test_filters_pages_and_the_end_of_the_log(house: House) -> None:
    for title in ("One", "Two", "Three"):
        await house.organiser.create("/events", an_event(title=title))
    me = house.organiser.who.account_id

    first = (await house.organiser.send("GET", "/audit-log", params={"size": 2})).json()
    second = (
        await house.organiser.send("GET", "/audit-log", params={"size": 1, "before": first["next"]})
    ).json()
    since = first["entries"][1]["at"]

    assert [entry["subject_name"] for entry in first["entries"]] == ["Three", "Two"]
    assert [entry["subject_name"] for entry in second["entries"]] == ["One"]
    assert first["head"] == {
        "number": first["entries"][0]["number"],
        "hash": first["entries"][0]["hash"],
    }
    assert len(await entries(house.organiser, since=since)) == 2
    assert (await newest(house.organiser, until=since))["subject_name"] == "One"
    assert await entries(house.organiser, since="2100-01-01T00:00:00Z") == []
    assert (await newest(house.organiser, action="venue.created"))["subject_name"] == "The Shed"
    assert await entries(house.organiser, actor=house.admin.who.account_id, action="event.created") == []
    assert len(await entries(house.organiser, actor=me, action="event.created", size=3)) == 3


async def test_an_organiser_reads_no_other_log(app: App, api: httpx2.AsyncClient, house: House) -> None:
    other = await sign_in_organiser(app, api)
    await other.create("/events", an_event(title="Theirs"))
    theirs = other.who.account_id

    refused = await house.organiser.send("GET", "/audit-log", params={"organisation": theirs})

    assert refused.status_code == 403
    assert [entry["subject_name"] for entry in await entries(other)] == ["Theirs"]
    assert (await newest(house.admin, organisation=theirs))["subject_name"] == "Theirs"


async def test_cities_and_sign_ins_of_staff_are_in_the_log_of_the_house(
    app: App, api: httpx2.AsyncClient, house: House
) -> None:
    email, password = "clerk-of-the-log@example.org", "a-long-enough-word"
    clerk = await app.account_admin.ensure_account(
        email=email, password=password, name="Clerk", role=Role.ORGANISER
    )

    await api.post("/api/v1/auth/login", json={"email": email, "password": password}, headers=HEADERS)

    entry = await newest(house.admin, action="account.signed_in", subject="account", id=str(clerk.account_id))
    assert (entry["actor"]["email"], entry["agent"]) == (email, "Desk/1.0")
    assert (await newest(house.admin, action="city.created"))["actor"] is not None


async def test_the_sheet_has_every_entry_and_itself(house: House) -> None:
    await house.organiser.create("/events", an_event(title="=HYPERLINK(1)"))

    sheet = await house.organiser.send("GET", "/audit-log.csv")

    rows = list(csv.DictReader(io.StringIO(sheet.text)))
    assert sheet.headers["content-type"].startswith("text/csv")
    assert rows[0]["action"] == "audit_log.exported"
    assert rows[1]["subject_name"] == "'=HYPERLINK(1)"
    assert [int(row["number"]) for row in rows] == list(range(len(rows), 0, -1))
