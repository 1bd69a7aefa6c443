"""R1, R3, R4, R5: the public catalogue lists events, places, times, prices and free seats."""

from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import httpx2
import msgspec
import pytest

from holdfast.app import App
from holdfast.web.caller import Role
from tests.support.organiser import Organiser, Stage, an_event, show_of, sign_in_organiser
from tests.support.shows import API, Fan, problem


async def reads(api: httpx2.AsyncClient, path: str, **params: Any) -> dict[str, Any]:
    answer = await api.get(API + path, params=params)
    assert answer.status_code == 200, answer.text
    return msgspec.json.decode(answer.content, type=dict[str, Any])


async def test_cities_are_listed(api: httpx2.AsyncClient, stage: Stage) -> None:
    cities = (await reads(api, "/cities"))["cities"]

    [ours] = [city for city in cities if city["slug"] == stage.city]
    assert (ours["timezone"], ours["country"]) == ("Asia/Kolkata", "IN")


async def test_a_date_is_in_the_citys_time_zone(
    api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    half_past_midnight = "2031-05-01T00:30:00+05:30"  # the last day of April in UTC
    show = await organiser.create("/shows", show_of(stage, starts_at=half_past_midnight))

    may = await reads(api, "/events", city=stage.city, date="2031-05-01")
    april = await reads(api, "/events", city=stage.city, date="2031-04-30")

    assert [card["show_id"] for card in may["events"][0]["shows"]] == [show["id"]]
    assert may["events"][0]["shows"][0]["local_date"] == "2031-05-01"
    assert (april["total"], april["events"]) == (0, [])


async def test_a_listing_has_time_venue_price_and_seats(
    api: httpx2.AsyncClient, organiser: Organiser, stage: Stage, alice: Fan
) -> None:
    show = await organiser.create("/shows", show_of(stage))
    await alice.holds(show["id"], "A-1", "A-2")

    [event] = (await reads(api, "/events", city=stage.city))["events"]

    [card] = event["shows"]
    assert (event["title"], card["venue"], card["hall"]) == ("The Paper Boats", "The Shed", "Big")
    assert (card["from_price_minor"], card["currency"], card["sale_state"]) == (20_000, "INR", "ON_SALE")
    assert card["availability"] == {"seats": 40, "available": 38, "held": 2, "booked": 0, "blocked": 0}


async def test_listings_are_filtered_and_paged(
    api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    for place, kind in enumerate(("film", "concert", "film")):
        event = await organiser.create("/events", an_event(kind=kind, title=f"Evening {place}"))
        starts_at = (datetime.now(UTC) + timedelta(days=place + 1)).isoformat()
        await organiser.create("/shows", show_of(stage, event_id=event["id"], starts_at=starts_at))

    films = await reads(api, "/events", city=stage.city, kind="film")
    second = await reads(api, "/events", city=stage.city, page=2, size=2)

    assert [event["title"] for event in films["events"]] == ["Evening 0", "Evening 2"]
    assert (second["total"], [event["title"] for event in second["events"]]) == (3, ["Evening 2"])


async def test_an_event_has_its_shows(api: httpx2.AsyncClient, organiser: Organiser, stage: Stage) -> None:
    show = await organiser.create("/shows", show_of(stage))

    event = await reads(api, f"/events/{stage.event_id}")

    assert (event["shows_total"], event["shows"][0]["show_id"]) == (1, show["id"])
    assert event["poster"] == f"/posters/{stage.event_id}.svg"


async def test_a_show_has_all_that_a_buyer_needs(
    api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    made = await organiser.create("/shows", show_of(stage, hold_ttl_s=300, owner_seats_max=4))

    show = await reads(api, f"/shows/{made['id']}")

    assert (show["title"], show["venue"]["name"], show["hall"]) == ("The Paper Boats", "The Shed", "Big")
    assert [(price["category"], price["price_minor"]) for price in show["prices"]] == [
        ("Gold", 50_000),
        ("Silver", 20_000),
    ]
    assert (show["hold_ttl_s"], show["owner_seats_max"], show["order_seats_max"]) == (300, 4, 10)
    assert show["layout_url"] == f"/api/v1/shows/{made['id']}/layout?v={stage.layout_hash}"
    assert (await api.get(show["layout_url"])).json()["seats"] == show["availability"]["seats"] == 40


async def test_a_sale_has_five_states(api: httpx2.AsyncClient, organiser: Organiser, stage: Stage) -> None:
    now, hour = datetime.now(UTC), timedelta(hours=1)

    async def state(place: int, **other: Any) -> str:
        starts_at = (now + timedelta(days=place)).isoformat()
        show = await organiser.create("/shows", show_of(stage, **{"starts_at": starts_at, **other}))
        return str((await reads(api, f"/shows/{show['id']}"))["sale_state"])

    assert await state(1) == "ON_SALE"
    assert await state(2, opens_at=(now + hour).isoformat()) == "UPCOMING"
    closed = {"opens_at": (now - 2 * hour).isoformat(), "closes_at": (now - hour).isoformat()}
    assert await state(3, **closed) == "PAST"
    cancelled = await organiser.create(
        "/shows", show_of(stage, starts_at=(now + timedelta(days=4)).isoformat())
    )
    await organiser.send("PATCH", f"/shows/{cancelled['id']}", {"cancelled": True})
    assert (await reads(api, f"/shows/{cancelled['id']}"))["sale_state"] == "CANCELLED"


async def test_a_full_show_is_sold_out(api: httpx2.AsyncClient, app: App, a_show: Any, alice: Fan) -> None:
    show = await a_show(4)
    await alice.holds(show, "A-1", "A-2", "A-3", "A-4")

    page = await reads(api, f"/shows/{show}")

    assert (page["sale_state"], page["availability"]["available"]) == ("SOLD_OUT", 0)


async def test_a_venue_has_halls_and_shows(
    api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    show = await organiser.create("/shows", show_of(stage))

    venue = await reads(api, f"/venues/{stage.venue_id}")

    assert (venue["postal_code"], venue["halls"][0]["seats"]) == ("400001", 40)
    assert [card["show_id"] for card in venue["shows"]] == [show["id"]]


async def test_the_house_recommends_and_people_want(
    api: httpx2.AsyncClient, app: App, organiser: Organiser, stage: Stage, alice: Fan
) -> None:
    show = await organiser.create(
        "/shows", show_of(stage, starts_at=(datetime.now(UTC) + timedelta(hours=2)).isoformat())
    )
    admin = await sign_in_organiser(app, api, Role.ADMIN)
    await alice.holds(show["id"], *(f"A-{seat}" for seat in range(1, 11)))
    await admin.send("PATCH", f"/events/{stage.event_id}", {"featured": True})

    featured = await reads(api, "/events/featured")
    trending = await reads(api, "/events/trending")

    assert stage.event_id in {event["id"] for event in featured["events"]}
    assert stage.event_id in {event["id"] for event in trending["events"]}


async def test_a_client_with_the_current_page_gets_304(api: httpx2.AsyncClient, stage: Stage) -> None:
    first = await api.get(f"{API}/events/{stage.event_id}")

    again = await api.get(f"{API}/events/{stage.event_id}", headers={"If-None-Match": first.headers["ETag"]})

    assert first.headers["Cache-Control"].startswith("public, max-age=")
    assert (again.status_code, again.content) == (304, b"")


async def test_the_process_that_made_a_change_shows_it_at_once(
    api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    before = await reads(api, f"/events/{stage.event_id}")
    await organiser.send("PATCH", f"/events/{stage.event_id}", {"title": "The Glass Boats"})

    after = await reads(api, f"/events/{stage.event_id}")

    assert (before["title"], after["title"]) == ("The Paper Boats", "The Glass Boats")


async def test_a_poster_is_a_drawing_whatever_the_title(
    api: httpx2.AsyncClient, organiser: Organiser
) -> None:
    event = await organiser.create("/events", an_event(title="<script>\"&' v 日本"))

    poster = await api.get(f"/posters/{event['id']}.svg")

    assert poster.headers["Content-Type"].startswith("image/svg+xml")
    drawn = ElementTree.fromstring(poster.content)
    assert drawn.get("aria-label") == "<script>\"&' v 日本"
    assert not drawn.findall(".//{http://www.w3.org/2000/svg}script")


@pytest.mark.parametrize(
    "path, status, code",
    [
        ("/events?city=nowhere", 404, "no_such_city"),
        ("/events?city=a%00b", 422, "invalid"),
        ("/events?date=yesterday", 422, "invalid"),
        ("/events?kind=opera", 422, "invalid"),
        ("/events?page=0", 422, "invalid"),
        ("/events?size=101", 422, "invalid"),
        ("/events?sort=price", 422, "invalid"),
        ("/events/999999999", 404, "no_such_event"),
        ("/events/9999999999999999999", 404, "no_such_route"),
        ("/shows/999999999", 404, "no_such_show"),
        ("/venues/999999999", 404, "no_such_venue"),
    ],
)
async def test_bad_questions_get_clear_answers(
    api: httpx2.AsyncClient, path: str, status: int, code: str
) -> None:
    answer = await api.get(API + path)

    assert (answer.status_code, problem(answer)["code"]) == (status, code)


@pytest.mark.parametrize("date", ["0001-01-01", "9999-12-31"])
async def test_the_ends_of_the_calendar_are_empty_days(api: httpx2.AsyncClient, date: str) -> None:
    assert (await reads(api, "/events", date=date))["total"] == 0


@pytest.mark.parametrize("name", ["x.svg", "1.png", "1", "999999999.svg", "1" * 40 + ".svg"])
async def test_there_is_no_poster_without_an_event(api: httpx2.AsyncClient, name: str) -> None:
    assert (await api.get(f"/posters/{name}")).status_code == 404
