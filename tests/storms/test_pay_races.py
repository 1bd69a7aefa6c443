"""Two concurrent requests for one booking, many times: one outcome, and the money follows it (R20)."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from holdfast.bookings import from_public_id
from tests.support.box_office import Office
from tests.support.gateway_state import Bank, Taken, bank_of
from tests.support.money_check import sold_twice
from tests.support.shows import Fan, a_layout
from tests.support.wait import until

ROUNDS, ROUNDS_FULL = 30, 200
AT_ONCE = 10
JITTER_S = 0.006
PAYS_IN_S = 0.06
TTL_S = 1
OVER_WITHIN_S = 60.0

BOOKINGS = "SELECT number, state, amount_minor FROM booking WHERE show_id = $1"
PAYMENTS = "SELECT number, attempt, key, step FROM payment WHERE show_id = $1"
EXPIRED = "SELECT number FROM booking_move WHERE show_id = $1 AND move = 'expire'"
UNDER_WAY = """
SELECT (SELECT count(*) FROM payment WHERE show_id = $1 AND due_at IS NOT NULL)
     + (SELECT count(*) FROM refund WHERE show_id = $1 AND state = 'requested')
     + (SELECT count(*) FROM booking WHERE show_id = $1
         AND (state = 'paying' OR (state = 'held' AND expires_at < now())))
"""
DEADLINE = """
UPDATE payment SET deadline_at = now() + $3 * interval '1 ms', due_at = now() + $3 * interval '1 ms'
 WHERE show_id = $1 AND number = $2
