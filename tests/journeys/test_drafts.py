"""Events, shows and venues are drafted, published, unpublished, and deleted while nothing is sold (R33)."""

import asyncio
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.bookings import from_public_id
from holdfast.web.caller import Role
from tests.support.organiser import Organiser, Stage, a_stage, an_event, show_of, sign_in_organiser
from tests.support.shows import API, Fan, fans, problem

FREE = {"Gold": 0, "Silver": 0}  # confirmed as soon as it is held


@dataclass(frozen=True)
class House:
    app: App
    api: httpx2.AsyncClient
    organiser: Organiser
    stage: Stage
    buyers: list[Fan]

    async def event(self, **other: Any) -> int:
        return int((await self.organiser.create("/events", an_event(**other)))["id"])

    async def show(self, **other: Any) -> int:
        """In a hall of its own: shows at the same time do not meet."""
        hall = {"venue_id": self.stage.venue_id, "layout_hash": self.stage.layout_hash}
        made = await self.organiser.create("/halls", {**hall, "name": f"Hall {next(_halls)}"})
        wanted = {"prices": FREE, "hall_id": made["id"], **other}
        return int((await self.organiser.create("/shows", show_of(self.stage, **wanted)))["id"])

    async def change(self, path: str, **change: Any) -> None:
        answer = await self.organiser.send("PATCH", path, change)
        assert answer.status_code == 200, answer.text
        self.app.catalogue.clear_cached_responses()

    async def status(self, path: str) -> int:
        return (await self.api.get(API + path)).status_code

    async def is_found(self, event_id: int, title: str) -> bool:
        await self.app.search_index.mark_events([event_id])
        while await self.app.search_index.write_due():
            pass
        found = (await self.api.get(f"{API}/search", params={"q": title})).json()
        return title in [event["title"] for event in found["events"]]


_halls = iter(range(1, 10_000))


@pytest.fixture(scope="module")
async def house(app: App, api: httpx2.AsyncClient) -> House:
    organiser = await sign_in_organiser(app, api)
    return House(app, api, organiser, await a_stage(app, api, organiser), await fans(app, api, 12))


async def test_a_draft_is_seen_by_its_organiser_alone(house: House) -> None:
    event = await house.event(title="Zephyrine drafted", published=False)
    show = await house.show(event_id=event)

    listed = (await house.api.get(f"{API}/events", params={"size": 100})).json()["events"]
    held = await house.buyers[0].holds(show, "A-1")

    assert await house.status(f"/events/{event}") == 404
    assert await house.status(f"/shows/{show}") == 404
    assert await house.status(f"/shows/{show}/seats") == 404
    assert await house.status(f"/shows/{show}/layout") == 404
    assert (await house.api.get(f"/shows/{show}")).status_code == 404
    assert (await house.api.get(f"/events/{event}")).status_code == 404
    assert event not in [one["id"] for one in listed]
    assert not await house.is_found(event, "Zephyrine drafted")
    assert (held.status_code, problem(held)["code"]) == (403, "not_on_sale")
    own = await house.organiser.send("GET", f"/events/{event}")
    assert own.json()["published"] is False


async def test_publishing_an_event_shows_and_sells_it(house: House) -> None:
    event = await house.event(title="Quillfeather printed", published=False)
    show = await house.show(event_id=event)

    await house.change(f"/events/{event}", published=True)
    held = await house.buyers[0].holds(show, "A-1")

    assert await house.status(f"/events/{event}") == 200
    assert await house.status(f"/shows/{show}") == 200
    assert await house.is_found(event, "Quillfeather printed")
    assert held.status_code == 201, held.text
    log = (
        await house.organiser.send("GET", "/audit-log", params={"subject": "event", "id": str(event)})
    ).json()
    assert [entry["action"] for entry in log["entries"]] == ["event.published", "event.created"]


async def test_a_draft_show_of_a_public_event_is_hidden(house: House) -> None:
    event = await house.event()
    show = await house.show(event_id=event, published=False)

    assert await house.status(f"/shows/{show}") == 404
    assert (await house.api.get(f"{API}/events/{event}")).json()["shows"] == []
    await house.change(f"/shows/{show}", published=True)
    assert await house.status(f"/shows/{show}") == 200


async def test_unpublishing_ends_the_sale_and_tickets_stay_valid(house: House) -> None:
    show, buyer = await house.show(), house.buyers[1]
    booking = (await buyer.holds(show, "A-1")).json()["booking_id"]

    await house.change(f"/shows/{show}", published=False)
    late = await house.buyers[2].holds(show, "A-2")

    assert await house.status(f"/shows/{show}") == 404
    assert late.status_code == 403
    assert (await buyer.get(f"/bookings/{booking}")).json()["state"] == "confirmed"
    assert len((await buyer.get(f"/bookings/{booking}/tickets")).json()["tickets"]) == 1
    await house.change(f"/shows/{show}", published=True)
    assert (await house.buyers[2].holds(show, "A-2")).status_code == 201


