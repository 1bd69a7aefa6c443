"""The demo, indexed for search in a separate database without events of other tests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from holdfast.app import App, open_app
from holdfast.catalogue.event import Times
from holdfast.config import Config
from holdfast.demo.seed import populate
from holdfast.organisers.shows_store import PlannedShow, add_shows
from holdfast.search.query import EventSearchQuery, parse_search
from tests.support.second_ledger import a_ledger, beside


@asynccontextmanager
async def demo_listed(config: Config) -> AsyncIterator[App]:
    async with a_ledger(config.database_url) as url:
        async with open_app(await beside(config, url, 8)) as app:
            await populate(app, lambda _what, _done, _of: None)
            await play_the_rest(app)
            await app.search_index.reindex()
            yield app


async def play_the_rest(app: App) -> None:
    """The timetable of a fortnight leaves some events out, others on another day: give those a show, too."""
    rows = await app.postgres.fetch(
        "SELECT DISTINCT ON (event.id) event.id AS event_id, other.hall_id, other.layout_hash,"
        "       other.starts_at + interval '40 days' AS starts_at, other.currency,"
        "       array(SELECT category FROM price WHERE show_id = other.id) AS categories"
        "  FROM event"
        "  JOIN (SELECT show.*, kind FROM show JOIN event ON event.id = event_id) AS other USING (kind)"
        " WHERE event.id NOT IN (SELECT event_id FROM show WHERE starts_at > now())"
    )
    two_hours, now = timedelta(hours=2), datetime.now(UTC)
    planned = [
        PlannedShow(
            event_id=row["event_id"],
            hall_id=row["hall_id"],
            layout_hash=row["layout_hash"],
            times=Times(
                starts_at=row["starts_at"],
                ends_at=row["starts_at"] + two_hours,
                opens_at=now,
                closes_at=row["starts_at"],
            ),
            currency=row["currency"],
            prices=dict.fromkeys(row["categories"], 50_000),
        )
        for row in rows
    ]
    if planned:
        async with app.postgres.transaction() as tx:
            await add_shows(tx, planned)


async def titles(app: App, query: EventSearchQuery) -> list[str]:
    """The results, in order."""
    search = parse_search(query)
    search = await app.search.at(search, await app.search.point(search))
    _, hits = await app.search.find(search)
    events = await app.catalogue.events([hit.event_id for hit in hits[: search.size]])
    return [events[hit.event_id].title for hit in hits[: search.size]]
