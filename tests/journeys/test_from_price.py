"""R3: a "from" price is that of a seat a buyer can have now, on every page and in every list."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import msgspec
import pytest

from holdfast.app import App
from holdfast.config import Config
from tests.support.html_page import opens
from tests.support.opened import open_app
from tests.support.organiser import Organiser, Stage, show_of
from tests.support.searchable_events import index_event
from tests.support.shows import API

GOLD = [f"{row}-{seat}" for row in "AB" for seat in range(1, 11)]
SILVER = [f"{row}-{seat}" for row in "YZ" for seat in range(1, 11)]


async def reads(api: httpx2.AsyncClient, path: str, **params: Any) -> dict[str, Any]:
    answer = await api.get(API + path, params=params)
    assert answer.status_code == 200, answer.text
    return msgspec.json.decode(answer.content, type=dict[str, Any])


async def sell(app: App, organiser: Organiser, stage: Stage, *seats: str, **show: Any) -> int:
    """A show in which these seats are gone, as the index sees it a moment later."""
    starts_at = (datetime.now(UTC) + timedelta(hours=2)).isoformat()
    made = await organiser.create("/shows", show_of(stage, starts_at=starts_at, **show))
    await index_event(app, stage.event_id)
    if seats:
        await organiser.create(f"/shows/{made['id']}/blocks", {"seats": list(seats), "name": "sold"})
        await app.search_index.mark_counts(made["id"])
        await app.postgres.execute("UPDATE listing_due SET due_at = now() WHERE what = 'counts'")
        while await app.search_index.write_counts():
            pass
    return int(made["id"])


@pytest.mark.parametrize(
    ("gone", "price"),
    [((), 20_000), (SILVER[1:], 20_000), (SILVER, 50_000), (GOLD, 20_000), (SILVER + GOLD, None)],
    ids=["nothing sold", "one cheap seat left", "cheap seats sold", "dear seats sold", "sold out"],
)
async def test_the_from_price_is_that_of_a_seat_which_is_free(
    app: App,
    api: httpx2.AsyncClient,
    organiser: Organiser,
    stage: Stage,
    gone: list[str],
    price: int | None,
) -> None:
    await sell(app, organiser, stage, *gone)

    listed = (await reads(api, "/events", city=stage.city))["events"]
    found = (await reads(api, "/search", city=stage.city))["events"]
    event = await reads(api, f"/events/{stage.event_id}")
    venue = await reads(api, f"/venues/{stage.venue_id}")

    for card in (listed[0]["shows"][0], found[0]["shows"][0], event["shows"][0], venue["shows"][0]):
        assert card["from_price_minor"] == price
        assert (card["from_lines"] is None) == (price is None)
        assert price is None or card["from_lines"]["price_minor"] == price


async def test_the_price_is_found_without_redis_and_without_a_rebuild(
    app: App, config: Config, organiser: Organiser, stage: Stage
) -> None:
    show_id = await sell(app, organiser, stage, *SILVER)
    epoch = await app.postgres.fetchval("SELECT epoch FROM sale WHERE show_id = $1", show_id)
    nowhere = replace(config, redis_url="unix:///nowhere.sock", redis_timeout_ms=50)

    async with open_app(nowhere) as cut_off:
        free = await cut_off.seatmap.free_categories(show_id, taken=20)

    assert free == {"Gold"}
    assert await app.postgres.fetchval("SELECT epoch FROM sale WHERE show_id = $1", show_id) == epoch


async def test_pages_name_the_price_of_a_free_seat(
    app: App, api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    await sell(app, organiser, stage, *SILVER)

    for path in (
        f"/?city={stage.city}",
        f"/find?city={stage.city}",
        f"/events/{stage.event_id}",
        f"/venues/{stage.venue_id}",
    ):
        page = await opens(api, path)
        assert "from ₹500" in page.text, path
        assert "₹200" not in page.text, path


async def test_a_sold_out_event_has_no_price_and_no_call_to_action(
    app: App, api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    show_id = await sell(app, organiser, stage, *SILVER, *GOLD)

    for path in (
        f"/?city={stage.city}",
        f"/find?city={stage.city}",
        f"/events/{stage.event_id}",
        f"/venues/{stage.venue_id}",
    ):
        page = await opens(api, path)
        assert "Sold out" in page.text, path
        for words in ("from ₹", "Get tickets", "Choose seats"):
            assert words not in page.text, (path, words)
        assert f"/shows/{show_id}" in page.links("/shows/") or path.startswith("/?")

    [block] = (await opens(api, f"/events/{stage.event_id}")).data_blocks
    offer = msgspec.json.decode(block)["@graph"][0]["offers"]
    assert offer["availability"] == "https://schema.org/SoldOut"
    assert "price" not in offer


async def test_a_price_filter_and_the_price_order_use_the_price_of_a_free_seat(
    app: App, api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    await sell(app, organiser, stage, *SILVER)

    cheap = await reads(api, "/search", city=stage.city, price_max_minor=30_000)
    dear = await reads(api, "/search", city=stage.city, price_min_minor=40_000)

    assert (cheap["total"], dear["total"]) == (0, 1)


async def test_sold_out_events_come_last_in_the_price_order(
    app: App, api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    other = await organiser.create("/events", {"kind": "film", "title": "Dear Film", "duration_min": 90})
    await sell(app, organiser, stage, *SILVER, *GOLD)
    await organiser.create("/shows", show_of(stage, event_id=other["id"]))
    await index_event(app, other["id"])

    page = await reads(api, "/search", city=stage.city, sort="price", size=1)
    rest = await reads(api, "/search", city=stage.city, sort="price", size=1, cursor=page["next_cursor"])

    assert [event["id"] for event in (*page["events"], *rest["events"])] == [other["id"], stage.event_id]
    assert rest["next_cursor"] is None
