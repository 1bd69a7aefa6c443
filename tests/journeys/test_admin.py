"""R33: organisers create and change their own objects, and do not see those of others."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import msgspec
import pytest

from holdfast.app import App
from holdfast.demo.halls import stadium
from holdfast.web.caller import Role
from tests.support.organiser import Organiser, Stage, a_body, a_city, an_event, show_of, sign_in_organiser
from tests.support.shows import Fan, problem

DAY = timedelta(days=1)


@pytest.fixture
async def admin(app: App, api: httpx2.AsyncClient) -> Organiser:
    return await sign_in_organiser(app, api, Role.ADMIN)


@pytest.fixture
async def rival(app: App, api: httpx2.AsyncClient) -> Organiser:
    return await sign_in_organiser(app, api)


def refused(response: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    assert response.status_code == status, response.text
    body = problem(response)
    assert body["code"] == code
    return body


async def test_a_created_show_can_be_sold(organiser: Organiser, stage: Stage, alice: Fan) -> None:
    show = await organiser.create("/shows", show_of(stage))

    held = await alice.holds(show["id"], "A-1", "Z-1")

    assert held.status_code == 201, held.text
    assert held.json()["amount"] == 70_000
    assert show["sale_state"] == "ON_SALE"
    assert show["seats"] == 40


async def test_a_new_price_is_for_new_holds(organiser: Organiser, stage: Stage, alice: Fan, bob: Fan) -> None:
    show = await organiser.create("/shows", show_of(stage))
    first = (await alice.holds(show["id"], "A-1")).json()

    changed = await organiser.send("PATCH", f"/shows/{show['id']}", {"prices": {"Gold": 60_000}})
    second = (await bob.holds(show["id"], "A-3")).json()

    assert changed.status_code == 200, changed.text
    assert changed.json()["prices"] == {"Gold": 60_000, "Silver": 20_000}
    assert changed.json()["revision"] == 2
    assert second["amount"] == 60_000
    assert (await alice.get(f"/bookings/{first['booking_id']}")).json()["amount"] == 50_000


async def test_a_cancelled_show_sells_nothing_and_stays_cancelled(
    organiser: Organiser, stage: Stage, alice: Fan
) -> None:
    show = await organiser.create("/shows", show_of(stage))

    cancelled = await organiser.send("PATCH", f"/shows/{show['id']}", {"cancelled": True})
    again = await organiser.send("PATCH", f"/shows/{show['id']}", {"cancelled": False})
    held = await alice.holds(show["id"], "A-1")

    assert cancelled.json()["sale_state"] == "CANCELLED"
    refused(again, 409, "show_cancelled")
    refused(held, 403, "not_on_sale")


async def test_a_change_that_changes_nothing_leaves_the_revision(organiser: Organiser, stage: Stage) -> None:
    show = await organiser.create("/shows", show_of(stage))

    same = await organiser.send("PATCH", f"/shows/{show['id']}", {})

    assert same.json() == show


async def test_organisers_cannot_see_or_change_each_others_data(
    organiser: Organiser, rival: Organiser, stage: Stage
) -> None:
    show = await organiser.create("/shows", show_of(stage))

    for path in (f"/events/{stage.event_id}", f"/shows/{show['id']}", f"/layouts/{stage.layout_hash}"):
        assert (await organiser.send("GET", path)).status_code == 200
        assert (await rival.send("GET", path)).status_code == 404
    refused(await rival.send("PATCH", f"/events/{stage.event_id}", {"title": "Mine"}), 404, "no_such_event")
    refused(await rival.send("PATCH", f"/shows/{show['id']}", {"cancelled": True}), 404, "no_such_show")
    refused(await rival.send("PATCH", f"/venues/{stage.venue_id}", {"name": "Mine"}), 404, "no_such_venue")
    refused(await rival.send("PATCH", f"/halls/{stage.hall_id}", {"name": "Mine"}), 404, "no_such_hall")
    refused(await rival.send("POST", "/shows", show_of(stage)), 404, "no_such_event")
    assert (await rival.send("GET", "/events")).json() == {"total": 0, "events": []}
    assert (await rival.send("GET", "/shows")).json() == {"total": 0, "shows": []}
    venues = (await rival.send("GET", "/venues?size=200")).json()["venues"]
    assert stage.venue_id not in {venue["id"] for venue in venues}


async def test_a_rival_cannot_use_a_hall_that_is_not_theirs(
    organiser: Organiser, rival: Organiser, stage: Stage
) -> None:
    event = await rival.create("/events", an_event())
    hall = {"venue_id": stage.venue_id, "name": "Annex", "layout_hash": stage.layout_hash}

    refused(await rival.send("POST", "/shows", show_of(stage, event_id=event["id"])), 404, "no_such_hall")
    refused(await rival.send("POST", "/halls", hall), 404, "no_such_venue")


async def test_an_admin_may_change_everything(admin: Organiser, organiser: Organiser, stage: Stage) -> None:
    show = await organiser.create("/shows", show_of(stage))

    closed = await admin.send("PATCH", f"/shows/{show['id']}", {"hold_ttl_s": 120, "orphan_rule": "refuse"})

    assert (closed.json()["hold_ttl_s"], closed.json()["orphan_rule"]) == (120, "refuse")


async def test_the_house_is_used_by_all_and_changed_by_admins(
    admin: Organiser, organiser: Organiser, stage: Stage
) -> None:
    where = {"city_id": stage.city_id, "name": "The House", "postal_code": "1", "lat": 0, "lon": 0}
    venue = await admin.create("/venues", where)
    hall = {"venue_id": venue["id"], "name": "One", "layout_hash": stage.layout_hash}
    made = await admin.create("/halls", hall)

    show = await organiser.send("POST", "/shows", show_of(stage, hall_id=made["id"]))

    assert show.status_code == 201, show.text
    refused(
        await organiser.send("PATCH", f"/venues/{venue['id']}", {"name": "Ours"}), 403, "not_for_organisers"
    )
    refused(await organiser.send("POST", "/halls", hall | {"name": "Two"}), 403, "not_for_organisers")
    refused(await organiser.send("POST", "/events", an_event(featured=True)), 403, "not_for_organisers")
    assert (await organiser.send("POST", "/cities", a_city())).status_code == 403


async def test_fans_and_strangers_may_not_use_admin(alice: Fan, api: httpx2.AsyncClient) -> None:
    assert (await alice.get("/admin/events")).status_code == 403
    assert (await api.get("/api/v1/admin/events")).status_code == 401


NOW = datetime.now(UTC)


@pytest.mark.parametrize(
    "other, status, code",
    [
        ({"ends_at": (NOW + DAY).isoformat()}, 422, "bad_window"),
        ({"opens_at": (NOW + 4 * DAY).isoformat()}, 422, "bad_window"),
        ({"closes_at": (NOW + 9 * DAY).isoformat()}, 422, "bad_window"),
        ({"starts_at": "0001-01-01T00:00:00+14:00"}, 422, "bad_window"),
        ({"starts_at": "9999-12-31T23:59:59-14:00"}, 422, "bad_window"),
        ({"starts_at": "2031-01-01T00:00:00"}, 422, "invalid"),
        ({"prices": {"Gold": 1, "Silver": 1, "Tin": 1}}, 422, "unknown_category"),
        ({"prices": {"Gold": 1}}, 422, "unpriced_category"),
        ({"prices": {"Gold": -1, "Silver": 1}}, 422, "invalid"),
        ({"prices": {"Gold": 10**12, "Silver": 1}}, 422, "invalid"),
        ({"hall_id": 2**62}, 404, "no_such_hall"),
        ({"event_id": 2**63}, 422, "invalid"),
        ({"currency": "RUPEES"}, 422, "invalid"),
        ({"currency": "IN\n"}, 422, "invalid"),
        ({"hold_ttl_s": 0}, 422, "invalid"),
        ({"order_seats_max": 11}, 422, "invalid"),
        ({"colour": "red"}, 422, "invalid"),
    ],
)
async def test_a_show_that_cannot_be_is_refused(
    organiser: Organiser, stage: Stage, other: dict[str, Any], status: int, code: str
) -> None:
    answer = await organiser.send("POST", "/shows", show_of(stage, **other))

    refused(answer, status, code)
    assert (await organiser.send("GET", "/shows")).json()["total"] == 0


@pytest.mark.parametrize(
    "path, body, code",
    [
        ("/cities", a_city(timezone="Mars/Olympus"), "invalid"),
        ("/cities", a_city(lat=91), "invalid"),
        ("/cities", a_city(name="a\x00b"), "invalid"),
        ("/cities", a_city(slug="Not A Slug"), "invalid"),
        ("/cities", a_city(slug="town\n"), "invalid"),
        ("/events", an_event(title="x" * 161), "invalid"),
        ("/events", an_event(poster="javascript:alert(1)"), "invalid"),
        ("/events", an_event(rating=10.1), "invalid"),
        ("/events", an_event(duration_min=1e9), "invalid"),
        ("/layouts", a_body(sections=[]), "bad_layout"),
        ("/layouts", a_body(name="x" * 61), "invalid"),
    ],
)
async def test_bad_fields_are_refused_by_name(
    admin: Organiser, path: str, body: dict[str, Any], code: str
) -> None:
    refused(await admin.send("POST", path, body), 422, code)


async def test_names_are_not_given_twice(admin: Organiser, organiser: Organiser, stage: Stage) -> None:
    hall = {"venue_id": stage.venue_id, "name": "Big", "layout_hash": stage.layout_hash}

    assert refused(await organiser.send("POST", "/halls", hall), 409, "name_taken")["field"] == "name"
    assert (
        refused(await admin.send("POST", "/cities", a_city(slug=stage.city)), 409, "name_taken")["field"]
        == "slug"
    )


async def test_a_hall_has_one_show_at_a_time(organiser: Organiser, stage: Stage) -> None:
    first = await organiser.create("/shows", show_of(stage))
    later = datetime.fromisoformat(first["ends_at"])

    clash = await organiser.send("POST", "/shows", show_of(stage, starts_at=(later - DAY / 48).isoformat()))
    after = await organiser.create("/shows", show_of(stage, starts_at=later.isoformat()))
    moved = await organiser.send("PATCH", f"/shows/{after['id']}", {"starts_at": first["starts_at"]})

    assert refused(clash, 409, "hall_busy")["show_id"] == first["id"]
    refused(moved, 409, "hall_busy")


async def test_the_same_key_makes_one_event(organiser: Organiser) -> None:
    key = {"Idempotency-Key": "make-it-once"}

    first = await organiser.create("/events", an_event(), headers=key)
    second = await organiser.create("/events", an_event(), headers=key)

    assert first == second
    assert (await organiser.send("GET", "/events")).json()["total"] == 1


async def test_a_shows_layout_grows_and_nothing_else(organiser: Organiser, stage: Stage, alice: Fan) -> None:
    show = await organiser.create("/shows", show_of(stage))
    await alice.holds(show["id"], "A-1")
    grown = await organiser.create(f"/layouts?grows_from={stage.layout_hash}", a_body(rows="A-C"))
    other = await organiser.create("/layouts", a_body(seats="1-8"))

    smaller = await organiser.send("PATCH", f"/shows/{show['id']}", {"layout_hash": other["hash"]})
    bigger = await organiser.send("PATCH", f"/shows/{show['id']}", {"layout_hash": grown["hash"]})

    refused(smaller, 409, "layout_in_use")
    assert bigger.json()["seats"] == 50
    held = await alice.holds(show["id"], "C-4")
    assert held.status_code == 201, held.text


async def test_layouts_come_in_from_other_programs(organiser: Organiser) -> None:
    table = "section,row,seat,category\nStalls,A,1,Gold\nStalls,A,2,Gold\nStalls,B,1,Silver\n"

    csv = await organiser.send(
        "POST", "/layouts/import?name=Barn", content=table, headers={"Content-Type": "text/csv"}
    )
    odd = await organiser.send("POST", "/layouts/import", content="a", headers={"Content-Type": "image/png"})
    broken = await organiser.send(
        "POST", "/layouts/import", content="{", headers={"Content-Type": "application/json"}
    )

    assert csv.status_code == 201, csv.text
    assert (csv.json()["name"], csv.json()["seats"]) == ("Barn", 3)
    refused(odd, 415, "unsupported_media_type")
    assert "text/csv" in odd.json()["detail"]
    refused(broken, 422, "bad_layout")
    layout = (await organiser.send("GET", f"/layouts/{csv.json()['hash']}")).json()
    assert (await organiser.create("/layouts", layout))["hash"] == csv.json()["hash"]


async def test_a_stadium_can_be_brought_in(organiser: Organiser) -> None:
    drawing = msgspec.json.decode(msgspec.json.encode(stadium()))

    layout = await organiser.create("/layouts", drawing)

    assert layout["seats"] == 50_000


async def test_lists_come_in_pages_with_a_total(organiser: Organiser) -> None:
    for number in range(3):
        await organiser.create("/events", an_event(title=f"Evening {number}"))

    second = (await organiser.send("GET", "/events?page=2&size=2")).json()
    beyond = (await organiser.send("GET", "/events?page=9&size=2")).json()

    assert (second["total"], [event["title"] for event in second["events"]]) == (3, ["Evening 2"])
    assert (beyond["total"], beyond["events"]) == (3, [])


async def test_an_event_is_changed_field_by_field(organiser: Organiser) -> None:
    event = await organiser.create("/events", an_event(rating=7.5, people=["Ann"]))

    changed = await organiser.send("PATCH", f"/events/{event['id']}", {"rating": None, "genre": "Folk"})

    assert changed.json() == event | {"rating": None, "genre": "Folk"}
