"""The people and shows of the tests: a_show(seats=50), alice, bob."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import httpx2
import msgspec

from holdfast import pricing
from holdfast.accounts import NewAccount
from holdfast.app import App
from holdfast.catalogue import OrphanRule
from holdfast.catalogue.event import Times
from holdfast.catalogue.store import store_layout
from holdfast.layouts import Layout, LayoutBody
from holdfast.layouts.body import AreaBody, CategoryBody, RowBody, SectionBody
from holdfast.organisers.shows_store import PlannedShow, add_shows
from holdfast.pricing.terms import DEFAULT_TERMS
from holdfast.web.caller import Caller, Role

API = "/api/v1"
_numbers = count(1)


@dataclass(frozen=True)
class Fan:
    """A client with an account and a token."""

    account_id: int
    token: str
    api: httpx2.AsyncClient

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    async def holds(self, show_id: int, *seats: str, key: str | None = None, **wish: Any) -> httpx2.Response:
        """Named seats; or, with best={…} or places={…}, a wish."""
        body = {"seats": list(seats)} if seats else wish
        headers = self.headers | ({"Idempotency-Key": key} if key else {})
        return await self.api.post(f"{API}/shows/{show_id}/holds", json=body, headers=headers)

    async def get(self, path: str, **params: Any) -> httpx2.Response:
        return await self.api.get(API + path, headers=self.headers, params=params)

    async def post(self, path: str, body: Any = None, key: str | None = None) -> httpx2.Response:
        headers = self.headers | ({"Idempotency-Key": key} if key else {})
        return await self.api.post(API + path, headers=headers, json={} if body is None else body)

    async def delete(self, path: str) -> httpx2.Response:
        return await self.api.delete(API + path, headers=self.headers)


def a_layout(seats: int = 50, *, row: int = 10, standing: int = 0, name: str = "Hall") -> Layout:
    """Rows of `row` seats in one section, labels A-1, A-2 …; with `standing`, an area called Floor."""
    full, rest = divmod(seats, row)
    sizes = [row] * full + ([rest] if rest else [])
    rows = [
        RowBody(label=_letters(i), seats=f"1-{size}", at=(0.0, 2.0 + i), align="centre", category="Standard")
        for i, size in enumerate(sizes)
    ]
    outline = [(-5.0, 50.0), (5.0, 50.0), (5.0, 60.0)]
    areas = (
        [AreaBody(name="Floor", capacity=standing, outline=outline, category="Standard")] if standing else []
    )
    body = LayoutBody(
        name=name,
        focal=(0.0, 0.0),
        categories=[CategoryBody(name="Standard", colour="#0072B2")],
        sections=[SectionBody(name="Stalls", rows=rows)] if rows else [],
        areas=areas,
    )
    return Layout.build(body)


def _letters(i: int) -> str:
    """A … Z, AA, AB …"""
    first, last = divmod(i, 26)
    return (chr(64 + first) if first else "") + chr(65 + last)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How a show of the tests is sold, unless a test says otherwise."""

    price_minor: int = 1500
    hold_ttl_s: int = 600
    owner_seats_max: int = 10
    order_seats_max: int = 10
    orphan_rule: OrphanRule = OrphanRule.OFF
    opens_in_s: float = -3600
    closes_in_s: float = 86_400
    sold_on: pricing.Terms = DEFAULT_TERMS


async def a_show(app: App, seats: int = 50, layout: Layout | None = None, **terms: Any) -> int:
    """A show on sale, in a hall of its own."""
    layout, agreed = layout or a_layout(seats), Terms(**terms)
    await store_layout(app.postgres, layout)
    name, now = f"Test {next(_numbers)} {datetime.now(UTC).timestamp()}", datetime.now(UTC)
    starts = now + timedelta(days=2)
    times = Times(
        starts_at=starts,
        ends_at=starts + timedelta(hours=2),
        opens_at=now + timedelta(seconds=agreed.opens_in_s),
        closes_at=now + timedelta(seconds=agreed.closes_in_s),
    )
    async with app.postgres.transaction() as tx:
        city = await tx.fetchval(
            "INSERT INTO city (slug, name, country, timezone, lat, lon)"
            " VALUES ('testville', 'Testville', 'DE', 'Europe/Berlin', 50, 8)"
            " ON CONFLICT (slug) DO UPDATE SET name = excluded.name RETURNING id"
        )
        venue = await tx.fetchval(
            "INSERT INTO venue (city_id, name, address, postal_code, lat, lon)"
            " VALUES ($1, $2, 'Street 1', '12345', 50, 8) RETURNING id",
            city,
            name,
        )
        hall = await tx.fetchval(
            "INSERT INTO hall (venue_id, name, layout_hash) VALUES ($1, 'Hall', $2) RETURNING id",
            venue,
            layout.hash,
        )
        event = await tx.fetchval(
            "INSERT INTO event (organiser_id, kind, title, duration_min)"
            " VALUES (1, 'film', $1, 120) RETURNING id",
            name,
        )
        planned = PlannedShow(
            event_id=event,
            hall_id=hall,
            layout_hash=layout.hash,
            times=times,
            currency="EUR",
            prices={category.name: agreed.price_minor for category in layout.categories},
            hold_ttl_s=agreed.hold_ttl_s,
            owner_seats_max=agreed.owner_seats_max,
            order_seats_max=agreed.order_seats_max,
            orphan_rule=agreed.orphan_rule,
            terms=agreed.sold_on,
        )
        (show_id,) = await add_shows(tx, [planned])
    return show_id


async def fans(app: App, api: httpx2.AsyncClient, how_many: int, role: Role = Role.FAN) -> list[Fan]:
    """People with accounts in the ledger and tokens signed by the test."""
    names = [f"fan{next(_numbers)}-{datetime.now(UTC).timestamp()}@example.com" for _ in range(how_many)]
    ids = await app.accounts.add_many([NewAccount(name, name, role) for name in names])
    return [Fan(i, app.accounts.access_token(Caller(i, role, 1_000_000 + i)), api) for i in ids]


def problem(response: httpx2.Response) -> dict[str, Any]:
    assert response.headers["content-type"].startswith("application/problem+json"), response.text
    return msgspec.json.decode(response.content, type=dict[str, Any])
