"""What the limits cost, and what they are for: holds with all of them on and off, sign-ins under an attack.

Holds are counted against limits per buyer; those of accounts without a verified address per address range as
well. The reference has every limit switched off by its setting and only verified accounts.

The attack is a list of stolen passwords, tried from thousands of addresses, each with another account. People
sign in at addresses where they were before, a few per second. Their figure is a speed, 1 / p99: at 0.5 the
slowest sign-ins take twice as long as without the attack.
"""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx2

from bench.attackers import start_attack
from bench.environment import Environment, create_shows, start_environment, start_workers, write_tokens
from bench.errors import require
from bench.figure import Figure
from bench.load import HoldLoad, load_holds
from bench.session import Session
from holdfast.accounts import NewAccount
from holdfast.accounts.account import hash_password
from tests.support.shows import a_layout

SECONDS, WARM_S = 4, 2
SHOWS = 1_000  # of 200 seats: more than a run can sell
ACCOUNTS = 2_000
RANGES = 250  # that unverified accounts come from
HOLDS_BAR = 0.9
ON = {"requests_per_second_max": 1_000_000}  # the others are on unless they are set
OFF = dict.fromkeys(
    (
        "guest_holds_max",
        "range_seats_max",
        "lapses_per_hour_max",
        "range_lapses_per_hour_max",
        "lapse_cooldown_s",
        "puzzle_from_holds_per_second",
        "requests_per_second_max",
    ),
    0,
)

PEOPLE = 100
SIGN_INS_PER_SECOND, SIGN_IN_S = 10, 20
SIGN_IN_BAR = 0.5
PASSWORD = "correct horse battery staple"
LOGIN = "/api/v1/auth/login"


@dataclass(frozen=True)
class HoldsBench:
    env: Environment
    session: Session

    async def per_second(self, url: str, tokens: Path) -> float:
        (first, *_) = await create_shows(self.env, a_layout(200), SHOWS)
        for mode, seconds in (("warm", WARM_S), ("hold", SECONDS)):
            load = HoldLoad(mode, first, SHOWS, seconds=self.session.seconds(seconds), ranges=RANGES)
            held = await load_holds(url, tokens, load)
        return held.expect(201).per_second


async def measure_holds(env: Environment, session: Session) -> list[Figure]:
    off = "all limits off"
    verified = Figure("holds with all limits on", "holds/s", off, HOLDS_BAR)
    counted = Figure("holds counted per address range", "holds/s", off, HOLDS_BAR)
    session.report("creating accounts")
    known, new = await write_tokens(env, ACCOUNTS), await write_tokens(env, ACCOUNTS, is_verified=False)
    bench = HoldsBench(env, session)
    async with AsyncExitStack() as stack:
        free = await stack.enter_async_context(start_workers(env, 2, **OFF))
        limited = await stack.enter_async_context(start_workers(env, 2, **ON))
        for url in (free, limited):
            await bench.per_second(url, new)  # fills the caches of workers and plans
        async for attempt in session.repeat(verified, counted):
            session.report(f"holds with limits on and off, attempt {attempt + 1}")
            runs = deque([(free, known), (limited, known), (limited, new)])
            runs.rotate(attempt)  # none is always the first, or always behind another
            found = {run: await bench.per_second(*run) for run in runs}
            verified.add(found[limited, known], found[free, known])
            counted.add(found[limited, new], found[free, known])
    return [verified, counted]


@dataclass(frozen=True)
class SignInBench:
    session: Session
    client: httpx2.AsyncClient
    emails: Sequence[str]

    async def p99_ms(self) -> float:
        """Of people who sign in at an even pace, whether the ones before them are done or not."""
        count = round(SIGN_INS_PER_SECOND * self.session.seconds(SIGN_IN_S))
        began, under_way = time.perf_counter(), []
        for n in range(count):
            await asyncio.sleep(max(0.0, began + n / SIGN_INS_PER_SECOND - time.perf_counter()))
            under_way.append(asyncio.create_task(self.sign_in(n % len(self.emails))))
        times_ms = sorted(await asyncio.gather(*under_way))
        return times_ms[len(times_ms) * 99 // 100]

    async def sign_in(self, person: int) -> float:
        began, address = time.perf_counter(), f"198.18.{person}.7"
        answer = await self.client.post(
            LOGIN,
            json={"email": self.emails[person], "password": PASSWORD},
            headers={"X-Forwarded-For": address},
        )
        took_s = time.perf_counter() - began
        require(answer.status_code == 200, f"a person got {answer.status_code} for the right password")
        return took_s * 1000


async def measure_sign_ins(env: Environment, session: Session) -> list[Figure]:
    figure = Figure("sign-ins under a stuffing attack", "1/p99", "without it", SIGN_IN_BAR)
    emails = [f"person{n}@people.example" for n in range(PEOPLE)]
    hashed = hash_password(PASSWORD)
    await env.app.accounts.add_many([NewAccount(email, "Person", password_hash=hashed) for email in emails])
    async with start_workers(env, 2) as url, httpx2.AsyncClient(base_url=url, timeout=30) as client:
        bench = SignInBench(session, client, emails)
        for person in range(PEOPLE):
            await bench.sign_in(person)
        async for attempt in session.repeat(figure):
            session.report(f"sign-ins with and without an attack, attempt {attempt + 1}")
            calm = await bench.p99_ms()
            async with start_attack("stuffing", url, LOGIN):
                found = await bench.p99_ms()
            figure.add(1000 / found, 1000 / calm)
            figure.note = f"p99 {found:.0f} ms, {calm:.0f} ms without"
    return [figure]


async def measure_limits(session: Session) -> list[Figure]:
    async with start_environment() as env:
        return [*await measure_holds(env, session), *await measure_sign_ins(env, session)]
