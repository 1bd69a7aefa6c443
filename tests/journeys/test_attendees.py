"""Organisers find bookings and attendees of their own shows: by reference, id, mail, name and seat (R33)."""

import csv
import io
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from holdfast.accounts import NewAccount
from holdfast.app import App
from holdfast.bookings import from_public_id
from holdfast.web.caller import Caller, Role
from tests.support.organiser import Organiser, a_stage, show_of, sign_in_organiser
from tests.support.shows import Fan, problem

FREE = {"Gold": 0, "Silver": 0}  # confirmed as soon as it is held


@dataclass(frozen=True)
class Sold:
    """A show of one organiser with bookings of two people."""

    organiser: Organiser
    stranger: Organiser  # another organiser
    show_id: int
    event_id: int
    name: str  # of the first buyer, as no other person is called
    email: str
    first: dict[str, Any]
    second: dict[str, Any]
    buyer: Fan


@pytest.fixture(scope="module")
async def sold(app: App, api: httpx2.AsyncClient) -> Sold:
    organiser, stranger = await sign_in_organiser(app, api), await sign_in_organiser(app, api)
    stage = await a_stage(app, api, organiser)
    show = await organiser.create("/shows", show_of(stage, prices=FREE))
    word = secrets.token_hex(6)
    name, email = f"Ahana Q{word} Rao", f"ahana-{word}@example.org"
    first_id, second_id = await app.accounts.add_many(
        [NewAccount(email, name, Role.FAN), NewAccount(f"bela-{word}@example.org", "Bela", Role.FAN)]
    )
    ahana, bela = (
        Fan(i, app.accounts.access_token(Caller(i, Role.FAN, 2_000_000 + i)), api)
        for i in (first_id, second_id)
    )
    first = (await ahana.holds(show["id"], "A-1", "A-2")).json()
    second = (await bela.holds(show["id"], "B-1")).json()
    return Sold(organiser, stranger, show["id"], stage.event_id, f"q{word}", email, first, second, ahana)


async def found(who: Organiser, **wanted: Any) -> list[str]:
    """The ids of the bookings, newest first."""
    answer = await who.send("GET", "/bookings", params=wanted)
    assert answer.status_code == 200, answer.text
    return [one["booking_id"] for one in answer.json()["bookings"]]