async def test_an_unpublished_venue_hides_its_shows(app: App, api: httpx2.AsyncClient) -> None:
    organiser = await sign_in_organiser(app, api)
    stage = await a_stage(app, api, organiser)
    house = House(app, api, organiser, stage, [])
    show = await house.show()

    await house.change(f"/venues/{stage.venue_id}", published=False)

    assert await house.status(f"/venues/{stage.venue_id}") == 404
    assert await house.status(f"/shows/{show}") == 404
    await house.change(f"/venues/{stage.venue_id}", published=True)
    assert await house.status(f"/shows/{show}") == 200


async def test_an_unsold_show_is_deleted_and_its_hall_is_free(house: House) -> None:
    show = await house.show()
    row = (await house.organiser.send("GET", f"/shows/{show}")).json()

    deleted = await house.organiser.send("DELETE", f"/shows/{show}")
    again = await house.organiser.send("DELETE", f"/shows/{show}")
    same_place = show_of(house.stage, hall_id=row["hall_id"], starts_at=row["starts_at"], prices=FREE)

    assert (deleted.status_code, again.status_code) == (204, 404)
    assert (await house.organiser.send("GET", f"/shows/{show}")).status_code == 404
    assert await house.status(f"/shows/{show}") == 404
    assert (await house.buyers[0].holds(show, "A-1")).status_code in (403, 404)
    await house.organiser.create("/shows", same_place)


async def test_a_show_with_a_booking_is_not_deleted(house: House) -> None:
    event = await house.event()
    show = await house.show(event_id=event, prices={"Gold": 100, "Silver": 100})
    held = (await house.buyers[3].holds(show, "A-1")).json()

    refused = [await house.organiser.send("DELETE", path) for path in (f"/shows/{show}", f"/events/{event}")]

    assert [(one.status_code, problem(one)["show_id"]) for one in refused] == [(409, show)] * 2
    await house.buyers[3].delete(f"/bookings/{held['booking_id']}")
    assert (await house.organiser.send("DELETE", f"/events/{event}")).status_code == 204
    assert (await house.organiser.send("GET", f"/events/{event}")).status_code == 404
    assert (await house.organiser.send("GET", f"/shows/{show}")).status_code == 404


async def test_a_first_hold_and_a_deletion_at_once_have_one_winner(house: House) -> None:
    """Never a booking in a deleted show: each round either sells or deletes."""
    outcomes = []
    for place in range(12):
        show = await house.show()
        first = asyncio.create_task(house.organiser.send("DELETE", f"/shows/{show}")) if place % 2 else None
        holds = [asyncio.create_task(fan.holds(show, best={"count": 1})) for fan in house.buyers[:6]]
        deletion = first or asyncio.create_task(house.organiser.send("DELETE", f"/shows/{show}"))
        answers = await asyncio.gather(*holds)
        is_deleted = (await deletion).status_code == 204

        sold = [answer for answer in answers if answer.status_code == 201]
        live = await house.app.postgres.fetchval("SELECT count(*) FROM taken_seat WHERE show_id = $1", show)
        assert live == len(sold)
        assert bool(sold) != is_deleted
        outcomes.append(is_deleted)
        for answer in sold:
            assert from_public_id(answer.json()["booking_id"])[0] == show
    assert len(outcomes) == 12


async def test_a_venue_is_deleted_when_no_show_is_left(app: App, api: httpx2.AsyncClient) -> None:
    organiser = await sign_in_organiser(app, api)
    stage = await a_stage(app, api, organiser)
    show = (await organiser.create("/shows", show_of(stage)))["id"]
    hall, venue = f"/halls/{stage.hall_id}", f"/venues/{stage.venue_id}"

    in_use = [await organiser.send("DELETE", path) for path in (hall, venue)]
    await organiser.send("DELETE", f"/shows/{show}")
    deleted = await organiser.send("DELETE", venue)

    assert [(one.status_code, problem(one)["show_id"]) for one in in_use] == [(409, show)] * 2
    assert deleted.status_code == 204
    late = await organiser.send("POST", "/shows", show_of(stage))
    assert (late.status_code, problem(late)["code"]) == (404, "no_such_hall")
    left = (await organiser.send("GET", "/venues", params={"size": 200})).json()["venues"]
    assert stage.venue_id not in [one["id"] for one in left]


async def test_others_delete_nothing(app: App, api: httpx2.AsyncClient, house: House) -> None:
    stranger, show, event = await sign_in_organiser(app, api), await house.show(), await house.event()
    shared = await (await sign_in_organiser(app, api, Role.ADMIN)).create(
        "/venues",
        {"city_id": house.stage.city_id, "name": "Town hall", "postal_code": "1", "lat": 1.0, "lon": 1.0},
    )

    for path in (f"/shows/{show}", f"/events/{event}", f"/venues/{house.stage.venue_id}"):
        assert (await stranger.send("DELETE", path)).status_code == 404
    assert (await stranger.send("DELETE", f"/venues/{shared['id']}")).status_code == 403
