"""Scripted guests on a few addresses against people who buy: the limits hold at every instant.

A bot drops its cookie and holds ten seats again and again. People have accounts, hold two seats and pay.
With `--full`: 1 000 bots on 10 address ranges, 200 people, a stadium of 50 000 seats.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import aiohttp
import pytest

from holdfast.bookings import Booking
from tests.support.box_office import Office
from tests.support.limited_holds import guest_holds, most_at_once, turn_clock
from tests.support.paid_bookings import violations
from tests.support.puzzle_solver import solve
from tests.support.result_tables import Table
from tests.support.shows import API, Fan, a_layout

BOT_SEATS = 10
ROUNDS = 3
AT_ONCE_MAX = 64
HOUR_S = 3600
HELD_NOW = "SELECT coalesce(sum(cardinality(seats)), 0) FROM booking WHERE show_id = $1 AND state = 'held'"


@pytest.fixture(scope="module")
def table(pytestconfig: pytest.Config) -> Table:
    """Printed when all tests are over."""
    made = Table("bots")
    pytestconfig.pluginmanager.register(made, "bots")
    return made


@dataclass
class Bots:
    """Guests behind some addresses; each tries ROUNDS times, the first and the last time as a new browser."""

    office: Office
    show: int
    addresses: list[str]
    count: int
    answers: Counter[str] = field(default_factory=Counter)

    async def attack(self) -> None:
        links = aiohttp.TCPConnector(limit=AT_ONCE_MAX)
        async with aiohttp.ClientSession(connector=links, cookie_jar=aiohttp.DummyCookieJar()) as http:
            await asyncio.gather(*(self._bot(http, n) for n in range(self.count)))

    async def _bot(self, http: aiohttp.ClientSession, n: int) -> None:
        headers = {"x-forwarded-for": self.addresses[n % len(self.addresses)], "accept": "application/json"}
        cookie = ""
        for turn in range(ROUNDS):
            known = {"cookie": cookie} if 0 < turn < ROUNDS - 1 and cookie else {}
            word, cookie = await self._tries(http, headers | known, cookie, solves=turn == 0)
            self.answers[word] += 1

    async def _tries(
        self,
        http: aiohttp.ClientSession,
        headers: dict[str, str],
        cookie: str,
        *,
        solves: bool,
        proof: str = "",
    ) -> tuple[str, str]:
        """(What it got, its cookie)."""
        url, form = f"{self.office.url}/shows/{self.show}/hold", {"quantity": str(BOT_SEATS), "proof": proof}
        async with http.post(url, data=form, headers=headers) as answer:
            cookie = answer.headers.get("set-cookie", cookie).partition(";")[0]
            if answer.status == 200:
                return "held", cookie
            found = await answer.json(content_type=None)
        if found["code"] == "proof_needed" and solves and not proof:
            proof = await asyncio.to_thread(solve, found["puzzle"], found["bits"])
            return await self._tries(http, headers, cookie, solves=solves, proof=proof)
        return str(found["code"]), cookie


async def buys(fan: Fan, show: int) -> int:
    """Two seats, paid for; the number of seats."""
    held = await fan.holds(show, best={"count": 2})
    if held.status_code != 201:
        return 0
    paid = await fan.post(f"/bookings/{held.json()['booking_id']}/pay", {"method": "tok_ok"})
    return 2 if paid.status_code == 200 and paid.json()["state"] == "confirmed" else 0


async def bought_by(people: list[Fan], show: int) -> int:
    gate = asyncio.Semaphore(AT_ONCE_MAX)

    async def one(fan: Fan) -> int:
        async with gate:
            return await buys(fan, show)

    return sum(await asyncio.gather(*(one(fan) for fan in people)))


async def test_bots_never_exceed_their_limits_and_people_buy(
    stage: Office, is_full: bool, table: Table
) -> None:
    bots, ranges, people = (1000, 10, 200) if is_full else (90, 3, 20)
    limit = stage.app.config.range_seats_max
    # More rows than holds within the limits, so that every bot finds ten seats side by side: it is refused
    # for its limit alone. Without a limit the bots would have every seat.
    layout = a_layout((ranges * limit // BOT_SEATS + people + 1) * BOT_SEATS, row=BOT_SEATS)
    assert bots * BOT_SEATS > len(layout.labels)
    calm, stormy = await stage.a_show(layout=layout), await stage.a_show(layout=layout)
    fans = await stage.fans(people)
    without = await bought_by(fans, calm)
    crowd = Bots(stage, stormy, [f"203.0.{n}.7" for n in range(ranges)], bots)

    with_bots, _ = await asyncio.gather(bought_by(fans, stormy), crowd.attack())

    most = await most_at_once(stage.app.postgres, stormy)
    row = f"{bots} bots on {ranges} ranges, {people} people"
    table.note(row, "people bought", f"{with_bots} seats, {without} without bots")
    table.note(row, "most at once of a range", f"{most.party_seats} seats, limit {limit}")
    table.note(row, "of a guest", f"{most.owner_holds} hold")
    table.note(row, "tries of bots", ", ".join(f"{n} {word}" for word, n in crowd.answers.most_common()))
    print(f"people bought {with_bots} seats, {without} without bots; bots: {dict(crowd.answers)}; {most}")
    assert without == 2 * people
    assert with_bots >= 0.9 * without
    assert most.party_seats == limit, "the bots used their limit, and no more at any instant"
    assert most.owner_holds == 1
    assert set(crowd.answers) <= {"held", "range_limit", "hold_open", "proof_needed", "too_many_requests"}
    free = (await stage.api.get(f"{stage.url}{API}/shows/{stormy}/seats")).json()["states"].count("A")
    assert free >= len(layout.labels) - ranges * limit - with_bots


@pytest.mark.parametrize("each", [10, 1])
async def test_one_address_has_at_most_its_limit_of_a_stadium_in_an_hour_of_trying(
    stage: Office, is_full: bool, table: Table, each: int
) -> None:
    """A new guest for every try, many tries after each turn of the clock, and no page before the holds."""
    app, limit = stage.app, stage.app.config.range_seats_max
    seats, turns, tries = (50_000, 60, 200) if is_full else (2_000, 12, limit // each + 4)
    show = await stage.a_show(layout=a_layout(seats, row=100))
    answers: Counter[str] = Counter()
    held_each_turn = []
    for turn in range(turns):
        places = [(turn * tries + n) * each % seats for n in range(tries)]
        found = await asyncio.gather(
            *(
                guest_holds(app, show, f"203.0.113.{n % 250}", *range(at, at + each))
                for n, at in enumerate(places)
            )
        )
        answers.update("held" if isinstance(one, Booking) else one.code for one in found)
        held_each_turn.append(int(await app.postgres.fetchval(HELD_NOW, show)))
        await turn_clock(app, show, HOUR_S // turns)

    most = await most_at_once(app.postgres, show)
    share = sum(held_each_turn) / turns / seats
    row = f"an hour of {turns * tries} tries for {each} of {seats} seats"
    table.note(row, "most at once of a range", f"{most.party_seats} seats, limit {limit}")
    table.note(row, "of the stadium in the hour", f"{share:.3%}")
    table.note(row, "tries of bots", ", ".join(f"{n} {word}" for word, n in answers.most_common()))
    assert max(held_each_turn) == most.party_seats == limit
    assert answers["cool_down"] > 0 or each == BOT_SEATS, "lapsed holds cost time"
    assert set(answers) <= {"held", "range_limit", "cool_down"}
    assert await violations(app, show) == []
