"""Sell back at face value: the owner of a confirmed booking offers seats to the waitlist.

    OPEN ──► being sold ──► SOLD       a party was found: refunded in full, and the seats are offered to it
      ├────► WITHDRAWN                 by the owner; not while it is being sold
      └────► CLOSED                    given back in another way, used, transferred, or the sale is over

Until a party is found the tickets stay valid. Which seats are sold is decided by the step of the waitlist
(offers.py) and stored before the refund: after a crash the next step goes on with the same seats.
"""

from datetime import datetime
from typing import Any

from msgspec import Struct

from holdfast.bookings import Booking, Bookings, BookingState, WrongMove, public_id, waitlist_sale
from holdfast.catalogue import ShowOnSale
from holdfast.engines.postgres import Postgres, Queries, Transaction, require_row
from holdfast.refunds import RefundRequest, RefundScope, RefundService, SeatsNotYours, owner_reason
from holdfast.waitlist.entry import seat_labels
from holdfast.waitlist.errors import NoSuchReturn, ReturnSold

Q = Queries("holdfast.waitlist", "returns")
LIST = Queries("holdfast.waitlist")
NOTE = "Sold back to the waitlist."
DONE = frozenset({"decided", "same", "gone"})  # the seats are not in the booking any more


class ReturnPage(Struct, frozen=True, kw_only=True):
    booking_id: str
    state: str  # open, sold, withdrawn, closed
    seats: list[str]
    amount: int  # that comes back once a party is found, if the return is open
    currency: str
    returned_at: datetime


class LiveReturn(Struct, frozen=True):
    number: int
    selling: tuple[int, ...]  # not empty: a party was found for these
    seats: tuple[int, ...]  # of the booking, now


class Returns:
    def __init__(self, postgres: Postgres, bookings: Bookings, refunds: RefundService) -> None:
        self._postgres = postgres
        self._bookings = bookings
        self._refunds = refunds

    async def put(self, booking: Booking, seats: tuple[int, ...] | None, show: ShowOnSale) -> ReturnPage:
        """Offer these seats, or all; again with others: those instead."""
        sale = await waitlist_sale(self._postgres, booking.show_id)
        if booking.state is not BookingState.CONFIRMED or sale is None or sale.is_over:
            raise WrongMove(state=booking.state, move="return")
        chosen = booking.seats if seats is None else seats
        if not set(chosen) <= set(booking.seats):
            raise SeatsNotYours()
        async with self._postgres.transaction() as tx:
            await tx.execute(LIST.add_waitlist, booking.show_id)
            await tx.execute(LIST.lock, booking.show_id, 0)
            row = await tx.fetchrow(Q.put, booking.show_id, booking.number, sorted(chosen))
            if row is None:
                raise ReturnSold()
        return _build_page(row, booking, show)

    async def page(self, booking: Booking, show: ShowOnSale) -> ReturnPage:
        row = await self._postgres.fetchrow(Q.last, booking.show_id, booking.number)
        if row is None:
            raise NoSuchReturn()
        return _build_page(row, booking, show)

    async def withdraw(self, booking: Booking) -> None:
        async with self._postgres.transaction() as tx:
            await tx.execute(LIST.lock, booking.show_id, 0)
            if await tx.execute(Q.withdraw, booking.show_id, booking.number) == "UPDATE 1":
                return
            row = await tx.fetchrow(Q.last, booking.show_id, booking.number)
        if row is None or row["state"] in ("withdrawn", "closed"):
            raise NoSuchReturn()
        raise ReturnSold()

    async def sell(self, show_id: int, number: int, seats: tuple[int, ...]) -> None:
        """The owner gets the money back in full, and the seats are reserved by the same transaction."""
        booking = await self._bookings.booking(show_id, number)
        assert booking is not None, "a return without a booking"
        wanted = tuple(seat for seat in seats if seat in booking.seats)
        outcome = "gone"
        if booking.state is BookingState.CONFIRMED and wanted:
            is_whole = set(wanted) == set(booking.seats)
            request = RefundRequest(
                booking=booking,
                why=owner_reason(booking, wanted),
                what=RefundScope.WHOLE if is_whole else RefundScope.SEATS,
                seats=() if is_whole else wanted,
                note=NOTE,
                actor_id=booking.owner_id,
            )
            outcome = (await self._refunds.decide(request)).outcome
        if outcome == "changed":  # the next step tries again
            return
        if outcome in DONE:
            await self._postgres.execute(Q.finish, show_id, number, list(seats))
        else:
            await self._postgres.execute(Q.close, show_id, number)


async def live_returns(tx: Transaction, show_id: int) -> list[LiveReturn]:
    rows = await tx.fetch(Q.live, show_id)
    return [LiveReturn(row["number"], tuple(row["selling"]), tuple(row["seats"])) for row in rows]


async def begin_sale(tx: Transaction, show_id: int, number: int, seats: tuple[int, ...]) -> None:
    await tx.execute(Q.begin, show_id, number, list(seats))


async def close_returns(tx: Transaction, show_id: int, number: int | None = None) -> None:
    await tx.execute(Q.close, show_id, number)


def _build_page(row: Any, booking: Booking, show: ShowOnSale) -> ReturnPage:
    row = require_row(row)
    prices = dict(zip(booking.seats, booking.prices_minor, strict=True))
    return ReturnPage(
        booking_id=public_id(booking.show_id, booking.number),
        state=row["state"],
        seats=seat_labels(show.layout, row["seats"]),
        amount=sum(prices.get(seat, 0) for seat in row["seats"]),
        currency=booking.currency,
        returned_at=row["returned_at"],
    )
