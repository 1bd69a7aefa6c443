"""Reads the history of one show from PostgreSQL and builds its replay beside the event loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from holdfast.catalogue import Catalogue, ShowOnSale
from holdfast.engines.aside import run_aside
from holdfast.engines.cache import Cache
from holdfast.engines.postgres import Postgres, Queries, Row
from holdfast.replay.changes import Move, SeatChanges
from holdfast.replay.sale import DemandPoint, QueueLog, ReplayedSale, SaleHistory, build_sale
from holdfast.replay.scene import build_document

Q = Queries("holdfast.replay")

PAGE = 1_000  # moves that one statement reads: the loop decodes them in a few milliseconds
DEMAND_PAGE = 100  # rows, each with up to 100 000 seats
CHANGES_MAX = 500_000  # of seats: about 30 MB while a replay is built
WANTED_MAX = 1_000_000  # counts of wanted seats
FRESH_S = 10.0  # the page and its animation are two requests
CACHED_BYTES_MAX = 10_000_000

QueueSource = Callable[[int], Awaitable[QueueLog]]


async def no_queue(_show_id: int) -> QueueLog:
    """The log of a show without a waiting room."""
    return QueueLog()


@dataclass(frozen=True, slots=True)
class Replay:
    title: str
    timezone: str
    labels: tuple[str, ...]  # of the most wanted seats
    sale: ReplayedSale
    document: bytes  # JSON: scene.py


class Replays:
    """`queue_of` is where a waiting room joins: it returns what the room of a show has logged."""

    def __init__(self, postgres: Postgres, catalogue: Catalogue, queue_of: QueueSource = no_queue) -> None:
        self._postgres = postgres
        self._catalogue = catalogue
        self._queue_of = queue_of
        self._building = asyncio.Lock()  # one at a time: memory, and the thread beside the loop
        self._cached: Cache[int, Replay] = Cache(
            self.build,
            fresh_s=FRESH_S,
            stale_max_s=FRESH_S,
            size_max=CACHED_BYTES_MAX,
            weigh=lambda replay: len(replay.document) + len(replay.sale.events),
        )

    async def load(self, show_id: int) -> Replay:
        """At most FRESH_S old. The caller has checked that the show belongs to the organiser."""
        return await self._cached.get(show_id)

    async def build(self, show_id: int) -> Replay:
        async with self._building:
            return await self._build(show_id)

    async def _build(self, show_id: int) -> Replay:
        show = await self._catalogue.show_on_sale(show_id)
        timezone = str((await self._catalogue.show_detail(show_id))["timezone"])
        until = await self._postgres.fetchval(Q.now)
        changes, is_cut = await self._load_changes(show_id, until)
        history = SaleHistory(
            seats=show.layout.seat_count,
            opens_at=show.opens_at,
            changes=changes,
            demand=[each async for each in self._demand(show_id, until)],
            queue=await self._queue_of(show_id),
            is_cut=is_cut,
        )
        return await run_aside(_encode, show, timezone, history)

    async def _load_changes(self, show_id: int, until: datetime) -> tuple[SeatChanges, bool]:
        reader, after = _MoveReader(), (0, 0)
        while rows := await self._postgres.fetch(Q.moves_after, show_id, *after, PAGE, until):
            await run_aside(reader.add, rows)
            after = (rows[-1]["number"], rows[-1]["id"])
            if len(reader.changes) >= CHANGES_MAX:
                return reader.changes, True
        reader.end_booking()
        return reader.changes, False

    async def _demand(self, show_id: int, until: datetime) -> AsyncIterator[DemandPoint]:
        after, wanted = 0, 0
        while rows := await self._postgres.fetch(Q.demand_after, show_id, after, DEMAND_PAGE, until):
            for row in rows:
                wanted += len(row["seats"])
                pairs = sorted(zip(row["seats"], row["times"], strict=True)) if wanted <= WANTED_MAX else []
                yield DemandPoint(row["at_us"], row["refused"], tuple(pairs))
            after = rows[-1]["id"]


class _MoveReader:
    """Collects the moves of each booking, which may be on two pages."""

    def __init__(self) -> None:
        self.changes = SeatChanges()
        self._number = 0
        self._moves: list[Move] = []
        self._seats: Sequence[int] = ()

    def add(self, rows: Sequence[Row]) -> None:
        for row in rows:
            if row["seats"] is None:  # retention deleted the booking in this moment
                continue
            if row["number"] != self._number:
                self.end_booking()
                self._number, self._seats = row["number"], row["seats"]
            self._moves.append(Move(row["id"], row["move"], row["state"], row["at_us"], row["moved_seats"]))

    def end_booking(self) -> None:
        self.changes.add_booking(self._moves, self._seats)
        self._moves = []


def _encode(show: ShowOnSale, timezone: str, history: SaleHistory) -> Replay:
    sale = build_sale(history)
    labels = tuple(show.layout.labels[seat] for seat, _ in sale.figures.most_wanted)
    return Replay(show.title, timezone, labels, sale, build_document(sale, show.layout, timezone))