WAYS: dict[str, Callable[[Sold], dict[str, Any]]] = {
    "reference": lambda sold: {"q": sold.first["reference"]},
    "reference in small letters": lambda sold: {"q": f" {sold.first['reference'].lower()} "},
    "id": lambda sold: {"q": sold.first["booking_id"]},
    "mail": lambda sold: {"q": sold.email.upper()},
    "name": lambda sold: {"q": sold.name},
    "beginnings of two words": lambda sold: {"q": f"ra {sold.name[:9]}"},
    "name in a show": lambda sold: {"q": sold.name, "show": sold.show_id},
    "mail in a show": lambda sold: {"q": sold.email, "show": sold.show_id},
    "reference in a show": lambda sold: {"q": sold.first["reference"], "show": sold.show_id},
    "seat": lambda sold: {"q": "A-2", "show": sold.show_id},
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_booking_is_found(sold: Sold, way: str) -> None:
    wanted = WAYS[way](sold)

    assert await found(sold.organiser, **wanted) == [sold.first["booking_id"]]


@pytest.mark.parametrize("way", WAYS)
async def test_another_organiser_finds_nothing(sold: Sold, way: str) -> None:
    answer = await sold.stranger.send("GET", "/bookings", params=WAYS[way](sold))

    assert answer.json().get("bookings", []) == []
    assert answer.status_code in (200, 404)


async def test_an_admin_finds_it_too(app: App, api: httpx2.AsyncClient, sold: Sold) -> None:
    admin = await sign_in_organiser(app, api, Role.ADMIN)

    assert await found(admin, q=sold.email) == [sold.first["booking_id"]]


@pytest.mark.parametrize("q", ["'", "\\", "!!!", ":*", "a:*&b", "%", "' OR 1=1 --", "()", "🎭", "@", "A-99"])
async def test_a_strange_term_finds_nothing(sold: Sold, q: str) -> None:
    assert await found(sold.organiser, q=q, show=sold.show_id) == []
    assert await found(sold.organiser, q=q) == []


async def test_all_bookings_of_a_show_or_an_event_by_pages(sold: Sold) -> None:
    both = [sold.second["booking_id"], sold.first["booking_id"]]

    page = (await sold.organiser.send("GET", "/bookings", params={"show": sold.show_id, "size": 1})).json()

    assert [one["booking_id"] for one in page["bookings"]] == both[:1]
    assert await found(sold.organiser, show=sold.show_id, before=page["next"]) == both[1:]
    assert await found(sold.organiser, event=sold.event_id) == both
    assert await found(sold.organiser, show=sold.show_id, state="refunded") == []
    assert await found(sold.organiser, show=sold.show_id, state="all") == both
    refused = await sold.organiser.send("GET", "/bookings")
    assert (refused.status_code, problem(refused)["field"]) == (422, "q")


async def test_a_found_booking_has_what_a_clerk_needs(sold: Sold) -> None:
    answer = await sold.organiser.send("GET", f"/bookings/{sold.first['booking_id']}")
    foreign = await sold.stranger.send("GET", f"/bookings/{sold.first['booking_id']}")

    page = answer.json()
    assert (page["booking"]["seats"], page["booking"]["state"]) == (["A-1", "A-2"], "confirmed")
    assert page["booking"]["buyer"]["email"] == sold.email
    assert page["booking"]["title"] == "The Paper Boats"
    assert page["steps"][-1]["state"] == "confirmed"
    assert [ticket["seat"] for ticket in page["tickets"]] == ["A-1", "A-2"]
    assert foreign.status_code == 404


async def test_attendees_are_the_holders_of_tickets(app: App, sold: Sold) -> None:
    _, number = from_public_id(sold.first["booking_id"])
    await app.postgres.execute(
        "UPDATE ticket SET owner_email = 'guest@example.org' WHERE show_id = $1 AND number = $2 AND seat ="
        " (SELECT max(seat) FROM ticket WHERE show_id = $1 AND number = $2)",
        sold.show_id,
        number,
    )
    path = f"/shows/{sold.show_id}/attendees"

    first = (await sold.organiser.send("GET", path, params={"size": 2})).json()
    rest = (await sold.organiser.send("GET", path, params={"after": first["next"]})).json()

    people = [(one["seat"], one["email"], one["state"]) for one in first["attendees"]]
    assert people == [("A-1", sold.email, "valid"), ("A-2", "guest@example.org", "valid")]
    assert first["attendees"][1]["buyer_email"] == sold.email
    assert ([one["seat"] for one in rest["attendees"]], rest["next"]) == (["B-1"], None)
    assert await found(sold.organiser, q="guest@example.org") == [sold.first["booking_id"]]
    assert (await sold.stranger.send("GET", path)).status_code == 404


async def test_sheets_have_every_row_and_are_in_the_audit_log(sold: Sold) -> None:
    bookings = await sold.organiser.send("GET", "/bookings.csv", params={"show": sold.show_id})
    attendees = await sold.organiser.send("GET", f"/shows/{sold.show_id}/attendees.csv")

    rows = list(csv.DictReader(io.StringIO(bookings.text)))
    assert [row["reference"] for row in rows] == [sold.second["reference"], sold.first["reference"]]
    assert rows[1]["seats"] == "A-1 A-2"
    assert [row["seat"] for row in csv.DictReader(io.StringIO(attendees.text))] == ["A-1", "A-2", "B-1"]
    log = (await sold.organiser.send("GET", "/audit-log", params={"size": 2})).json()["entries"]
    assert [entry["action"] for entry in log] == ["attendees.exported", "bookings.exported"]


async def test_fans_find_nothing_here(sold: Sold) -> None:
    for path in ("/admin/bookings", f"/admin/shows/{sold.show_id}/attendees.csv"):
        assert (await sold.buyer.get(path, q="x")).status_code == 403
