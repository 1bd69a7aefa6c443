"""Decides refunds in one transaction: locks, loads the cases, calls decision.py, writes the results."""

from collections.abc import Sequence
from typing import Any

from holdfast.bookings import BookingState
from holdfast.engines.postgres import Row, Transaction
from holdfast.engines.sql import Queries
from holdfast.refunds.decision import (
    DecidedRefund,
    PaidPayment,
    RefundCase,
    RefundTicket,
    RefundVerdict,
    decide,
)
from holdfast.refunds.refund import RefundRequest

Q = Queries("holdfast.refunds")

BookingKey = tuple[int, int]  # show_id, number
AMOUNTS = ("seats_minor", "amount_minor", "fee_minor", "tax_minor")


async def decide_in(
    tx: Transaction, requests: Sequence[RefundRequest], due_ms: int
) -> list[tuple[RefundVerdict, RefundCase | None]]:
    """A verdict per request, in order, with its case as it is after all of them."""
    keys = [(request.booking.show_id, request.booking.number) for request in requests]
    cases = await _load_cases(tx, sorted(set(keys)))
    verdicts: dict[int, RefundVerdict] = {}
    # Bookings in the order of their keys, as they were locked; requests for one booking in the order given.
    for place in sorted(range(len(requests)), key=lambda i: (keys[i], i)):
        verdicts[place] = decide(cases.get(keys[place]), requests[place])
    decided = [place for place, verdict in verdicts.items() if verdict.outcome == "decided"]
    if decided:
        await _write(tx, [(requests[i], verdicts[i], cases[keys[i]]) for i in decided], due_ms)
    return [(verdicts[i], cases.get(keys[i])) for i in range(len(requests))]


async def _load_cases(tx: Transaction, keys: Sequence[BookingKey]) -> dict[BookingKey, RefundCase]:
    """Every read comes after the locks: what is loaded stays true until the commit."""
    arrays = [key[0] for key in keys], [key[1] for key in keys]
    await tx.execute(Q.lock, *arrays)
    rows = {(row["show_id"], row["number"]): row for row in await tx.fetch(Q.cases, *arrays)}
    cases = {key: _case(row) for key, row in rows.items()}
    for row in await tx.fetch(Q.tickets, *arrays):
        key = row["show_id"], row["number"]
        if key in cases:
            owners = (None, rows[key]["owner_id"])
            is_transferred = row["owner_id"] not in owners or row["owner_email"] is not None
            cases[key].tickets[row["seat"]] = RefundTicket(row["is_void"], row["is_used"], is_transferred)
    for row in await tx.fetch(Q.decided_before, *arrays):
        case = cases.get((row["show_id"], row["number"]))
        if case is not None and case.payment is not None and case.payment.attempt == row["attempt"]:
            amounts = [row[name] for name in AMOUNTS]
            case.refunds.append(DecidedRefund(row["id"], row["why"], tuple(row["seats"]), *amounts))
    return cases


async def _write(
    tx: Transaction, decided: Sequence[tuple[RefundRequest, RefundVerdict, RefundCase]], due_ms: int
) -> None:
    rows = [_row(*one) for one in decided]
    await tx.execute(Q.record, *(list(column) for column in zip(*rows, strict=True)), due_ms)
    shows = [request.booking.show_id for request, _, _ in decided]
    numbers = [request.booking.number for request, _, _ in decided]
    freed = [len(verdict.freed) for _, verdict, _ in decided]
    cards = [case.payment.card if case.payment else None for _, _, case in decided]
    # Counters are the last of all locks, owners before cards, so that two batches cannot deadlock.
    await tx.execute(Q.count_owners_down, shows, numbers, freed)
    await tx.execute(Q.count_cards_down, shows, cards, freed)


def _row(request: RefundRequest, verdict: RefundVerdict, case: RefundCase) -> tuple[Any, ...]:
    """The arguments of record_refund; without a payment only the seats matter."""
    booking, refund = request.booking, verdict.refund
    return (
        *(booking.show_id, booking.number, case.payment.attempt if case.payment else None),
        *(refund.id if refund else None, request.why, f"{{{','.join(map(str, verdict.freed))}}}"),
        *(getattr(refund, name) if refund else None for name in AMOUNTS),
        *(booking.currency, request.note, request.actor_id),
    )


def _case(row: Row) -> RefundCase:
    payment = None
    if row["attempt"] is not None:
        names = ("attempt", "amount_minor", "fee_minor", "tax_minor", "refunds_minor", "card")
        payment = PaidPayment(*(row[name] for name in names))
    state = BookingState(row["state"])
    return RefundCase(state, tuple(row["seats"]), tuple(row["prices_minor"]), payment, {})
