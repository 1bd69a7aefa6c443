"""R4, R5: the cached show of the hold path; and the demo's programme."""

import asyncio
import gc
import time
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from holdfast.app import App
from holdfast.catalogue import Catalogue, NoSuchShow
from holdfast.catalogue.store import store_layout
from holdfast.config import Config
from holdfast.demo.programme import DAYS
from holdfast.demo.seed import DemoFacts, populate
from holdfast.engines.errors import EngineDown
from holdfast.engines.postgres import Postgres, require_row
from holdfast.organisers.show_forms import ShowChange
from holdfast.organisers.shows_store import ShowEditor
from holdfast.web.caller import Scope
from holdfast.web.response_cache import CacheableResponse
from tests.support import shows as cast
from tests.support.opened import open_app

AShow = Callable[..., Any]


async def test_a_show_is_read_once_and_peeked_at_after(app: App, a_show: AShow) -> None:
    show_id, catalogue = await a_show(20), Catalogue(app.postgres)

    before = catalogue.peek(show_id)
    show = await catalogue.show_on_sale(show_id)

    assert before is None
    assert catalogue.peek(show_id) is show
    assert await catalogue.show_on_sale(show_id) is show
    assert (show.prices, show.currency, show.layout.seat_count) == ((1500,), "EUR", 20)


async def test_shows_of_one_hall_share_its_layout(app: App) -> None:
    layout, catalogue = cast.a_layout(30, name="Shared"), Catalogue(app.postgres)
    ids = [await cast.a_show(app, layout=layout) for _ in range(2)]

    first, second = [await catalogue.show_on_sale(show_id) for show_id in ids]

    assert first.layout is second.layout
    assert first.layout.hash == layout.hash


async def test_layouts_take_no_more_memory_than_allowed(app: App) -> None:
    """By bytes: many small halls fit where a few stadiums do not. The one used least recently goes."""
    small = [cast.a_layout(seats, name="Small") for seats in (11, 12, 13)]
    large = cast.a_layout(200, name="Large")
    catalogue = Catalogue(app.postgres, layout_bytes_max=large.weight + small[0].weight + 1000)
    for layout in small:
        await store_layout(app.postgres, layout)
        await catalogue.layout(layout.hash)
    await store_layout(app.postgres, large)
    cached = [await catalogue.layout(layout.hash) for layout in small]
    await catalogue.layout(small[0].hash)

    await catalogue.layout(large.hash)

    assert await catalogue.layout(small[0].hash) is cached[0]
    assert await catalogue.layout(small[1].hash) is not cached[1]


async def test_a_dropped_layout_is_not_held_in_memory_by_its_shows_and_maps(config: Config) -> None:
    async with open_app(replace(config, layout_cache_mb=0)) as small:
        layout = cast.a_layout(30, name=f"Dropped {time.time_ns()}")
        show_id = await cast.a_show(small, layout=layout)
        dropped = weakref.ref((await small.seatmap.snapshot(show_id)).layout)
        assert dropped() is not None

        other = await cast.a_show(small, layout=cast.a_layout(31, name="Another"))
        await small.seatmap.snapshot(other)
        gc.collect()

        assert dropped() is None
        assert (await small.seatmap.snapshot(show_id)).layout.hash == layout.hash


async def test_a_show_that_is_not_there_is_refused(app: App) -> None:
    with pytest.raises(NoSuchShow):
        await Catalogue(app.postgres).show_on_sale(2**62)


async def test_a_reader_that_knows_a_later_revision_gets_it(app: App, a_show: AShow) -> None:
    show_id, catalogue, elsewhere = await a_show(10), Catalogue(app.postgres), Catalogue(app.postgres)
    before = await catalogue.show_on_sale(show_id)
    schedule = ShowEditor(app.postgres, elsewhere, app.config, Scope(0, is_admin=True))
    changed = await schedule.change_show(show_id, ShowChange(prices={"Standard": 1700}))

    still = await catalogue.show_at_revision(show_id, before.revision)
    now = await catalogue.show_at_revision(show_id, changed.revision)

    assert still is before
    assert (now.revision, now.prices) == (changed.revision, (1700,))


async def test_a_change_moves_the_sale_with_it(app: App, a_show: AShow) -> None:
    show_id, opens_at = await a_show(10), datetime.now(UTC) + timedelta(hours=5)
    schedule = ShowEditor(app.postgres, Catalogue(app.postgres), app.config, Scope(0, is_admin=True))
    before = require_row(await app.postgres.fetchrow("SELECT * FROM sale WHERE show_id = $1", show_id))

    await schedule.change_show(show_id, ShowChange(opens_at=opens_at, owner_seats_max=3))

    after = require_row(await app.postgres.fetchrow("SELECT * FROM sale WHERE show_id = $1", show_id))
    assert (after["opens_at"], after["owner_seats_max"], after["revision"]) == (opens_at, 3, 2)
    assert after["epoch"] > before["epoch"]


async def test_browsing_works_while_postgres_is_down(app: App, config: Config, tmp_path: Path) -> None:
    show_id, other_id = await cast.a_show(app, 10), await cast.a_show(app, 10)
    made = 0

    async def page() -> str:
        nonlocal made
        made += 1
        return f"{made} {(await catalogue.show_detail(show_id))['title']}"

    async with a_line_to(config.database_url, tmp_path) as line:
        catalogue = Catalogue(line.postgres, fresh_s=0)
        show = await catalogue.show_on_sale(show_id)
        ready = await catalogue.pages.get(CacheableResponse(("show", show_id), page))
        line.cut()

        assert await catalogue.show_on_sale(show_id) is show
        assert await catalogue.pages.get(CacheableResponse(("show", show_id), page)) is ready
        with pytest.raises(EngineDown):
            await catalogue.show_on_sale(other_id)


