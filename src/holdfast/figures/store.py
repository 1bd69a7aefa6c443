"""Figures in the ledger: kept by facts, written anew, summed. The only file here that writes them.

Every change is of one row by its key and can be made twice: a fact that is told again changes nothing.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.catalogue import Catalogue
from holdfast.engines.postgres import Postgres
from holdfast.engines.sql import Queries
from holdfast.figures.figure import (
    MINUTES_MAX,
    EventFigures,
    Funnel,
    GateMinute,
    Minute,
    RefundSum,
    Revenue,
    SaleFigures,
    ShowFigures,
    ShowSum,
)
from holdfast.figures.sheet import COLUMNS, lines
from holdfast.ledger import reference
from holdfast.outbox import BookingConfirmed, BookingReduced, BookingRefunded, Fact, RefundAsked, RefundByHand
from holdfast.outbox import RefundDone as RefundMade
from holdfast.refusals import NoSuchEvent

Q = Queries("holdfast.figures")

PAGE = 1_000  # seats that a sheet reads at once
WRITTEN_AT_ONCE = 5_000
GATE_MINUTES_MAX = 20_000

Sold = Mapping[str, Any]  # number, seat, revision, currency, price_minor, sold_at, returned_at


class Figures:
    def __init__(self, postgres: Postgres, catalogue: Catalogue) -> None:
        self._postgres = postgres
        self._catalogue = catalogue

    # ── kept by facts ─────────────────────────────────────────────────────────────────

    async def hear(self, fact: Fact) -> None:
        if fact.number is None or getattr(fact.body, "is_block", False):
            return
        match fact.body:
            case RefundAsked() | RefundMade() | RefundByHand() as refund:
                state = fact.kind.removeprefix("refund.")
                of = (refund.attempt, refund.refund, refund.amount_minor, refund.currency)
                await self._postgres.execute(Q.set_refund, fact.show_id, fact.number, *of, state, fact.id)
                return
            case BookingReduced(given_back=seats):
                await self._postgres.execute(Q.return_seats, fact.show_id, fact.number, list(seats), fact.at)
                return
            case BookingConfirmed() as booking:
                await self._add_sold(fact, booking)
            case BookingRefunded():
                await self._postgres.execute(Q.return_seats, fact.show_id, fact.number, None, fact.at)
        stage = fact.kind.removeprefix("booking.")
        await self._postgres.execute(Q.add_stage, fact.show_id, fact.number, stage, fact.at)

    async def _add_sold(self, fact: Fact, booking: BookingConfirmed) -> None:
        revision = await self._postgres.fetchval(Q.revision, fact.show_id, fact.number)
        sold = [
            {
                "number": fact.number,
                "seat": seat,
                "revision": revision or 0,
                "currency": booking.currency,
                "price_minor": price,
                "sold_at": fact.at,
                "returned_at": None,
            }
            for seat, price in zip(booking.seats, booking.prices_minor, strict=True)
        ]
        await self._write(self._postgres, fact.show_id, sold)

    # ── written anew ──────────────────────────────────────────────────────────────────

    async def rebuild(self, progress: Callable[[str, int, int], None] = lambda *_: None) -> int:
        """Every show from the ledger; how many there were. The sale goes on meanwhile."""
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
            for start in range(0, len(sold), WRITTEN_AT_ONCE):
                await self._write(tx, show_id, sold[start : start + WRITTEN_AT_ONCE])

    async def _write(self, tx: Any, show_id: int, sold: Sequence[Sold]) -> None:
        show = await self._catalogue.show_on_sale(show_id)
        layout, currencies = show.layout, [one["currency"] for one in sold]
        terms = {rev: await self._catalogue.terms(show, rev) for rev in {one["revision"] for one in sold}}
        # What was given back is worth nothing any more.
        made = [terms[one["revision"]].lines(one["price_minor"] or 0) for one in sold]
        await tx.execute(
            Q.add_seats,
            show_id,
            [one["number"] for one in sold],
            [one["seat"] for one in sold],
            [layout.categories[layout.category_of[one["seat"]]].name for one in sold],
            currencies,
            [line.price_minor for line in made],
            [line.base_minor for line in made],
            [line.fee_minor for line in made],
            [line.tax_minor for line in made],
            [one["sold_at"] for one in sold],
            [one["returned_at"] for one in sold],
        )

    # ── summed ────────────────────────────────────────────────────────────────────────

    async def of_show(self, show_id: int, since: datetime | None) -> ShowFigures:
        """Whose it is has been looked at."""
        rows = await self._postgres.fetch(Q.minutes, show_id, since, MINUTES_MAX + 1)
        gates = await self._postgres.fetch(Q.gate_minutes, show_id, GATE_MINUTES_MAX)
        return ShowFigures(
            show_id=show_id,
            figures=await self._sums([show_id]),
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
            figures=await self._sums([row["show_id"] for row in rows]),
            shows=[ShowSum(**row) for row in rows],
        )

    async def shows_of(self, event_id: int, organiser_id: int | None) -> list[int]:
        await self._title(event_id, organiser_id)
        return [row["show_id"] for row in await self._postgres.fetch(Q.shows_of_event, event_id)]

    async def sheet(self, show_ids: Sequence[int]) -> AsyncIterator[bytes]:
        """A row a seat that was ever sold, page by page: however many there are, few are in memory."""
        yield lines([COLUMNS])
        after = (0, 0, -1)
        while rows := await self._postgres.fetch(Q.seats_after, list(show_ids), *after, PAGE):
            yield lines([await self._row(row) for row in rows])
            after = (rows[-1]["show_id"], rows[-1]["number"], rows[-1]["seat"])

    async def _row(self, row: Mapping[str, Any]) -> list[object]:
        show_id = row["show_id"]
        label = (await self._catalogue.show_on_sale(show_id)).layout.labels[row["seat"]]
        told = {**row, "reference": reference(show_id, row["number"]), "seat": label}
        for name in ("sold_at", "returned_at"):
            told[name] = row[name].isoformat() if row[name] else None
        return [told[name] for name in COLUMNS]

    async def _sums(self, show_ids: Sequence[int]) -> SaleFigures:
        seats = await self._postgres.fetchrow(Q.seat_counts, show_ids)
        revenue = await self._postgres.fetch(Q.revenue, show_ids)
        refunds = await self._postgres.fetch(Q.refunds, show_ids)
        return SaleFigures(
            seats_sold=seats["sold"],
            seats_returned=seats["returned"],
            funnel=Funnel(**await self._postgres.fetchrow(Q.funnel, show_ids)),
            revenue=[Revenue(**row) for row in revenue],
            refunds=[RefundSum(**row) for row in refunds],
        )

    async def _title(self, event_id: int, organiser_id: int | None) -> str:
        row = await self._postgres.fetchrow(Q.event, event_id, organiser_id)
        if row is None:
            raise NoSuchEvent(event_id=event_id)
        return str(row["title"])
