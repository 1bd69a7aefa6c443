"""A release is rolled out and back while people buy. Also a program, for earlier commits of this repository:

    python -m tests.support.rolling_upgrade --from COMMIT [--purchases 200] [--keep-running]
    python -m tests.support.rolling_upgrade --from COMMIT --stop

Buyers reach the machines through a balancer of their own: every request goes to any machine in rotation, so
a seat that one release holds is paid for at the other. A machine leaves the rotation before it is stopped. So
no request may fail at all; a refusal with Retry-After is repeated with the same key, and counted.
"""

import argparse
import asyncio
import random
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx2

from holdfast.engines.embedded import engines
from tests.support.box_office import ROOT, running, words_in
from tests.support.empty_ledger import fill_with_ledger
from tests.support.engine_folder import engine_folder
from tests.support.killable_transport import client_of_killed
from tests.support.releases import Machine, Release, earlier_release, this_release
from tests.support.shows import API
from tests.support.wait import until

BUYERS = 8
PEOPLE = 64  # accounts: each may have a thousand seats of the show
PATIENCE_S = 20.0
PAUSE_S = 0.05
REACH_WITHIN_S = 120.0
SECRET = "whsec_of_a_rolled_release"
UNDER_WAY = {"still_processing", "payment_under_way"}


@dataclass
class Phase:
    name: str
    began: float = field(default_factory=time.monotonic)
    ended: float = 0.0
    purchases: int = 0
    repeated: int = 0  # requests that were refused with Retry-After, or whose payment was still under way
    slowest_s: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.name:<42} {self.purchases:>5} purchases in {self.ended - self.began:5.1f} s, "
            f"{self.repeated} requests repeated, slowest request {1000 * self.slowest_s:.0f} ms"
        )


@dataclass
class Sales:
    """Buyers, the balancer in front of the machines, and what came of it."""

    show: int
    tokens: list[str]
    in_rotation: dict[str, httpx2.AsyncClient] = field(default_factory=dict)
    under_way: dict[str, int] = field(default_factory=dict)
    phases: list[Phase] = field(default_factory=list)
    bookings: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    is_over: bool = False
    repeats_500: bool = False  # an answer 500 is repeated, too, and counted
    errors: int = 0
    _buyers: list[asyncio.Task[None]] = field(default_factory=list)

    def put_in(self, url: str) -> None:
        self.in_rotation[url] = client_of_killed(url, PATIENCE_S)
        self.under_way[url] = 0

    async def has_machine(self) -> bool:
        return bool(self.in_rotation)

    async def take_out(self, url: str) -> None:
        """New requests go elsewhere; those under way are finished."""
        client = self.in_rotation.pop(url)

        async def is_idle() -> bool:
            return self.under_way[url] == 0

        await until(is_idle)
        await client.aclose()

    async def reach(self, name: str, purchases: int) -> None:
        """A phase that lasts until so many purchases were made in it."""
        self.begin(name)

        async def enough() -> bool:
            return bool(self.failures) or self.phases[-1].purchases >= purchases

        await until(enough, within_s=REACH_WITHIN_S)
        assert not self.failures, self.failures

    def begin(self, name: str) -> None:
        now = time.monotonic()
        if self.phases:
            self.phases[-1].ended = now
        self.phases.append(Phase(name, now))

    def open(self) -> None:
        self._buyers = [asyncio.create_task(self.buy(self.tokens[one::BUYERS])) for one in range(BUYERS)]

    async def end(self) -> None:
        """Purchases under way are finished."""
        self.begin("the end")
        self.is_over = True
        await asyncio.gather(*self._buyers)

    def close(self) -> None:
        for task in self._buyers:
            task.cancel()
        print(*(phase for phase in self.phases if phase.ended), *self.failures, sep="\n")

    async def buy(self, tokens: list[str]) -> None:
        """One purchase after the other: hold a seat, pay, read the tickets."""
        for token in cycle(tokens):
            if self.is_over:
                return
            held = await self.ask(token, "POST", f"/shows/{self.show}/holds", {"best": {"count": 1}})
            if held.status_code != 201:
                return self.fail(held)
            booking = held.json()["booking_id"]
            paid = await self.ask(token, "POST", f"/bookings/{booking}/pay", {"method": "tok_ok"})
            if paid.status_code != 200 or paid.json()["state"] != "confirmed":
                return self.fail(paid)
            tickets = await self.ask(token, "GET", f"/bookings/{booking}/tickets")
            if tickets.status_code != 200 or len(tickets.json()["tickets"]) != 1:
                return self.fail(tickets)
            self.bookings.append(booking)
            self.phases[-1].purchases += 1

    def fail(self, answer: httpx2.Response) -> None:
        where = f"{self.phases[-1].name}: {answer.request.method} {answer.request.url}"
        self.failures.append(f"{where}: {answer.status_code} {answer.text[:500]}")

    async def ask(self, token: str, method: str, path: str, body: Any = None) -> httpx2.Response:
        """The answer; repeats the request with the same key as long as it is "not yet"."""
        headers = {"Authorization": f"Bearer {token}"}
        headers |= {"Idempotency-Key": secrets.token_hex(8)} if body else {}
        give_up_at = time.monotonic() + PATIENCE_S
        while True:
            answer = await self.send(method, API + path, json=body, headers=headers)
            is_not_yet = answer.status_code in (202, 503) or answer.json().get("code") in UNDER_WAY
            if answer.status_code == 500 and self.repeats_500:
                self.errors += 1
                is_not_yet = True
            if not is_not_yet or time.monotonic() > give_up_at:
                return answer
            self.phases[-1].repeated += 1
            await asyncio.sleep(PAUSE_S)

    async def send(self, method: str, path: str, **request: Any) -> httpx2.Response:
        await until(self.has_machine, within_s=REACH_WITHIN_S)
        url = random.choice(list(self.in_rotation))
        self.under_way[url] += 1
        began = time.monotonic()
        try:
            return await self.in_rotation[url].request(method, path, **request)
        finally:
            self.under_way[url] -= 1
            phase = self.phases[-1]
            phase.slowest_s = max(phase.slowest_s, time.monotonic() - began)


