"""python -m bench.far_ledger [--round-trip-ms 30]: what distance to the ledger or its standby costs a buyer.

One web process, PostgreSQL on this machine, a relay that delays what goes through it. Not part of `make
bench`: the figures are about waiting, and not about work. They are in
docs/decisions/0037-a-show-is-sold-in-one-region.md
"""

import argparse
import asyncio
import secrets
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.support.box_office import Office, office
from tests.support.postgres_server import Server, a_primary
from tests.support.shows import Fan, a_layout
from tests.support.slow_relay import slow_relay

SEATS = 20_000
ALONE = 60  # purchases of one buyer after the other
TOGETHER_S, BUYERS = 10.0, 32


@dataclass
class Times:
    """In seconds, of one kind of load."""

    holds: list[float] = field(default_factory=list)
    purchases: list[float] = field(default_factory=list)  # the hold and its payment
    seconds: float = 0.0

    def describe(self) -> str:
        def ms(values: list[float]) -> str:
            ordered = sorted(values)
            return f"{statistics.median(ordered) * 1000:.0f} / {ordered[len(ordered) * 95 // 100] * 1000:.0f}"

        return f"{ms(self.holds)} | {ms(self.purchases)} | {len(self.purchases) / self.seconds:.0f}"


async def buy(fan: Fan, show: int, times: Times) -> None:
    began = time.perf_counter()
    held = await fan.holds(show, key=secrets.token_hex(8), best={"count": 1})
    times.holds.append(time.perf_counter() - began)
    assert held.status_code == 201, held.text
    booking = held.json()["booking_id"]
    paid = await fan.post(f"/bookings/{booking}/pay", {"method": "tok_ok"}, key=secrets.token_hex(8))
    assert paid.status_code == 200, paid.text
    times.purchases.append(time.perf_counter() - began)


async def measure(stage: Office) -> tuple[Times, Times]:
    """Of one buyer, and of many at once."""
    show = await stage.a_show(layout=a_layout(SEATS, row=50), owner_seats_max=1000)
    await stage.app.seatmap.rebuild(show, "bench")
    people, alone, together = await stage.fans(BUYERS), Times(), Times()
    for _ in range(5):  # connections are opened, plans are made
        await buy(people[0], show, Times())
    began = time.perf_counter()
    for _ in range(ALONE):
        await buy(people[0], show, alone)
    alone.seconds = time.perf_counter() - began

    async def buy_on(fan: Fan, until: float) -> None:
        while time.perf_counter() < until:
            await buy(fan, show, together)

    began = time.perf_counter()
    await asyncio.gather(*(buy_on(fan, began + TOGETHER_S) for fan in people))
    together.seconds = time.perf_counter() - began
    return alone, together


@asynccontextmanager
async def ledger(round_trip_s: float, *, is_far: bool, has_standby: bool) -> AsyncIterator[str]:
    """The address for a web process that is `round_trip_s` away from it, or from its standby."""
    async with a_primary() as started:
        (primary,) = started
        async with slow_relay(primary.port, round_trip_s) as port:
            if has_standby:
                started.append(await add_far_standby(primary, port))
                await primary.wait_for_standby()
            yield primary.url.replace(f":{primary.port}/", f":{port}/") if is_far else primary.url


async def add_far_standby(primary: Server, port: int) -> Server:
    standby = primary.beside("db2")
    source = primary.url.replace(f":{primary.port}/", f":{port}/")
    await standby.run(
        'pg_basebackup --pgdata="$PGDATA" --dbname="$PRIMARY" --write-recovery-conf --checkpoint=fast',
        PGDATA=str(standby.data),
        PRIMARY=source,
    )
    await standby.start()
    return standby


async def main(round_trip_ms: float) -> None:
    cases = {
        "ledger here": (False, False),
        f"ledger here, synchronous standby {round_trip_ms:.0f} ms away": (False, True),
        f"ledger {round_trip_ms:.0f} ms away": (True, False),
    }
    print("| | hold, ms (median / p95) | purchase, ms | purchases/s, 1 buyer | hold, ms | purchase, ms | "
          f"purchases/s, {BUYERS} buyers |\n|---|--:|--:|--:|--:|--:|--:|")  # fmt: skip
    for name, (is_far, has_standby) in cases.items():
        async with ledger(round_trip_ms / 1000, is_far=is_far, has_standby=has_standby) as url:
            standbys = int(has_standby)
            async with office(
                web=1, database_url=url, gateway="sandbox", ledger_standbys_min=standbys
            ) as stage:
                alone, together = await measure(stage)
        print(f"| {name} | {alone.describe()} | {together.describe()} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--round-trip-ms", type=float, default=30.0)
    asyncio.run(main(parser.parse_args().round_trip_ms))
