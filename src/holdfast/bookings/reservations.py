"""Seats that are reserved for a waitlist: steps inside the waitlist's transaction.

The caller holds the lock of the show's waitlist, so that seats are reserved and offered by one at a time.
"""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from holdfast.bookings.booking import Booking
from holdfast.bookings.limits import HoldLimits
from holdfast.bookings.store import parse_booking
from holdfast.engines.postgres import Queries, Queryable, Transaction

Q = Queries("holdfast.bookings", "reservations")


class WaitlistSale(Struct, frozen=True):
    """What a waitlist must know of the sale."""

    revision: int
    has_waitlist: bool  # freed seats are reserved
    is_open: bool
    is_over: bool  # cancelled, or closed for good
    closes_at: datetime


class NewOffer(Struct, frozen=True):
    """Reserved seats for one owner, at the prices of this moment."""

    show_id: int
    owner_id: int
    seats: tuple[int, ...]
    prices_minor: tuple[int, ...]
    currency: str
    note: str
    ttl_s: int


async def waitlist_sale(connection: Queryable, show_id: int) -> WaitlistSale | None:
    row = await connection.fetchrow(Q.sale, show_id)
    return WaitlistSale(**row) if row else None


async def share_waitlist_sale(tx: Transaction, show_id: int) -> WaitlistSale | None:
    """The same, and it does not change until the transaction ends."""
    await tx.execute(Q.lock, show_id)
    return await waitlist_sale(tx, show_id)


async def reserved_seats(tx: Transaction, show_id: int) -> dict[int, float]:
    """Seat -> for how many seconds it has been reserved."""
    return {row["seat"]: row["waited_s"] for row in await tx.fetch(Q.reserved, show_id)}


async def open_offer(tx: Transaction, offer: NewOffer, limits: HoldLimits) -> Booking | None:
    """A HELD booking of these seats. None: the owner would be over a limit, and nothing was written."""
    row = await tx.fetchrow(
        Q.open_offer,
        *(offer.show_id, offer.owner_id, list(offer.seats), list(offer.prices_minor)),
        *(offer.currency, offer.note, offer.ttl_s, limits.to_row()),
    )
    return parse_booking(row) if row else None


async def unreserve_seats(tx: Transaction, show_id: int, seats: Sequence[int]) -> None:
    """They are free for everybody."""
    await tx.execute(Q.unreserve, show_id, list(seats))


async def set_waitlist(tx: Transaction, show_id: int, has_waitlist: bool) -> bool:
    """Whether seats that come free are reserved from now on. True: that is new, and the map is marked."""
    return bool(await tx.fetchval(Q.set_waitlist, show_id, has_waitlist))