@dataclass
class Stage:
    """Engines, a gateway, and the machines of both releases."""

    path: Path
    old: Release
    new: Release
    settings: dict[str, str]

    def machine(self, release: Release, name: str) -> Machine:
        return Machine(release, self.path / name, self.settings)

    async def seed(self, seats: int) -> Sales:
        await self.old.holdfast(self.settings, "migrate")  # the sale begins on the schema of the old release
        return Sales(**await self.old.seed(self.settings, seats=seats, people=PEOPLE))


@asynccontextmanager
async def a_stage(path: Path, old: Release, new: Release) -> AsyncIterator[Stage]:
    sandbox = ("sandbox", "--port", "0", "--data", str(path / "sandbox"), "--secret", SECRET, "--json")
    if old.root == ROOT:  # its schema is that of the copy
        await fill_with_ledger(path / "engines")
    async with (
        engines(path / "engines", connections_max=120) as both,
        running(path / "sandbox.log", sandbox, {}) as gateway,
    ):
        settings = {
            "HOLDFAST_DATABASE_URL": both.database_url,
            "HOLDFAST_REDIS_URL": both.redis_url,
            "HOLDFAST_GATEWAY": "sandbox",
            "HOLDFAST_GATEWAY_URL": gateway["url"],
            "HOLDFAST_GATEWAY_SECRET": SECRET,
            "HOLDFAST_ACCESS_TTL_S": "3600",
        }
        yield Stage(path, old, new, settings)


async def roll(stage: Stage, sales: Sales, purchases: int, *, restarts: bool = True) -> None:
    """Out and back. Without `restarts` the old machine runs on, out of rotation, while the new one serves."""
    old, new = stage.machine(stage.old, "old"), stage.machine(stage.new, "new")
    try:
        await old.start()
        sales.put_in(old.url)
        sales.open()
        await sales.reach("the old release alone", purchases)

        sales.begin("the new release migrates")
        await stage.new.holdfast(stage.settings, "migrate")
        await sales.reach("the old release on the new schema", purchases)

        await new.start()
        sales.put_in(new.url)
        await sales.reach("both", purchases)
        await sales.take_out(old.url)
        if restarts:
            await old.stop()
        await sales.reach("the new release alone", purchases)

        if restarts:
            old = stage.machine(stage.old, "old-again")
            await old.start()
        sales.put_in(old.url)
        await sales.reach("both, on the way back", purchases)
        await sales.take_out(new.url)
        await new.stop()
        await sales.reach("the old release alone, on the new schema", purchases)
        if restarts and stage.old.brings_functions_back:
            sales.begin("the old release brings its functions back")
            await stage.old.holdfast(stage.settings, "migrate", "--own-functions")
            await sales.reach("the old release with its own functions", purchases)
        await sales.end()
    finally:
        sales.close()
        await old.stop()
        await new.stop()
        if sales.failures:
            print(
                *(line for log in stage.path.glob("*/*.log") for line in words_in(log).splitlines()), sep="\n"
            )


async def replace_at_once(stage: Stage, sales: Sales, purchases: int) -> None:
    """With a stop: the old release ends, the new one migrates and begins. Buyers wait meanwhile."""
    old, new = stage.machine(stage.old, "old"), stage.machine(stage.new, "new")
    try:
        await old.start()
        sales.put_in(old.url)
        sales.open()
        await sales.reach("the old release alone", purchases)
        sales.begin("stopped: nothing is sold")
        await sales.take_out(old.url)
        await old.stop()
        began = time.monotonic()
        await stage.new.holdfast(stage.settings, "migrate")
        print(f"migrated in {time.monotonic() - began:.1f} s")
        await new.start()
        sales.put_in(new.url)
        await sales.reach("the new release alone", purchases)
        await sales.end()
    finally:
        sales.close()
        await old.stop()
        await new.stop()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--from", dest="commit", required=True)
    parser.add_argument("--purchases", type=int, default=100, help="per phase")
    parser.add_argument("--keep-running", action="store_true", help="the old release cannot start again")
    parser.add_argument(
        "--repeat-500", action="store_true", help="buyers repeat a request that was answered 500"
    )
    parser.add_argument("--stop", action="store_true", help="both cannot run at once: stop, migrate, start")
    options = parser.parse_args()
    with engine_folder("holdfast-roll-") as path:
        old = earlier_release(options.commit, path / "tree")
        async with a_stage(path, old, this_release()) as stage:
            sales = await stage.seed(seats=20_000)
            sales.repeats_500 = options.repeat_500
            if options.stop:
                await replace_at_once(stage, sales, options.purchases)
            else:
                await roll(stage, sales, options.purchases, restarts=not options.keep_running)
            found = await stage.new.holdfast(stage.settings, "audit", "--map", "--gateway")
            print(
                f"{len(sales.bookings)} purchases, {len(sales.failures)} failed, {sales.errors} answers 500; "
                f"{found['total']} violations"
            )


if __name__ == "__main__":
    asyncio.run(main())
