"""What the ledger says of the promises a crowd was given."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from operator import itemgetter
from typing import Any

from holdfast.bookings import from_public_id
from tests.support.box_office import Office
from tests.support.crowd import Promise, Report
from tests.support.shows import Fan

BOOKINGS = """
SELECT booking.*, ended.at AS ended_at, now() AS queried_at
  FROM booking
  LEFT JOIN booking_move AS ended
    ON ended.show_id = booking.show_id AND ended.number = booking.number
   AND ended.move IN ('cancel', 'refund')
 WHERE booking.show_id = ANY ($1)
"""
SPANS = """
SELECT booking.show_id, booking.number, booking.seats, min(begun.id) AS begun, max(ended.id) AS ended
  FROM booking
  JOIN booking_move AS begun
    ON begun.show_id = booking.show_id AND begun.number = booking.number AND begun.move = 'hold'
  LEFT JOIN booking_move AS ended
    ON ended.show_id = booking.show_id AND ended.number = booking.number
   AND ended.state IN ('cancelled', 'expired', 'refunded', 'failed')
   AND booking.state IN ('cancelled', 'expired', 'refunded', 'failed')
 WHERE booking.show_id = ANY ($1)
 GROUP BY booking.show_id, booking.number, booking.seats
"""
TAKEN = "SELECT seat FROM taken_seat WHERE show_id = $1 ORDER BY seat"


async def seats_taken(office: Office, show_id: int) -> list[int]:
    return [row["seat"] for row in await office.app.postgres.fetch(TAKEN, show_id)]


async def lost(office: Office, promises: Sequence[Promise], fans: Sequence[Fan]) -> list[str]:
    """Promises the ledger knows nothing of, or ended before their time."""
    shows = {one.show for one in promises}
    rows = {(row["show_id"], row["number"]): row for row in await office.app.postgres.fetch(BOOKINGS, shows)}
    found = []
    for one in promises:
        row = rows.get(from_public_id(one.booking_id))
        show = await office.app.catalogue.show_on_sale(one.show)
        seats = sorted(show.layout.index_of[label] for label in one.seats)
        if row is None:
            found.append(f"{one} is not in the ledger")
        elif sorted(row["seats"]) != seats or row["owner_id"] != fans[one.owner].account_id:
            found.append(f"{one} is {dict(row)} in the ledger")
        elif not stands(row):
            found.append(f"{one} ended early: {dict(row)}")
    return found


def stands(row: Any) -> bool:
    """Held or booked; or ended as it should: by its owner, or by time that has passed."""
    match row["state"]:
        case "held" | "confirmed":
            return True
        case "cancelled" | "refunded":  # the latter: a booking with nothing to pay, given back
            return row["ended_at"] is not None
        case "expired":
            return bool(row["expires_at"] <= row["queried_at"])
    return False


async def untrue_deeds(office: Office, storm: Report, shows: Sequence[int]) -> list[str]:
    """Extensions and releases that were confirmed to their owner, and that the ledger does not know of."""
    rows = await office.app.postgres.fetch(BOOKINGS, list(shows))
    by_id = {(row["show_id"], row["number"]): row for row in rows}
    found = []
    for deed in (deed for deed in storm.deeds if deed.status == 200):
        row = by_id[from_public_id(deed.booking_id)]
        if deed.what == "cancel" and row["state"] not in ("cancelled", "refunded"):
            found.append(f"{deed} was not released: {dict(row)}")
        if deed.expires_at and row["expires_at"] < datetime.fromisoformat(deed.expires_at):
            found.append(f"{deed} was not extended: {dict(row)}")
    return found


async def shared_seats(office: Office, shows: Iterable[int]) -> list[str]:
    """Seats that two bookings had at the same moment, at any time of the storm.

    By the numbers of their moves, not by times: a transaction's time is that of its begin, and it may have
    waited long for one whose worker stood still. A hold's move is numbered when it has its seats, its end
    before anybody else can have them.
    """
    spans: dict[tuple[int, int], list[tuple[int, int | None, int]]] = defaultdict(list)
    for row in await office.app.postgres.fetch(SPANS, list(shows)):
        for seat in row["seats"]:
            spans[row["show_id"], seat].append((row["begun"], row["ended"], row["number"]))
    return [
        f"show and seat {place}: booking {one} until move {end}, booking {other} from move {begin}"
        for place, bookings in spans.items()
        for (_, end, one), (begin, _, other) in pairwise(sorted(bookings, key=itemgetter(0)))
        if end is None or end > begin
    ]
