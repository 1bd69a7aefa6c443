"""An organiser who uses /admin over HTTP: from a layout to a show on sale."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import httpx2
import msgspec

from holdfast.app import App
from holdfast.web.caller import Role
from tests.support import shows as cast
from tests.support.shows import API, Fan

_numbers = count(1)


@dataclass(frozen=True)
class Organiser:
    """A client with the role of an organiser or admin."""

    who: Fan

    async def send(self, method: str, path: str, body: Any = None, **more: Any) -> httpx2.Response:
        headers = self.who.headers | more.pop("headers", {})
        if body is not None:
            more["json"] = body
        return await self.who.api.request(method, f"{API}/admin{path}", headers=headers, **more)

    async def create(self, path: str, body: Any, **more: Any) -> dict[str, Any]:
        made = await self.send("POST", path, body, **more)
        assert made.status_code == 201, made.text
        return msgspec.json.decode(made.content, type=dict[str, Any])


async def sign_in_organiser(app: App, api: httpx2.AsyncClient, role: Role = Role.ORGANISER) -> Organiser:
    return Organiser((await cast.fans(app, api, 1, role))[0])


def a_slug() -> str:
    return f"town-{next(_numbers)}-{int(datetime.now(UTC).timestamp() * 1000):x}"


def a_city(**other: Any) -> dict[str, Any]:
    city = {"name": "Testpur", "country": "IN", "timezone": "Asia/Kolkata", "lat": 19.0, "lon": 72.8}
    return {"slug": a_slug(), **city, **other}


def a_body(seats: str = "1-10", rows: str = "A-B", **other: Any) -> dict[str, Any]:
    """A small layout in our JSON format: rows in two categories."""
    return {
        "name": "Small hall",
        "focal": [0, -2],
        "categories": [{"name": "Gold", "colour": "#E69F00"}, {"name": "Silver", "colour": "#0072B2"}],
        "sections": [
            {
                "name": "Stalls",
                "rows": [
                    {"label": rows, "seats": seats, "category": "Gold"},
                    {"label": "Y-Z", "seats": seats, "at": [0, 9], "category": "Silver"},
                ],
            }
        ],
        **other,
    }


def an_event(**other: Any) -> dict[str, Any]:
    return {"kind": "concert", "title": "The Paper Boats", "duration_min": 90, **other}


def show_of(stage: "Stage", **other: Any) -> dict[str, Any]:
    starts_at = datetime.now(UTC) + timedelta(days=3)
    show = {
        "event_id": stage.event_id,
        "hall_id": stage.hall_id,
        "starts_at": starts_at.isoformat(),
        "currency": "INR",
        "prices": {"Gold": 50_000, "Silver": 20_000},
    }
    return {**show, **other}


@dataclass(frozen=True)
class Stage:
    """Everything that a show needs."""

    city_id: int
    city: str
    venue_id: int
    layout_hash: str
    hall_id: int
    event_id: int


async def a_stage(app: App, api: httpx2.AsyncClient, organiser: Organiser) -> Stage:
    admin = await sign_in_organiser(app, api, Role.ADMIN)
    city = await admin.create("/cities", a_city())
    where = {"name": "The Shed", "postal_code": "400001", "lat": 19.0, "lon": 72.8}
    venue = await organiser.create("/venues", {"city_id": city["id"], **where})
    layout = await organiser.create("/layouts", a_body())
    hall = await organiser.create(
        "/halls", {"venue_id": venue["id"], "name": "Big", "layout_hash": layout["hash"]}
    )
    event = await organiser.create("/events", an_event())
    return Stage(city["id"], city["slug"], venue["id"], layout["hash"], hall["id"], event["id"])