"""


@dataclass
class Round:
    """One booking, and the responses that its owner got."""

    fan: Fan
    rival: Fan
    seat: str
    show_id: int
    bank: Bank
    office: Office
    chance: random.Random
    booking: str = ""
    responses: dict[str, httpx2.Response] = field(default_factory=dict)

    async def hold(self) -> None:
        held = await self.fan.holds(self.show_id, self.seat)
        assert held.status_code == 201, held.text
        self.booking = held.json()["booking_id"]

    async def at_once(self, **asks: Callable[[], Awaitable[httpx2.Response]]) -> None:
        """Runs both a few milliseconds apart, each one first in turn."""
        await asyncio.gather(*(self._soon(name, ask) for name, ask in asks.items()))

    async def _soon(self, name: str, ask: Callable[[], Awaitable[httpx2.Response]]) -> None:
        await asyncio.sleep(self.chance.uniform(0, JITTER_S))
        self.responses[name] = await ask()
        assert self.responses[name].status_code < 500, self.responses[name].text

    async def pay(self, key: str | None = None, method: str = "tok_ok") -> httpx2.Response:
        return await self.fan.post(f"/bookings/{self.booking}/pay", {"method": method}, key=key)

    async def cancel(self) -> httpx2.Response:
        return await self.fan.delete(f"/bookings/{self.booking}")

    async def rival_holds(self) -> httpx2.Response:
        return await self.rival.holds(self.show_id, self.seat)

    async def call_off(self) -> httpx2.Response:
        return await self.fan.delete(f"/bookings/{self.booking}/payment")

    async def later(self, ask: Callable[[], Awaitable[httpx2.Response]]) -> httpx2.Response:
        """As long as a payment takes."""
        await asyncio.sleep(self.chance.uniform(0, PAYS_IN_S))
        return await ask()

    async def is_in(self, state: str) -> bool:
        booking = await self.office.app.bookings.booking(*from_public_id(self.booking))
        return booking is not None and booking.state == state

    def status(self, name: str) -> int:
        return self.responses[name].status_code


@dataclass(frozen=True)
class End:
    """How a booking ended: in the ledger, at the gateway, and in the responses."""

    round: Round
    state: str
    amount_minor: int
    taken: Sequence[Taken]

    @property
    def retained_minor(self) -> int:
        return sum(one.retained_minor for one in self.taken)

    @property
    def captures(self) -> int:
        return sum(one.is_captured for one in self.taken)


Race = Callable[[Round], Awaitable[None]]


@pytest.fixture(scope="module")
async def bank(stage: Office) -> AsyncIterator[Bank]:
    async with bank_of(stage.app.config) as opened:
        yield opened


@pytest.fixture
def rounds(is_full: bool) -> int:
    return ROUNDS_FULL if is_full else ROUNDS


async def raced(stage: Office, bank: Bank, rounds: int, race: Race, **terms: Any) -> list[End]:
    """Runs every round on its own seat and checks what must hold for all of them."""
    layout, began_s = a_layout(rounds, row=20), time.time()
    show_id = await stage.a_show(layout=layout, **terms)
    people = await stage.fans(2 * rounds)
    chance = random.Random(show_id)
    all_rounds = [
        Round(people[2 * n], people[2 * n + 1], seat, show_id, bank, stage, chance)
        for n, seat in enumerate(layout.labels)
    ]
    room = asyncio.Semaphore(AT_ONCE)

    async def run(one: Round) -> None:
        async with room:
            await race(one)

    await asyncio.gather(*map(run, all_rounds))
    await until(lambda: over(stage, show_id), within_s=OVER_WITHIN_S)

    ends = await ended(stage, bank, all_rounds, began_s)
    for end in ends:
        assert end.retained_minor == (end.amount_minor if end.state == "confirmed" else 0), end
        assert end.captures <= 1, end
    assert await sold_twice(stage, show_id) == []
    await stage.settled()
    print(Counter((end.state, *sorted(status_codes(end.round).items())) for end in ends).most_common())
    return ends


async def over(stage: Office, show_id: int) -> bool:
    return not await stage.app.postgres.fetchval(UNDER_WAY, show_id)


async def ended(stage: Office, bank: Bank, rounds: Sequence[Round], began_s: float) -> list[End]:
    rows = await stage.app.postgres.fetch(BOOKINGS, rounds[0].show_id)
    by_number = {row["number"]: row for row in rows}
    taken = await bank.payments(began_s - 1)
    ends = []
    for one in rounds:
        row = by_number[from_public_id(one.booking)[1]]
        mine = [payment for payment in taken if payment.booking_id == one.booking]
        ends.append(End(one, row["state"], row["amount_minor"], mine))
    return ends


def status_codes(one: Round) -> dict[str, int]:
    return {name: answer.status_code for name, answer in one.responses.items()}


async def test_two_tabs_paying_at_once_cause_one_gateway_charge(
    stage: Office, bank: Bank, rounds: int
) -> None:
    async def race(one: Round) -> None:
        await one.hold()
        await one.at_once(left=lambda: one.pay("left"), right=lambda: one.pay("right"))

    for end in await raced(stage, bank, rounds, race):
        assert (end.state, len(end.taken)) == ("confirmed", 1), end
        statuses = sorted(status_codes(end.round).values())
        assert statuses == [200, 409], end.round.responses


async def test_two_requests_with_one_key_get_the_same_response(
    stage: Office, bank: Bank, rounds: int
) -> None:
    async def race(one: Round) -> None:
        await one.hold()
        await one.at_once(first=lambda: one.pay("same"), second=lambda: one.pay("same"))
        one.responses["later"] = await one.pay("same")

    for end in await raced(stage, bank, rounds, race):
        assert (end.state, len(end.taken), end.round.status("later")) == ("confirmed", 1, 200), end
        pages = [answer.json() for answer in end.round.responses.values() if answer.status_code == 200]
        assert all(page == pages[0] for page in pages), pages
        others = [answer for answer in end.round.responses.values() if answer.status_code != 200]
        assert all(answer.json()["code"] == "still_processing" for answer in others), others


async def test_paying_and_cancelling_at_once(stage: Office, bank: Bank, rounds: int) -> None:
    async def race(one: Round) -> None:
        await one.hold()
        await one.at_once(pay=lambda: one.pay("pay"), cancel=one.cancel)

    for end in await raced(stage, bank, rounds, race):
        match end.round.status("cancel"):
            case 200:
                assert end.state in ("cancelled", "refunded"), (end, end.round.responses)
            case 202:
                assert end.state in ("held", "expired", "confirmed"), (end, end.round.responses)
            case status:
                assert (status, end.state) == (409, "confirmed"), (end, end.round.responses)
        if end.round.status("pay") == 200:
            assert end.state in ("confirmed", "refunded"), (end, end.round.responses)


async def test_paying_and_cancelling_at_once_have_one_outcome(stage: Office, bank: Bank, rounds: int) -> None:
    async def race(one: Round) -> None:
        await one.hold()
        method = one.chance.choice(["tok_ok", "tok_slow"])
        await one.at_once(pay=lambda: one.pay("pay", method), call_off=lambda: one.later(one.call_off))

    await bank.behaves(slow_s=PAYS_IN_S / 2)
    for end in await raced(stage, bank, rounds, race):
        assert end.state in ("confirmed", "held"), (end, end.round.responses)
        assert end.round.status("pay") == (200 if end.state == "confirmed" else 402), end.round.responses
        if end.round.status("call_off") == 200:
            assert end.round.responses["call_off"].json()["state"] == end.state, end.round.responses


async def test_paying_while_the_hold_ends_and_another_wants_the_seat(
    stage: Office, bank: Bank, rounds: int
) -> None:
    async def race(one: Round) -> None:
        began = time.monotonic()
        await one.hold()
        await asyncio.sleep(TTL_S - (time.monotonic() - began) + one.chance.uniform(-0.03, 0.15))
        await one.at_once(pay=lambda: one.pay("pay"), rival=one.rival_holds)

    for end in await raced(stage, bank, rounds, race, hold_ttl_s=TTL_S):
        has_paid, has_rival = end.round.status("pay") == 200, end.round.status("rival") == 201
        assert not (has_paid and has_rival), end.round.responses
        assert end.state == ("confirmed" if has_paid else "expired"), (end, end.round.responses)
        assert len(end.taken) == has_paid, end


async def test_the_deadline_and_the_payment_race(stage: Office, bank: Bank, rounds: int) -> None:
    """The payer confirms at the gateway in the moment in which we call it off there."""

    async def race(one: Round) -> None:
        await one.hold()
        waiting = await one.pay("pay", "tok_3ds")
        assert waiting.status_code == 202, waiting.text
        (payment,) = await bank.of(one.booking, time.time() - 30)
        await stage.app.postgres.execute(DEADLINE, *from_public_id(one.booking), 100)
        await asyncio.sleep(one.chance.uniform(0.1, 0.7))
        with suppress(AssertionError):  # we were faster, and it is cancelled there
            await bank.decides(payment, one.chance.choice(["tok_ok", "tok_no_webhook"]))

    ends = await raced(stage, bank, rounds, race)

    expired = {row["number"] for row in await stage.app.postgres.fetch(EXPIRED, ends[0].round.show_id)}
    for end in ends:
        assert end.state in ("confirmed", "expired"), end
        assert end.captures == (end.state == "confirmed"), end
        # The seats become free only after the gateway has cancelled the payment.
        assert (end.state == "expired") == (from_public_id(end.round.booking)[1] in expired), end


async def test_a_late_payment_races_with_another_buyer_for_the_seat(
    stage: Office, bank: Bank, rounds: int
) -> None:
    """The buyer with the seat keeps it, and the other buyer is refunded."""

    async def race(one: Round) -> None:
        await one.hold()
        waiting = await one.pay("pay", "tok_stuck")
        assert waiting.status_code == 202, waiting.text
        await stage.app.postgres.execute(DEADLINE, *from_public_id(one.booking), -3_600_000)
        await until(lambda: one.is_in("expired"), within_s=OVER_WITHIN_S)
        (payment,) = await bank.of(one.booking, time.time() - 60)
        await asyncio.gather(bank.decides(payment), one.at_once(rival=lambda: one.later(one.rival_holds)))

    for end in await raced(stage, bank, rounds, race):
        is_sold = end.round.status("rival") == 201
        assert end.state == ("failed" if is_sold else "confirmed"), (end, end.round.responses)
        assert end.captures == 1, end


async def test_a_booking_returned_twice_at_once_is_refunded_once(
    stage: Office, bank: Bank, rounds: int
) -> None:
    async def race(one: Round) -> None:
        await one.hold()
        assert (await one.pay("pay")).status_code == 200
        await one.at_once(left=one.cancel, right=one.cancel)

    for end in await raced(stage, bank, rounds, race):
        assert (end.state, end.captures) == ("refunded", 1), end
        assert status_codes(end.round) == {"left": 200, "right": 200}, end.round.responses
