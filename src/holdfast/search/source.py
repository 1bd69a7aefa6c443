"""What is on, row by row: events, their shows to come, and where. Search keeps its copy by it."""

from collections.abc import Sequence
from typing import Any

from holdfast.engines.postgres import Postgres
from holdfast.engines.sql import Queries

Q = Queries("holdfast.search", "source")


class SearchSource:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def event_count(self) -> int:
        return int(await self._postgres.fetchval(Q.event_count))

    async def event_ids_after(self, event_id: int, limit: int) -> list[int]:
        return [row["id"] for row in await self._postgres.fetch(Q.event_ids_after, event_id, limit)]

    async def events(self, event_ids: Sequence[int]) -> list[Any]:
        return await self._postgres.fetch(Q.events, list(event_ids))

    async def shows(self, event_ids: Sequence[int]) -> list[Any]:
        """The soonest first."""
        return await self._postgres.fetch(Q.shows, list(event_ids))

    async def venues(self, venue_ids: Sequence[int]) -> list[Any]:
        return await self._postgres.fetch(Q.venues, list(venue_ids))

    async def event_of_show(self, show_id: int) -> list[int]:
        """None when there is no such show."""
        return [row["event_id"] for row in await self._postgres.fetch(Q.event_of_show, show_id)]

    async def events_at(self, *, venue_id: int = 0, city_id: int = 0) -> list[int]:
        """Events with shows to come at a venue, or anywhere in a city."""
        return [row["event_id"] for row in await self._postgres.fetch(Q.events_at, venue_id, city_id)]
