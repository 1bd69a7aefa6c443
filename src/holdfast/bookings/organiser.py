"""The ledger's part in what organisers change: inside their transaction, or not at all."""

from collections.abc import Sequence
from datetime import datetime

from holdfast.engines.postgres import Transaction
from holdfast.engines.sql import Queries

Q = Queries("holdfast.bookings", "organiser")


async def reprice_sale(tx: Transaction, show_id: int, revision: int) -> None:
    """The show has other prices: whoever holds seats at those of before is told to look again."""
    await tx.execute(Q.reprice_sale, show_id, revision)


async def lock_sale(tx: Transaction, show_id: int) -> None:
    """Until the transaction ends nobody opens a hold in this show; who is opening one is waited for."""
    await tx.execute(Q.lock_sale, show_id)


async def seats_by_category(tx: Transaction, show_id: int, category_of: bytes) -> dict[tuple[int, str], int]:
    """(category, confirmed or blocked) -> seats."""
    rows = await tx.fetch(Q.seats_by_category, show_id, category_of)
    return {(row["category"], row["state"]): row["seats"] for row in rows}


async def taken_seats(tx: Transaction, show_id: int) -> dict[int, str]:
    """Seat -> held, paying, confirmed or blocked."""
    return {row["seat"]: row["state"] for row in await tx.fetch(Q.taken_seats, show_id)}


async def block_in(tx: Transaction, show_id: int, seats: Sequence[int], note: str, actor_id: int) -> int:
    """The number of the block. The caller has locked the sale and seen that the seats are free."""
    number: int | None = await tx.fetchval(Q.block, show_id, sorted(seats), note, actor_id)
    assert number is not None, "somebody took a seat in a sale that was locked"
    return number


async def move_releases(tx: Transaction, show_id: int, starts_at: datetime) -> None:
    """The show begins at another time."""
    await tx.execute(Q.move_releases, show_id, starts_at)
