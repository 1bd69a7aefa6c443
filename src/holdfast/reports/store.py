"""Figures in PostgreSQL: updated by facts, rebuilt, summed. The only file here that writes them.

Every change is of one row by its key and can be made twice: a repeated fact changes nothing.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime

from holdfast.bookings import reference
from holdfast.catalogue import Catalogue, NoSuchEvent
from holdfast.engines.postgres import Postgres, Queries, Row, Transaction, require_row
from holdfast.engines.replica import RowReader
from holdfast.outbox import KINDS, Consumer, Fact
from holdfast.reports.figures import (
    MINUTES_MAX,
    EventFigures,
    Funnel,
    GateMinute,
    Minute,
    RefundSum,
    ReportChanges,
    Revenue,
    SaleFigures,
    SeatSum,
    ShowFigures,
    ShowLine,
    ShowSum,
    collect_changes,
)
from holdfast.web.csv_export import to_csv

Q = Queries("holdfast.reports")

PAGE = 1_000  # seats that a sheet reads at once
WRITE_MAX = 5_000
GATE_MINUTES_MAX = 20_000
SHEET_COLUMNS = (
    *("show_id", "reference", "seat", "category", "currency", "price_minor", "base_minor", "fee_minor"),
    *("tax_minor", "sold_at", "returned_at"),
)

SoldSeatRow = Row  # show_id, number, seat, revision, currency, price_minor, sold_at, returned_at


class ReportStore:
    def __init__(self, postgres: Postgres, catalogue: Catalogue, reader: RowReader) -> None:
        """`reader`: where figures are read, which may be some seconds old. Who may see them is not."""
        self._postgres = postgres
        self._reader = reader
        self._catalogue = catalogue

    # ── updated by facts ─────────────────────────────────────────────────────────────────

    async def apply_many(self, facts: Sequence[Fact]) -> None:
        """In one transaction, in at most five statements, however many there are."""
        changes = collect_changes(facts)
        async with self._postgres.fresh_plans() as tx:
            # Tables in the order in which a rebuild locks them, which rules out deadlocks.
            await _write(tx, Q.add_seats, await self._rows(await _sold(tx, changes)))
            await _write(tx, Q.return_seats, changes.returned)
            await _write(tx, Q.add_stages, changes.stages)
            await _write(tx, Q.set_refunds, changes.refunds)

    # ── rebuilt ──────────────────────────────────────────────────────────────────

    async def rebuild(self, progress: Callable[[str, int, int], None] = lambda *_: None) -> int:
        """Rebuilds every show from the ledger while the sale goes on; returns how many there were."""
        shows = [row["show_id"] for row in await self._postgres.fetch(Q.shows_sold)]
        for done, show_id in enumerate(shows, 1):
            await self.rebuild_show(show_id)
            progress("shows", done, len(shows))
        return len(shows)

    async def rebuild_show(self, show_id: int) -> None:
        async with self._postgres.transaction() as tx:
            await tx.execute(Q.lock)
            for forget in (Q.forget_seats, Q.forget_stages, Q.forget_refunds):
                await tx.execute(forget, show_id)
            await tx.execute(Q.rebuild_stages, show_id)
            await tx.execute(Q.rebuild_refunds, show_id)
            sold = await tx.fetch(Q.seats_of_ledger, show_id)
            for start in range(0, len(sold), WRITE_MAX):
                await _write(tx, Q.add_seats, await self._rows(sold[start : start + WRITE_MAX]))

    async def _rows(self, sold: Sequence[SoldSeatRow]) -> list[tuple[object, ...]]:
        """Rows of sold seats, with their categories and the parts of their prices."""
        shows = {id: await self._catalogue.show_on_sale(id) for id in {one["show_id"] for one in sold}}
        terms = {
            (id, revision): await self._catalogue.terms(shows[id], revision)
            for id, revision in {(one["show_id"], one["revision"]) for one in sold}
        }
        rows: list[tuple[object, ...]] = []
        for one in sold:
            layout = shows[one["show_id"]].layout
            # Returned seats have no revenue.
            made = terms[one["show_id"], one["revision"]].lines(one["price_minor"] or 0)
            place = (one["show_id"], one["number"], one["seat"])
            category = layout.categories[layout.category_of[one["seat"]]].name
            parts = (made.price_minor, made.base_minor, made.fee_minor, made.tax_minor)
            rows.append((*place, category, one["currency"], *parts, one["sold_at"], one["returned_at"]))
        return rows

    # ── summed ────────────────────────────────────────────────────────────────────────

    async def of_show(self, show_id: int, since: datetime | None) -> ShowFigures:
        """The caller has checked that the show belongs to the organiser."""
        rows = await self._reader.fetch(Q.minutes, show_id, since, MINUTES_MAX + 1)
        gates = await self._reader.fetch(Q.gate_minutes, show_id, GATE_MINUTES_MAX)
        return ShowFigures(
            show_id=show_id,
            figures=await self.sums([show_id]),
            minutes=[Minute(**row) for row in rows[:MINUTES_MAX]],
            minutes_next=rows[MINUTES_MAX]["begins_at"] if len(rows) > MINUTES_MAX else None,
            gates=[GateMinute(**row) for row in gates],
        )

    async def of_event(self, event_id: int, organiser_id: int | None) -> EventFigures:
        title = await self._title(event_id, organiser_id)
        rows = await self._postgres.fetch(Q.shows_of_event, event_id)
        return EventFigures(
            event_id=event_id,
            title=title,
            figures=await self.sums([row["show_id"] for row in rows]),
            shows=[ShowSum(**row) for row in rows],
        )

    async def shows_of_organiser(
        self, organiser_id: int, *, is_past: bool, limit: int, start: int = 0
    ) -> list[ShowLine]:
        rows = await self._postgres.fetch(Q.shows_of_organiser, organiser_id, is_past, limit, start)
        return [ShowLine(**row) for row in rows]

    async def shows_of(self, event_id: int, organiser_id: int | None) -> list[int]:
        await self._title(event_id, organiser_id)
        return [row["show_id"] for row in await self._postgres.fetch(Q.shows_of_event, event_id)]

    async def sheet(self, show_ids: Sequence[int]) -> AsyncIterator[bytes]:
        """One row per seat that was ever sold, page by page, so that only one page is in memory."""
        yield to_csv([SHEET_COLUMNS])
        async for page in self.sheet_rows(show_ids):
            yield page

    async def sheet_rows(self, show_ids: Sequence[int]) -> AsyncIterator[bytes]:
        after = (0, 0, -1)
        while rows := await self._reader.fetch(Q.seats_after, list(show_ids), *after, PAGE):
            yield to_csv([await self._row(row) for row in rows])
            after = (rows[-1]["show_id"], rows[-1]["number"], rows[-1]["seat"])

    async def _row(self, row: Row) -> list[object]:
        show_id = row["show_id"]
        label = (await self._catalogue.show_on_sale(show_id)).layout.labels[row["seat"]]
        cells = {**row, "reference": reference(show_id, row["number"]), "seat": label}
        for name in ("sold_at", "returned_at"):
            cells[name] = row[name].isoformat() if row[name] else None
        return [cells[name] for name in SHEET_COLUMNS]

    async def seat_sums(self, show_ids: Sequence[int]) -> list[SeatSum]:
        """Shows of which nothing was ever sold have none."""
        return [SeatSum(**row) for row in await self._reader.fetch(Q.seat_sums, show_ids)]

    async def sums(self, show_ids: Sequence[int]) -> SaleFigures:
        seats = require_row(await self._reader.fetchrow(Q.seat_counts, show_ids))
        revenue = await self._reader.fetch(Q.revenue, show_ids)
        refunds = await self._reader.fetch(Q.refunds, show_ids)
        return SaleFigures(
            seats_sold=seats["sold"],
            seats_returned=seats["returned"],
            funnel=Funnel(**require_row(await self._reader.fetchrow(Q.funnel, show_ids))),
            revenue=[Revenue(**row) for row in revenue],
            refunds=[RefundSum(**row) for row in refunds],
        )

    async def _title(self, event_id: int, organiser_id: int | None) -> str:
        row = await self._postgres.fetchrow(Q.event, event_id, organiser_id)
        if row is None:
            raise NoSuchEvent(event_id=event_id)
        return str(row["title"])


async def _sold(tx: Transaction, changes: ReportChanges) -> list[SoldSeatRow]:
    if not changes.sold:
        return []
    places = sorted({place for place, _, _ in changes.sold})
    rows = await tx.fetch(Q.revisions, *map(list, zip(*places, strict=True)))
    revisions = {(row["show_id"], row["number"]): row["revision"] for row in rows}
    return [
        {
            "show_id": place[0],
            "number": place[1],
            "seat": seat,
            "revision": revisions.get(place) or 0,
            "currency": booking.currency,
            "price_minor": price,
            "sold_at": at,
            "returned_at": None,
        }
        for place, at, booking in changes.sold
        for seat, price in zip(booking.seats, booking.prices_minor, strict=True)
    ]


async def _write(tx: Transaction, query: str, rows: Sequence[tuple[object, ...]]) -> None:
    """As columns: one statement for all rows."""
    if rows:
        await tx.execute(query, *map(list, zip(*rows, strict=True)))


GROUP = "reports"
CONSUMED_KINDS = tuple(
    kind
    for kind in KINDS
    if kind.startswith(("booking.", "refund.")) and kind not in ("booking.blocked", "booking.merged")
)


def consumer(figures: ReportStore) -> Consumer:
    return Consumer(group=GROUP, kinds=CONSUMED_KINDS, call_many=figures.apply_many)
