"""Steps on bookings inside another folder's transaction: organisers' changes and rebuilds of the seat map.

The caller's transaction decides: if it rolls back, nothing here has happened.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from holdfast.bookings.booking import LiveBooking, LockedSale
from holdfast.bookings.store import parse_live_bookings
from holdfast.engines.postgres import Queries, Queryable, Transaction

Q = Queries("holdfast.bookings")
ORGANISER = Queries("holdfast.bookings", "organiser")


async def reprice_sale(tx: Transaction, show_id: int, revision: int) -> None:
    """The show has new prices: holds priced from an older revision are refused as stale."""
    await tx.execute(ORGANISER.reprice_sale, show_id, revision)


async def lock_sale(tx: Transaction, show_id: int) -> None:
    """Wait for holds that are being opened, and make new ones wait until the transaction ends."""
    await tx.execute(ORGANISER.lock_sale, show_id)


async def is_sold(tx: Transaction, show_id: int) -> bool:
    """Whether a show has bookings that count. Only certain after lock_sale()."""
    return bool(await tx.fetchval(ORGANISER.is_sold, show_id))


async def seats_by_category(tx: Transaction, show_id: int, category_of: bytes) -> dict[tuple[int, str], int]:
    """(category, confirmed or blocked) -> seats."""
    rows = await tx.fetch(ORGANISER.seats_by_category, show_id, category_of)
    return {(row["category"], row["state"]): row["seats"] for row in rows}


async def taken_seats(tx: Transaction, show_id: int) -> dict[int, str]:
    """Seat -> held, paying, confirmed or blocked."""
    return {row["seat"]: row["state"] for row in await tx.fetch(ORGANISER.taken_seats, show_id)}


async def block_in(tx: Transaction, show_id: int, seats: Sequence[int], note: str, actor_id: int) -> int:
    """The number of the block. The caller has locked the sale and checked that the seats are free."""
    number: int | None = await tx.fetchval(ORGANISER.block, show_id, sorted(seats), note, actor_id)
    assert number is not None, "a seat was taken in a sale that was locked"
    return number


async def move_releases(tx: Transaction, show_id: int, starts_at: datetime) -> None:
    """The show starts at another time: blocks released before the start move with it."""
    await tx.execute(ORGANISER.move_releases, show_id, starts_at)


async def lock_sale_for_rebuild(tx: Transaction, show_id: int) -> LockedSale | None:
    """Waits for holds that are being opened and keeps new ones waiting, until the transaction ends.

    Without it a hold could commit after the bookings were read and before the map is published, and its seats
    would look free.
    """
    row = await tx.fetchrow(Q.lock_sale, show_id)
    return LockedSale(**row) if row else None


async def bookings_on_map(tx: Transaction, show_id: int) -> AsyncIterator[list[LiveBooking]]:
    """Everything that has seats, a part at a time."""
    async for part in parse_live_bookings(await tx.fetch(Q.live_bookings, show_id)):
        yield part


async def lapses_on_map(tx: Transaction, show_id: int) -> list[tuple[str, int, int, int]]:
    """Owners and parties whose holds ended unpaid lately: who, how many, ms since the first and the last."""
    rows = await tx.fetch(Q.lapses, show_id)
    return [(row["who"], row["lapses"], row["first_ms_ago"], row["last_ms_ago"]) for row in rows]


async def raise_epoch(tx: Transaction, show_id: int, epoch: int) -> None:
    """The map of this epoch is complete: Redis may sell from it."""
    await tx.execute(Q.raise_epoch, show_id, epoch)


async def has_bookings(ledger: Queryable) -> bool:
    """Whether this database has ever sold anything."""
    return bool(await ledger.fetchval(Q.has_bookings))


async def move_sale(source: Queryable, target: Queryable, show_id: int) -> bool:
    """Copies what a database decides about a sale to the one that sells the show from now on.

    False: the target has not received the show yet.
    """
    row = await source.fetchrow(Q.sale_of_copy, show_id)
    if row is None:
        return False
    return await target.execute(Q.adopt_sale, show_id, *row.values()) == "UPDATE 1"
