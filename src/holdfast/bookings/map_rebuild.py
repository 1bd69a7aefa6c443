"""What a rebuild of the seat map needs of the bookings, in its transaction: lock, read, raise the epoch."""

from holdfast.bookings.booking import LiveBooking, LockedSale
from holdfast.bookings.store import live_booking
from holdfast.engines.postgres import Transaction
from holdfast.engines.sql import Queries

Q = Queries("holdfast.bookings")


async def lock_sale_for_rebuild(tx: Transaction, show_id: int) -> LockedSale | None:
    """Waits for holds that are being opened and keeps new ones waiting, until the transaction ends.

    Without it a hold could commit after the bookings were read and before the map is published, and its seats
    would look free.
    """
    row = await tx.fetchrow(Q.lock_sale, show_id)
    return LockedSale(**row) if row else None


async def bookings_on_map(tx: Transaction, show_id: int) -> list[LiveBooking]:
    return [live_booking(row) for row in await tx.fetch(Q.live_bookings, show_id)]


async def raise_epoch(tx: Transaction, show_id: int, epoch: int) -> None:
    """The map of this epoch is complete: Redis may sell from it."""
    await tx.execute(Q.raise_epoch, show_id, epoch)
