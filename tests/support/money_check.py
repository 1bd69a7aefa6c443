"""Compares the gateway's payments, the ledger and the answers that buyers got."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from holdfast.bookings import from_public_id
from tests.support.box_office import Office
from tests.support.buyers import Deal
from tests.support.gateway_state import Taken

PAYMENTS = """
SELECT payment.key, payment.step, payment.refunds_minor, booking.state
  FROM payment JOIN booking USING (show_id, number)
 WHERE payment.show_id = $1
"""
STATES = "SELECT number, state FROM booking WHERE show_id = $1"
DECLINED = "SELECT number, attempt, step FROM payment WHERE show_id = $1"
MOVES = """
  SELECT booking_move.number, move, booking_move.state, at, booking.seats
    FROM booking_move JOIN booking USING (show_id, number)
   WHERE booking_move.show_id = $1 AND move IN ('confirm', 'refund')
ORDER BY booking_move.id
"""
# Money that came while its booking was still waiting for it, and was sent back all the same.
LATE = """
SELECT refund.number, refund.attempt,
       EXISTS (SELECT 1 FROM booking_move AS m
                WHERE m.show_id = refund.show_id AND m.number = refund.number AND m.at <= refund.requested_at
                  AND m.move IN ('expire', 'cancel', 'decline')) AS was_given_up
  FROM refund
 WHERE refund.show_id = $1 AND refund.why = 'late'
"""


async def unsettled(office: Office, show_id: int, taken: Iterable[Taken]) -> list[str]:
    """Captured payments that are neither one confirmed booking nor given back in full."""
    rows = {row["key"]: row for row in await office.app.postgres.fetch(PAYMENTS, show_id)}
    return [
        f"{one} {rows.get(one.reference)}" for one in taken if not is_settled(one, rows.get(one.reference))
    ]


def is_settled(taken: Taken, row: Any) -> bool:
    if not taken.is_captured:
        return True
    if row is None:
        return False
    if row["step"] == "paid" and row["state"] == "confirmed":
        return taken.retained_minor == taken.amount_minor
    return row["step"] in ("paid", "returned") and taken.retained_minor == 0


async def paid_twice(taken: Iterable[Taken]) -> list[str]:
    """Bookings for which the gateway keeps more than one payment."""
    retained: dict[str, list[Taken]] = defaultdict(list)
    for one in taken:
        if one.retained_minor:
            retained[one.booking_id].append(one)
    return [f"{booking}: {payments}" for booking, payments in retained.items() if len(payments) > 1]


async def untrue(office: Office, show_id: int, deals: Sequence[Deal]) -> list[str]:
    """Answers to buyers that the ledger contradicts."""
    states = {row["number"]: row["state"] for row in await office.app.postgres.fetch(STATES, show_id)}
    steps = {
        (row["number"], row["attempt"]): row["step"]
        for row in await office.app.postgres.fetch(DECLINED, show_id)
    }
    found = []
    for deal in (deal for deal in deals if deal.booking_id):
        _, number = from_public_id(deal.booking_id)
        state = states.get(number)
        if state is None:
            found.append(f"held, and not in the ledger: {deal}")
        is_expected = state == ("refunded" if deal.cancelled else "confirmed")
        if deal.confirmed and not is_expected and not (deal.is_unsure and state == "refunded"):
            found.append(f"confirmed, and is {state}: {deal}")
        if deal.gone and state in ("held", "paying", "confirmed"):
            found.append(f"gone, and is {state}: {deal}")
        found += [
            f"declined, and is {steps.get((number, attempt))}: {deal}"
            for attempt in deal.declined
            if steps.get((number, attempt)) not in ("declined", "called_off", "returned")
        ]
    return found


async def sold_twice(office: Office, show_id: int) -> list[str]:
    """Seats that two confirmed bookings had at the same moment, at any time."""
    moves: dict[int, list[Any]] = defaultdict(list)
    for row in await office.app.postgres.fetch(MOVES, show_id):
        for seat in row["seats"]:
            moves[seat].append(row)
    return [
        f"seat {seat}: {one['number']} confirmed at {one['at']}, {other['number']} at {other['at']}"
        for seat, all_moves in moves.items()
        for one, other in pairwise(all_moves)
        if one["move"] == other["move"] == "confirm"
    ]


async def late_refunds(office: Office, show_id: int) -> tuple[int, int]:
    """(all of them, those whose booking had not expired and was not given up before the money came)"""
    rows = await office.app.postgres.fetch(LATE, show_id)
    return len(rows), sum(not row["was_given_up"] for row in rows)
