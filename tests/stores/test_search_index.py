"""The index follows the catalogue and the sale: facts mark changes, and a job writes them soon after."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from holdfast.app import App
from holdfast.engines.errors import EngineDown
from holdfast.engines.postgres import Postgres, require_row
from holdfast.layouts import Layout
from holdfast.organisers.forms import CityChange, EventChange, VenueChange
from holdfast.organisers.show_forms import ShowChange
from holdfast.organisers.shows_store import ShowEditor
from holdfast.organisers.store import CatalogueEditor
from holdfast.outbox import Fact
from holdfast.search import SearchIndex, SearchSource
from holdfast.search.jobs import KINDS, SearchConsumer
from holdfast.search.query import EventSearchQuery, parse_search
from holdfast.web.caller import Scope
from tests.support.fact_recorder import FactRecorder, relayed, turns_are_free
from tests.support.own_engines import hold
from tests.support.searchable_events import a_word
from tests.support.show_fixture import an_owner
from tests.support.shows import a_layout

AShow = Callable[..., Any]
ADMIN = Scope(0, is_admin=True)


def hearing(app: App) -> Callable[[Fact], Awaitable[None]]:
    """One listener, one fact at a time."""
    listener = SearchConsumer(app.search_index)

    async def hear(fact: Fact) -> None:
        await listener.handle_many([fact])

    return hear


@pytest.fixture
def office(app: App) -> CatalogueEditor:
    return CatalogueEditor(app.postgres, ADMIN)


@dataclass
class Reader:
    """The facts of every database: those of organisers are at home, those of a sale where it is."""

    app: App
    recorders: list[FactRecorder]

    async def consume(self) -> None:
        await self.app.outbox.settle(1_000_000)
        for one in self.recorders:
            one.meanwhile = hearing(self.app)
            await relayed(one.app)
            await one.consume()

    @property
    def received(self) -> list[Fact]:
        return [fact for one in self.recorders for fact in one.received]


@pytest.fixture
async def reader(app: App) -> Reader:
    recorders = [FactRecorder(each, kinds=KINDS) for each in app.router.by_name.values()]
    for one in recorders:
        await turns_are_free(one.app)
        await one.open()
    return Reader(app, recorders)


async def index_new_facts(reader: Reader) -> None:
    """Handle new facts and write the index, without waiting for the counts of busy shows."""
    app = reader.app
    await reader.consume()
    while await app.search_index.write_due():
        pass
    await app.postgres.execute("UPDATE listing_due SET due_at = now()")
    while await app.search_index.write_counts():
        pass


async def found(app: App, words: str, **filters: Any) -> list[int]:
    """Numbers of the events that have exactly these words."""
    search = parse_search(EventSearchQuery(q=words, **filters))
    meaning = await app.search.interpret(search.words)
    if meaning.has_no_match or meaning.is_corrected or meaning.match != "all":
        return []
    return [hit.event_id for hit in await app.search.hits(search, meaning)]


async def of_show(app: App, show_id: int, column: str) -> Any:
    return (await app.catalogue.show_detail(show_id))[column]


async def test_a_new_show_is_found_and_a_cancelled_one_is_not(
    app: App, a_show: AShow, reader: Reader, office: CatalogueEditor
) -> None:
    show_id, word = await a_show(), a_word()
    event_id = await of_show(app, show_id, "event_id")
    await office.change_event(event_id, EventChange(title=word))
    await index_new_facts(reader)

    assert await found(app, word) == [event_id]

    desk = ShowEditor(app.postgres, app.catalogue, app.config, ADMIN)
    await desk.change_show(show_id, ShowChange(cancelled=True))
    await index_new_facts(reader)

    assert await found(app, word) == []
    assert await uses(app, word) is None


async def test_an_event_is_found_by_its_new_title_and_not_by_the_old_one(
    app: App, a_show: AShow, reader: Reader, office: CatalogueEditor
) -> None:
    event_id = await of_show(app, await a_show(), "event_id")
    old, new, person = a_word(), a_word(), a_word()
    await office.change_event(event_id, EventChange(title=old))
    await index_new_facts(reader)

    await office.change_event(event_id, EventChange(title=new, people=[f"Ada {person}"]))
    await index_new_facts(reader)

    assert await found(app, new) == await found(app, person) == [event_id]
    assert await found(app, old) == []
    assert (await uses(app, old), await uses(app, new)) == (None, 1)


async def test_a_venue_and_a_city_are_found_by_their_new_names(
    app: App, a_show: AShow, reader: Reader, office: CatalogueEditor
) -> None:
    show_id, venue, city = await a_show(), a_word(), a_word()
    event_id = await of_show(app, show_id, "event_id")
    city_id = await of_show(app, show_id, "city_id")
    await index_new_facts(reader)

    await office.change_venue(await of_show(app, show_id, "venue_id"), VenueChange(name=venue))
    await office.change_city(city_id, CityChange(name=city))
    await index_new_facts(reader)

    assert await found(app, venue) == [event_id]
    assert await found(app, f"{venue} {city}") == [event_id]
    await office.change_city(city_id, CityChange(name="Testville"))


async def test_seats_taken_are_counted_and_make_an_event_popular(
    app: App, a_show: AShow, reader: Reader
) -> None:
    show_id = await a_show(4)
    event_id, title = await of_show(app, show_id, "event_id"), await of_show(app, show_id, "title")
    await index_new_facts(reader)
    assert await found(app, title, only_available=True) == [event_id]

    bookings = [await hold(app, show_id, an_owner(), *seats) for seats in ((0, 1), (2, 3))]
    await index_new_facts(reader)

    assert await found(app, title, only_available=True) == []
    assert await listed(app, event_id) == (-4.0, 4, 4)
    await app.holds.cancel(bookings[0])
    await index_new_facts(reader)
    assert await found(app, title, only_available=True) == [event_id]
    assert await listed(app, event_id) == (-2.0, 2, 2)


async def test_a_hot_show_is_put_on_the_list_once(app: App, a_show: AShow, reader: Reader) -> None:
    show_id = await a_show(20)
    await index_new_facts(reader)
    for seat in range(0, 20, 2):
        await hold(app, show_id, an_owner(), seat)

    await reader.consume()

    due = await app.postgres.fetch(
        "SELECT due_at FROM listing_due WHERE what = 'counts' AND id = $1", show_id
    )
    assert len(due) == 1
    assert due[0]["due_at"] > datetime.now(UTC)


async def test_the_same_fact_again_changes_nothing(app: App, a_show: AShow, reader: Reader) -> None:
    show_id = await a_show()
    event_id, title = await of_show(app, show_id, "event_id"), await of_show(app, show_id, "title")
    await index_new_facts(reader)
    before = await uses(app, "testville")

    for fact in [fact for fact in reader.received if fact.show_id == show_id]:
        await hearing(app)(fact)
    while await app.search_index.write_due():
        pass

    assert await uses(app, "testville") == before
    assert await found(app, title) == [event_id]


async def test_what_has_ended_is_not_found_any_more(app: App, a_show: AShow, reader: Reader) -> None:
    show_id = await a_show()
    event_id, title = await of_show(app, show_id, "event_id"), await of_show(app, show_id, "title")
    await index_new_facts(reader)
    yesterday = datetime.now(UTC) - timedelta(days=1)
    await app.postgres.execute(
        "UPDATE show SET starts_at = $2, ends_at = $3, opens_at = $4, closes_at = $2 WHERE id = $1",
        *(show_id, yesterday - timedelta(hours=2), yesterday, yesterday - timedelta(days=9)),
    )
    await app.postgres.execute("UPDATE listing_show SET ends_at = $2 WHERE show_id = $1", show_id, yesterday)

    await app.search_index.mark_past()
    while await app.search_index.write_due():
        pass

    assert await found(app, title) == []
    assert await app.postgres.fetchval("SELECT count(*) FROM listing WHERE event_id = $1", event_id) == 0


async def test_a_failed_index_write_is_still_due(app: App, postgres: Postgres, a_show: AShow) -> None:
    show_id = await a_show()
    event_id = await of_show(app, show_id, "event_id")
    away = Postgres("postgresql://unknown@127.0.0.1:1/none", pool_max=1, timeout_s=1)
    while await app.search_index.write_due():
        pass
    await app.search_index.mark_events([event_id])

    with pytest.raises(EngineDown):
        await SearchIndex(postgres, SearchSource(away), app.seatmap).write_due()

    due = await app.postgres.fetch("SELECT id FROM listing_due WHERE what = 'event'")
    assert [row["id"] for row in due] == [event_id]


async def test_a_change_during_a_write_is_written_again(app: App, postgres: Postgres, a_show: AShow) -> None:
    event_id = await of_show(app, await a_show(), "event_id")
    while await app.search_index.write_due():
        pass

    class Restless(SearchSource):
        """Another client changes the event after it was read."""

        async def shows(self, event_ids: Sequence[int]) -> list[Any]:
            rows = await super().shows(event_ids)
            await app.search_index.mark_events([event_id])
            return rows

    await app.search_index.mark_events([event_id])
    await SearchIndex(postgres, Restless(postgres), app.seatmap).write_due()

    assert await app.postgres.fetchval("SELECT count(*) FROM listing_due WHERE id = $1", event_id) == 1
    assert await app.search_index.write_due() == 1
    assert await app.search_index.write_due() == 0


@pytest.mark.alone
async def test_marking_does_not_wait_for_a_write(app: App, a_show: AShow) -> None:
    """Two connections, and a writer that needs both: marking must not occupy the second one."""
    event_id = await of_show(app, await a_show(), "event_id")
    few = Postgres(app.config.database_url, pool_max=2, timeout_s=5)
    index = SearchIndex(few, SearchSource(few), app.seatmap)
    try:
        async with asyncio.timeout(4):
            await asyncio.gather(
                *(index.mark_events([event_id]) for _ in range(40)), *(index.write_due() for _ in range(4))
            )
    finally:
        await few.close()


async def test_a_reindex_adds_missing_documents_and_removes_stale_ones(app: App, a_show: AShow) -> None:
    show_id = await a_show()
    event_id, title = await of_show(app, show_id, "event_id"), await of_show(app, show_id, "title")
    await app.postgres.execute("TRUNCATE listing, listing_show, listing_word, listing_venue, listing_due")
    await app.postgres.execute(
        "INSERT INTO listing (event_id, title, kind, language, genre, language_name, genre_name, cities,"
        " dates, currency, from_price_minor, ends_at, soonest_s, unrated, brief, doc, words)"
        " VALUES (9000000000, 'Gone', 'film', '', '', '', '', '{}', '{}', 'EUR', 0, 'infinity', 0, 0, '',"
        " '''goneforever'':1A', '{}')"
    )
    progress: list[tuple[int, int]] = []

    await app.search_index.reindex(lambda _what, done, total: progress.append((done, total)))

    assert await found(app, title) == [event_id]
    assert await found(app, "goneforever") == []
    assert progress[-1][0] == progress[-1][1] > 0
    assert await miscounted_words(app) == []


@pytest.mark.parametrize("wheelchair", [None, "1, 2"])
async def test_a_hall_is_accessible_if_it_has_spaces_for_wheelchairs(
    app: App, a_show: AShow, wheelchair: str | None
) -> None:
    plain = a_layout(20)
    source = plain.source()
    [section] = source.sections
    rows = [msgspec.structs.replace(row, wheelchair=wheelchair) for row in section.rows]
    hall = Layout.build(
        msgspec.structs.replace(source, sections=[msgspec.structs.replace(section, rows=rows)])
    )
    show_id = await a_show(layout=hall)
    title, event_id = await of_show(app, show_id, "title"), await of_show(app, show_id, "event_id")
    await app.search_index.mark_show(show_id)
    while await app.search_index.write_due():
        pass

    assert await found(app, title, accessible=True) == ([event_id] if wheelchair else [])
    assert await found(app, title) == [event_id]


async def uses(app: App, word: str) -> int | None:
    count: int | None = await app.postgres.fetchval("SELECT uses FROM listing_word WHERE word = $1", word)
    return count


async def listed(app: App, event_id: int) -> tuple[float, int, int]:
    """Its popularity, upside down; and the seats taken and wanted in its shows."""
    row = require_row(
        await app.postgres.fetchrow(
            "SELECT unpopular, sum(taken)::int AS taken, sum(wanted)::int AS wanted"
            "  FROM listing JOIN listing_show USING (event_id) WHERE event_id = $1 GROUP BY unpopular",
            event_id,
        )
    )
    return row["unpopular"], row["taken"], row["wanted"]


async def miscounted_words(app: App) -> list[Any]:
    return await app.postgres.fetch(
        "SELECT * FROM listing_word FULL JOIN"
        " (SELECT word, count(*) AS really FROM listing, unnest(words) AS word GROUP BY word) AS counted"
        " USING (word) WHERE uses IS DISTINCT FROM really"
    )
