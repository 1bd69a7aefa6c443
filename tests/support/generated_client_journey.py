"""Buys a ticket with the generated client. A program of its own, started by test_generated_client.py.

    python generated_client_journey.py <address of the API> <show> <seat> …

It prints what it got as one JSON object. `holdfast_client` is the generated package; it exists only while the
test runs, so type checkers cannot see it.
"""

import json
import sys
import uuid
from typing import Any

from holdfast_client import AuthenticatedClient, Client  # type: ignore[import-not-found]
from holdfast_client.api.accounts import create_account, get_account, log_in  # type: ignore[import-not-found]
from holdfast_client.api.payments import pay_booking  # type: ignore[import-not-found]
from holdfast_client.api.sale import hold_seats  # type: ignore[import-not-found]
from holdfast_client.api.tickets import get_ticket, list_booking_tickets  # type: ignore[import-not-found]
from holdfast_client.models import (  # type: ignore[import-not-found]
    HoldBody,
    LogInBody,
    PayBody,
    Problem,
    SignUpBody,
)

EMAIL, PASSWORD = f"{uuid.uuid4()}@example.org", "a long and boring password"


def signed_in(address: str) -> Any:
    """A client of a new account, with the token of its sign-up: it logs in once its address is confirmed."""
    anyone = Client(base_url=address)
    created = create_account.sync(client=anyone, body=SignUpBody(email=EMAIL, password=PASSWORD, name="Ann"))
    assert created.account.email == EMAIL
    early = log_in.sync(client=anyone, body=LogInBody(email=EMAIL, password=PASSWORD))
    assert isinstance(early, Problem)
    return AuthenticatedClient(base_url=address, token=created.access_token)


def main(address: str, show: int, seats: list[str]) -> None:
    client = signed_in(address)
    assert get_account.sync(client=client).email == EMAIL
    wish, key = HoldBody(seats=seats), str(uuid.uuid4())
    held = hold_seats.sync(show, client=client, body=wish, idempotency_key=key)
    retried = hold_seats.sync(show, client=client, body=wish, idempotency_key=key)
    late = hold_seats.sync(show, client=client, body=wish, idempotency_key=str(uuid.uuid4()))
    assert isinstance(late, Problem)
    paid = pay_booking.sync(held.booking_id, client=client, body=PayBody(method="tok_ok"))
    tickets = list_booking_tickets.sync(held.booking_id, client=client).tickets
    ticket = get_ticket.sync(tickets[0].ticket_id, client=client)
    printed = {
        "held": [seat.label for seat in held.seats],
        "same_hold": retried.booking_id == held.booking_id,
        "second_hold": [late.status, late.code],
        "paid": paid.state,
        "tickets": len(tickets),
        "ticket": {"seat": ticket.seat, "standing": ticket.standing, "has_code": bool(ticket.code)},
    }
    print(json.dumps(printed))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