class Line:
    """A way to the ledger that can be cut."""

    def __init__(self, postgres: Postgres) -> None:
        self.postgres = postgres
        self.server: asyncio.Server | None = None
        self._calls: list[asyncio.StreamWriter] = []

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str) -> None:
        there, back = await asyncio.open_unix_connection(target)
        self._calls += [writer, back]
        await asyncio.gather(_pump(reader, back), _pump(there, writer))

    def cut(self) -> None:
        assert self.server is not None
        self.server.close()
        for writer in self._calls:
            writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
    writer.close()


@asynccontextmanager
async def a_line_to(url: str, folder: Path) -> AsyncIterator[Line]:
    query = parse_qs(urlsplit(url).query)
    host, port = query["host"][0], query.get("port", ["5432"])[0]
    name = f".s.PGSQL.{port}"
    line = Line(Postgres(url.replace(host, str(folder)), pool_max=2, timeout_s=2))
    line.server = await asyncio.start_unix_server(
        lambda r, w: line.carry(r, w, f"{host}/{name}"), path=str(folder / name)
    )
    yield line
    line.cut()
    await line.postgres.close()


@pytest.fixture(scope="module")
async def facts(app: App) -> DemoFacts:
    return await populate(app, lambda what, done, of: None)


async def test_the_demo_is_a_populated_box_office(app: App, facts: DemoFacts) -> None:
    titles = {show["title"] for show in facts.shows}
    seats = {show["seats"] for show in facts.shows}

    assert {account["role"] for account in facts.accounts} == {"fan", "organiser", "gate", "admin"}
    assert len(titles) >= 30
    assert 200 <= len(facts.shows) <= 800
    assert any(150 <= n <= 250 for n in seats)
    assert any(1_800 <= n <= 2_200 for n in seats)
    assert 50_000 in seats


async def test_the_demo_names_its_five_shows_first(app: App, facts: DemoFacts) -> None:
    free, soon, nearly, stadium, small = facts.shows[:5]

    opens_in = datetime.fromisoformat(soon["opens_at"]) - datetime.now(UTC)
    taken = (await app.seatmap.counts_many([nearly["id"]]))[nearly["id"]]
    assert free["price"] == 0
    assert timedelta(seconds=60) < opens_in <= timedelta(minutes=2)
    assert nearly["seats"] - sum(taken.values()) == 4
    assert stadium["seats"] == 50_000
    assert small["price"] > 0
    assert 150 <= small["seats"] <= 250


async def test_the_demo_sells_in_several_currencies_on_terms_its_prices_can_bear(
    app: App, facts: DemoFacts
) -> None:
    one_of_each = {(show["currency"], show["price"] > 0): show["id"] for show in facts.shows}

    shows = [await app.catalogue.show_on_sale(show_id) for show_id in one_of_each.values()]

    assert {show.currency for show in shows} == {"EUR", "GBP", "INR", "JPY"}
    for show in shows:
        show.terms.check(show.prices)
        assert show.terms.tax_bp > 0
        assert all(line.fee_minor > 0 for line in show.lines if line.price_minor > 0)
        assert show.terms.refund_policy.steps


async def test_starting_the_demo_again_adds_nothing(app: App, facts: DemoFacts) -> None:
    again = await populate(app, lambda what, done, of: None)

    assert [show["id"] for show in again.shows] == [show["id"] for show in facts.shows]
    assert datetime.fromisoformat(again.shows[1]["opens_at"]) > datetime.fromisoformat(
        facts.shows[1]["opens_at"]
    )


async def test_the_demo_has_an_early_price_and_a_concert_priced_by_demand(app: App, facts: DemoFacts) -> None:
    ids = [show["id"] for show in facts.shows]
    again = await populate(app, lambda what, done, of: None)
    rows = await app.postgres.fetch("SELECT show_id FROM price_plan WHERE show_id = ANY ($1)", ids)

    shows = [await app.catalogue.show_on_sale(row["show_id"]) for row in rows]

    assert again.shows[0]["id"] == facts.shows[0]["id"]
    assert len(shows) == 2
    assert all(soon for show in shows for soon in show.moving.values())  # each has a step by time to come
    assert all(len(show.moving) == len(show.layout.categories) for show in shows)


async def test_the_demo_plays_in_the_future_only(app: App, facts: DemoFacts) -> None:
    ids = [show["id"] for show in facts.shows]
    span = require_row(
        await app.postgres.fetchrow(
            "SELECT min(starts_at) AS first, max(starts_at) AS last FROM show WHERE id = ANY ($1)", ids
        )
    )

    assert span["first"] > datetime.now(UTC)
    assert span["last"] < datetime.now(UTC) + timedelta(days=DAYS + 1)


@pytest.mark.parametrize("cache_mb", [0, 1])
async def test_maps_take_no_more_memory_than_allowed(config: Config, cache_mb: int) -> None:
    """By bytes: the map that was read least recently goes. The last one stays, however large it is."""
    async with open_app(replace(config, map_cache_mb=cache_mb)) as small:
        shows = [await cast.a_show(small, seats=30) for _ in range(2)]
        first, last = [await small.seatmap.newest(show) for show in shows]

        assert await small.seatmap.newest(shows[1]) is last  # unchanged: it is not read again
        assert (await small.seatmap.newest(shows[0]) is first) == (cache_mb == 1)
