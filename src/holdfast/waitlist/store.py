"""The waitlist of a show: join, leave, my place, the list for its organiser."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from holdfast.bookings import Booking, Bookings, public_id, set_waitlist, waitlist_sale
from holdfast.catalogue import ShowOnSale
from holdfast.engines.postgres import Postgres, Queries, require_row
from holdfast.outbox import WaitlistEnded, WaitlistJoined, add_fact
from holdfast.waitlist.entry import (
    DAYS_COUNTED,
    Ahead,
    EntryPage,
    EntryState,
    JoinOutcome,
    NewEntry,
    OfferPage,
    PartiesQuery,
    PartyList,
    PartyPage,
    WaitlistEntry,
    WaitlistFigures,
    build_entry_page,
    seat_labels,
)
from holdfast.waitlist.errors import AlreadyWaiting

Q = Queries("holdfast.waitlist")


class WaitlistStore:
    def __init__(self, postgres: Postgres, bookings: Bookings) -> None:
        self._postgres = postgres
        self._bookings = bookings

    async def add(self, new: NewEntry) -> JoinOutcome:
        """The same wish again gives the same entry; another one raises AlreadyWaiting."""
        async with self._postgres.transaction() as tx:
            await tx.execute(Q.add_waitlist, new.show_id)
            await tx.execute(Q.lock, new.show_id, 0)
            if (row := await tx.fetchrow(Q.live_entry, new.show_id, new.owner_id)) is not None:
                entry = parse_entry(row)
                if not new.is_wish_of(entry):
                    raise AlreadyWaiting()
                return JoinOutcome(entry)
            wish = (new.seats, list(new.categories), new.price_minor_max, new.together)
            row = await tx.fetchrow(
                Q.add_entry, new.show_id, new.owner_id, *wish, new.until, new.queue_position
            )
            entry = parse_entry(require_row(row))
            is_first = await set_waitlist(tx, new.show_id, True)
            joined = WaitlistJoined(owner_id=new.owner_id, entry=entry.number, seats=new.seats)
            await add_fact(tx, new.show_id, joined)
        return JoinOutcome(entry, is_new=True, is_first=is_first)

    async def live_entry(self, show_id: int, owner_id: int) -> WaitlistEntry | None:
        row = await self._postgres.fetchrow(Q.live_entry, show_id, owner_id)
        return parse_entry(row) if row else None

    async def live_entries(self, owner_ids: Sequence[int]) -> list[WaitlistEntry]:
        """Of one person, in all shows, the oldest first."""
        return [parse_entry(row) for row in await self._postgres.fetch(Q.live_entries, list(owner_ids))]

    async def leave(self, entry: WaitlistEntry) -> None:
        """An entry that has ended meanwhile stays as it did. One with an offer: decline the offer instead."""
        async with self._postgres.transaction() as tx:
            await tx.execute(Q.lock, entry.show_id, 0)
            if await tx.execute(Q.end_entry, entry.show_id, entry.number, EntryState.LEFT) == "UPDATE 1":
                ended = WaitlistEnded(owner_id=entry.owner_id, entry=entry.number, state=EntryState.LEFT)
                await add_fact(tx, entry.show_id, ended)

    async def figures(self, show: ShowOnSale) -> WaitlistFigures:
        row = require_row(await self._postgres.fetchrow(Q.figures, show.show_id, DAYS_COUNTED))
        return WaitlistFigures(**row, capacity=show.layout.seat_count)

    async def is_joinable(self, show_id: int) -> bool:
        sale = await waitlist_sale(self._postgres, show_id)
        return sale is not None and sale.is_open

    async def entry_page(self, show: ShowOnSale, owner_id: int, figures: WaitlistFigures) -> EntryPage | None:
        """The live entry of this owner, or the last one; None: there was none."""
        row = await self._postgres.fetchrow(Q.last_entry, show.show_id, owner_id)
        if row is None:
            return None
        entry, ahead = parse_entry(row), None
        if entry.state is EntryState.WAITING:
            found = await self._postgres.fetchrow(Q.ahead, show.show_id, entry.queue_position, entry.number)
            ahead = Ahead(**require_row(found))
        offer = await self._offer_page(show, entry) if entry.state is EntryState.OFFERED else None
        return build_entry_page(entry, ahead, figures, offer, datetime.now(UTC))

    async def offer_of(self, entry: WaitlistEntry) -> Booking | None:
        row = await self._postgres.fetchrow(Q.offer_of_entry, entry.show_id, entry.number)
        return await self._bookings.booking(entry.show_id, row["number"]) if row else None

    async def _offer_page(self, show: ShowOnSale, entry: WaitlistEntry) -> OfferPage | None:
        booking = await self.offer_of(entry)
        if booking is None:
            return None
        return OfferPage(
            booking_id=public_id(booking.show_id, booking.number),
            seats=seat_labels(show.layout, booking.seats),
            amount=booking.amount_minor,
            currency=booking.currency,
            expires_at=booking.expires_at,
        )

    async def parties(self, show: ShowOnSale, query: PartiesQuery) -> PartyList:
        show_id = show.show_id
        rows = await self._postgres.fetch(Q.parties, show_id, query.after, query.state, query.size + 1)
        counts = await self._postgres.fetch(Q.counts, show_id)
        reserved = await self._postgres.fetch(Q.reserved, show_id)
        parties = [_build_party(show, row) for row in rows[: query.size]]
        return PartyList(
            parties=parties,
            counts=dict.fromkeys(EntryState, 0) | {row["state"]: row["parties"] for row in counts},
            reserved_seats=seat_labels(show.layout, [row["seat"] for row in reserved]),
            next=parties[-1].number if len(rows) > query.size else None,
        )


def parse_entry(row: Any) -> WaitlistEntry:
    known = {name: row[name] for name in WaitlistEntry.__struct_fields__}
    known["categories"], known["state"] = tuple(known["categories"]), EntryState(known["state"])
    return WaitlistEntry(**known)


def _build_party(show: ShowOnSale, row: Any) -> PartyPage:
    entry, number = parse_entry(row), row["offer_number"]
    return PartyPage(
        **{name: value for name, value in msgspec.structs.asdict(entry).items() if name in COPIED},
        name=row["name"],
        email=row["email"],
        categories=list(entry.categories),
        offer_booking_id=None if number is None else public_id(show.show_id, number),
        offer_seats=seat_labels(show.layout, row["offer_seats"] or ()),
        offer_outcome=row["offer_outcome"],
    )


COPIED = frozenset(PartyPage.__struct_fields__) - {"categories"}
