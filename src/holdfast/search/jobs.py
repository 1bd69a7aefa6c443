"""Jobs that keep the search index up to date: facts mark what has changed, jobs rewrite it."""

import time
from collections.abc import Sequence

from holdfast.engines.loop import Job, Pause, WhenDue
from holdfast.engines.postgres import Queries
from holdfast.outbox import CityChanged, Consumer, EventChanged, Fact, VenueChanged
from holdfast.search.index import COUNTS_WAIT_S, SearchIndex
from holdfast.search.store import SearchStore

Q = Queries("holdfast.search", "index")
GROUP = "search"
SHOW_KINDS = ("show.on_sale", "show.changed", "show.cancelled")
KINDS = (
    *SHOW_KINDS,
    *(EventChanged.KIND, VenueChanged.KIND, CityChanged.KIND),
    *("booking.held", "booking.confirmed", "booking.expired", "booking.cancelled", "booking.failed"),
    *("booking.refunded", "booking.reduced", "booking.blocked"),
)
WRITE_PAUSE_S = 1.0
COUNTS_PAUSE_S = 1.0
PAST_PAUSE_S = 30.0
COUNT_PAUSE_S = 20.0
# Shorter than COUNTS_WAIT_S: changes of a show until then are included in the write that is already due.
REMEMBERED_S = COUNTS_WAIT_S * 0.75
REMEMBERED_MAX = 10_000


class SearchConsumer:
    """Marks the events and shows of facts as due; a repeated fact changes nothing."""

    def __init__(self, index: SearchIndex) -> None:
        self._index = index
        self._marked: dict[int, float] = {}

    async def handle_many(self, facts: Sequence[Fact]) -> None:
        """Many facts of a sale concern few shows: each show is marked once."""
        sold: dict[int, None] = {}
        for fact in facts:
            match fact.body:
                case EventChanged(event_id=event_id):
                    await self._index.mark_events([event_id])
                case VenueChanged(venue_id=venue_id):
                    await self._index.mark_at(venue_id=venue_id)
                case CityChanged(city_id=city_id):
                    await self._index.mark_at(city_id=city_id)
                case _ if fact.kind in SHOW_KINDS:
                    await self._index.mark_show(fact.show_id)
                case _:
                    sold[fact.show_id] = None
        for show_id in sold:
            await self._mark_counts(show_id)

    async def _mark_counts(self, show_id: int) -> None:
        """At most once per REMEMBERED_S for a show: a busy sale must not load the database with marks."""
        now = time.monotonic()
        if self._marked.get(show_id, 0.0) > now:
            return
        if await self._index.mark_counts(show_id):
            if len(self._marked) >= REMEMBERED_MAX:
                self._marked.clear()
            self._marked[show_id] = now + REMEMBERED_S


def build_consumer(index: SearchIndex) -> Consumer:
    return Consumer(group=GROUP, kinds=KINDS, call_many=SearchConsumer(index).handle_many)


def list_jobs(index: SearchIndex, search: SearchStore) -> list[tuple[Pause, Job]]:
    return [
        (COUNT_PAUSE_S, search.count_all),
        (WhenDue(Q.is_due, WRITE_PAUSE_S), index.write_due),
        (WhenDue(Q.is_due, COUNTS_PAUSE_S), index.write_counts),
        (PAST_PAUSE_S, index.mark_past),
    ]
