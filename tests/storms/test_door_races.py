"""Two concurrent requests for one ticket, over HTTP, on two workers: one outcome (R24, R30, S11).

40 and 24 times; 500 and 200 times with --full.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from tests.support.box_office import Office
from tests.support.gates import a_device, scan
from tests.support.restartable_office import an_admin
from tests.support.shows import Fan

TWO_GATES, TWO_GATES_FULL = 40, 500
REFUNDS, REFUNDS_FULL = 24, 200
AT_ONCE = 4  # races beside each other
STAGGER_S = 0.03  # longer than either takes: each may be the first
OWNER_SEATS = 200


async def test_the_same_code_at_two_gates_at_once_is_admitted_once(stage: Office, is_full: bool) -> None:
    """24 of the cases."""
    rounds = TWO_GATES_FULL if is_full else TWO_GATES
    show = await stage.a_show(seats=rounds, price_minor=0, owner_seats_max=rounds)
    (fan,), admin = await stage.fans(1), await an_admin(stage)
    north, south = await a_device(admin, show), await a_device(admin, show, "South")

    async def race(n: int) -> str:
        _, code = await bought(fan, show, is_free=True)
        pages = await asyncio.gather(scan(north, code=code), scan(south, code=code))
        won, lost = sorted(pages, key=lambda page: page["verdict"])
        assert (won["verdict"], lost["verdict"], lost["reason"]) == ("admitted", "refused", "used")
        assert (lost["first_gate"], lost["first_at"]) == (won["gate"], won["scanned_at"])
        return str(won["gate"])

    outcomes = await repeated(rounds, race)

    print(f"{rounds} codes at two gates at once: let in once each; first at {dict(outcomes)}")
    (counted,) = (await north.get("/gate/counts")).json()["shows"]
    assert (counted["used"], counted["inside"], counted["conflicts"]) == (rounds, rounds, 0)


async def test_a_refund_that_meets_the_door_is_made_or_refused(stage: Office, is_full: bool) -> None:
    """27 of the cases: paid at the gateway, given back at the refunds desk, shown at the door."""
    rounds = REFUNDS_FULL if is_full else REFUNDS
    show = await stage.a_show(seats=rounds, owner_seats_max=OWNER_SEATS)
    (fan,), admin = await stage.fans(1), await an_admin(stage)
    gate = await a_device(admin, show)

    async def race(n: int) -> str:
        path, code = await bought(fan, show)
        delays = ((0, None), (None, 0), (0, 0), (random.uniform(0, STAGGER_S), random.uniform(0, STAGGER_S)))
        refunded, scanned = await one_after(delays[n % 4], fan.delete(path), scan(gate, code=code))
        booking = (await fan.get(path)).json()
        (attempt,) = (await fan.get(f"{path}/payments")).json()["attempts"]
        outcome = (scanned["verdict"], scanned.get("reason"), booking["state"], refunded.status_code)
        if booking["state"] == "refunded":
            assert outcome == ("refused", "void", "refunded", 200), outcome
            assert [one["amount"] for one in attempt["refunds"]] == [attempt["amount"]]
        else:
            assert outcome == ("admitted", None, "confirmed", 409), outcome
            assert refunded.json()["code"] == "seats_used"
            assert attempt["refunds"] == []
        return str(booking["state"])

    outcomes = await repeated(rounds, race)

    print(f"{rounds} refunds that met the door: {dict(outcomes)}")
    assert outcomes.keys() == {"refunded", "confirmed"}  # of four delays, each side is first at least once
    await stage.settled()


async def bought(fan: Fan, show: int, *, is_free: bool = False) -> tuple[str, str]:
    """(path of the booking, code of its ticket)"""
    held = await fan.holds(show, best={"count": 1})
    assert held.status_code == 201, held.text
    path = f"/bookings/{held.json()['booking_id']}"
    if not is_free:
        paid = await fan.post(f"{path}/pay", {"method": "tok_ok"})
        assert paid.status_code == 200, paid.text
    (ticket,) = (await fan.get(f"{path}/tickets")).json()["tickets"]
    return path, str(ticket["code"])


async def one_after(delays_s: tuple[float | None, float | None], *acts: Awaitable[Any]) -> list[Any]:
    """Each after its delay; with None, when the other is done."""
    done = asyncio.Event()

    async def act(delay_s: float | None, one: Awaitable[Any]) -> Any:
        if delay_s is None:
            await done.wait()
        else:
            await asyncio.sleep(delay_s)
        answer = await one
        done.set()
        return answer

    return await asyncio.gather(*(act(*both) for both in zip(delays_s, acts, strict=True)))


async def repeated(rounds: int, race: Callable[[int], Awaitable[str]]) -> Counter[str]:
    """How often each outcome was seen."""
    outcomes: Counter[str] = Counter()
    for start in range(0, rounds, AT_ONCE):
        outcomes.update(await asyncio.gather(*(race(n) for n in range(start, min(start + AT_ONCE, rounds)))))
    return outcomes
