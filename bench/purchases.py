"""Whole purchases: hold → pay → charge at the sandbox over HTTP → notice → confirmed, on real processes."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2

from bench.environment import START_WITHIN_S, Q, Stage, free_port, shows, stage, tokens, workers
from bench.figure import Figure
from bench.load import Load, run
from bench.plot import plot_sold_out
from holdfast.bookings import Booking, Opening
from holdfast.payments.gateway import Charge, GatewayAnswer
from holdfast.payments.gateways.sandbox import api_key
from holdfast.payments.payment import Payment, PaymentRequest
from holdfast.payments.store import CapturedPayment
from tests.support.shows import a_layout
from tests.support.wait import until

SECRET = "whsec_of_the_bench"
SECONDS = 4
CONNECTIONS = 128
SHOWS_A_RUN = 500  # of 200 seats: more than a run can sell
PEOPLE = 2_000
SOLD_OUT_SEATS, SOLD_OUT_ROW = 10_000, 100
ALONE = 50  # purchases one after the other, whose statements are counted
SETTLED_WITHIN_S = 60.0
BATCHED, SINGLE = 20_000, 4_000  # payments confirmed in batches, and one by one
OWNERS = 50_000_000  # numbers nobody has

RESULTS = Path(__file__).parent / "results"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Bought:
    per_second: float
    p50_ms: float
    p99_ms: float
    at_s: list[float]


async def purchase_figures(rounds: int, say: Say) -> list[Figure]:
    whole = Figure("whole purchases", "purchases/s", "holds of the same run", 0.06, 0.15)
    async with stage() as on, sandbox(on) as (on, gateway):
        say("shows and people")
        people = on.folder / "tokens"
        people.write_text("\n".join(await tokens(on, PEOPLE)) + "\n")
        small = await shows(on, a_layout(200), SHOWS_A_RUN * 2 * (rounds + 1))
        (big,) = await shows(on, a_layout(SOLD_OUT_SEATS, row=SOLD_OUT_ROW), 1)
        async with workers(on, 2, port=gateway.shop_port) as url:
            await bought_from(url, people, small[0], seconds=2)
            at = small[SHOWS_A_RUN]
            for i in range(rounds):
                say(f"purchases, round {i + 1} of {rounds}")
                held = await run(url, people, Load("win", at, shows=SHOWS_A_RUN, seconds=SECONDS))
                cpu_before, at = await gateway.cpu_s(), at + SHOWS_A_RUN
                bought = await bought_from(url, people, at)
                cpu_s = (await gateway.cpu_s() - cpu_before) / SECONDS
                at += SHOWS_A_RUN
                whole.add(bought.per_second, held.only(201).per_second)
                whole.note = (
                    f"p50 {bought.p50_ms:.0f} ms, p99 {bought.p99_ms:.0f} ms, sandbox {cpu_s:.2f} of a core"
                )
                await settled(on, gateway)
            say("a show of 10 000 seats, sold out in pairs")
            await _sell_out(on, url, people, big, gateway)
            say("statements of a purchase")
            await _count_statements(on, url, people, small[0] + SHOWS_A_RUN - 1)
    return [whole, await _confirm_figure(rounds, say)]


async def bought_from(
    url: str, people: Path, first: int, *, seconds: float = SECONDS, purchases: int = 0, **hall: int
) -> Bought:
    words = [str(people), str(first), str(hall.get("shows", SHOWS_A_RUN))]
    words += [str(hall.get("pairs", 100)), str(hall.get("pairs_a_row", 5))]
    connections = hall.get("connections", CONNECTIONS)
    command = (
        sys.executable,
        "-m",
        "bench.purchase_load",
        url,
        str(connections),
        str(seconds),
        str(purchases),
    )
    process = await asyncio.create_subprocess_exec(*command, *words, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0, "the buyers failed"
    found = json.loads(output)
    strange = {status: n for status, n in found["answers"].items() if status != "200"}
    assert not strange, f"answers nobody expected: {strange}"
    return Bought(found["paid"] / found["seconds"], found["p50_ms"], found["p99_ms"], found["at_s"])


async def _sell_out(on: Stage, url: str, people: Path, show: int, gateway: "Gateway") -> None:
    """End to end: until every pair is paid for, and every notice of the gateway has been taken."""
    began = time.perf_counter()
    hall = {"shows": 1, "pairs": SOLD_OUT_SEATS // 2, "pairs_a_row": SOLD_OUT_ROW // 2}
    bought = await bought_from(url, people, show, seconds=300, **hall)
    await settled(on, gateway)
    settled_s = time.perf_counter() - began
    confirmed = await on.app.postgres.fetchval(Q.seats_confirmed, show)
    assert confirmed == SOLD_OUT_SEATS, f"{confirmed} seats are confirmed"
    found = {
        "seats": SOLD_OUT_SEATS,
        "sold_out_s": round(max(bought.at_s), 2),
        "notices_taken_s": round(settled_s, 2),
        "p50_ms": round(bought.p50_ms, 1),
        "p99_ms": round(bought.p99_ms, 1),
    }
    print(f"sold out: {found}")
    (RESULTS / "sold_out.json").write_text(json.dumps(found, indent=2) + "\n")
    plot_sold_out(bought.at_s, SOLD_OUT_SEATS, RESULTS / "sold_out.svg", RESULTS / "sold_out.png")


async def settled(on: Stage, gateway: "Gateway") -> None:
    async def is_settled() -> bool:
        under_way = await on.app.postgres.fetchval(Q.payments_under_way)
        return not under_way and not await gateway.waiting()

    await until(is_settled, within_s=SETTLED_WITHIN_S)


async def _count_statements(on: Stage, url: str, people: Path, show: int) -> None:
    """Of purchases one after the other: what travels to each engine when nobody shares a batch."""
    before = await _traffic(on)
    await bought_from(url, people, show, purchases=ALONE, seconds=60, shows=1, connections=1)
    await asyncio.sleep(1)  # the last notices
    after = await _traffic(on)
    each = {name: round((after[name] - before[name]) / ALONE, 2) for name in after}
    print(f"a purchase alone: {each}")
    (RESULTS / "statements.json").write_text(json.dumps(each, indent=2) + "\n")


async def _traffic(on: Stage) -> dict[str, int]:
    """Transactions of the ledger and scripts of Redis so far, without those of this count."""
    commits = int(await on.app.postgres.fetchval(Q.commits))
    stats: dict[str, Any] = await on.app.redis.call("INFO", "commandstats")
    text = stats.decode() if isinstance(stats, bytes) else str(stats)
    line = next((line for line in text.splitlines() if line.startswith("cmdstat_evalsha:")), "calls=0,")
    return {"ledger": commits, "redis": int(line.partition("calls=")[2].partition(",")[0])}


async def _confirm_figure(rounds: int, say: Say) -> Figure:
    figure = Figure("payments confirmed in batches", "payments/s", "a transaction each, pool of 6", 6.0)
    yes = Charge(answer=GatewayAnswer.YES, reference="pay_bench")
    async with stage() as on:
        book = on.app.payments
        for i in range(rounds):
            say(f"confirming, round {i + 1} of {rounds}")
            (show,) = await shows(on, a_layout(BATCHED + SINGLE, row=100), 1, built=False)
            came = [
                CapturedPayment(payment, yes, 100, 50)
                for payment in await _paying(on, show, BATCHED + SINGLE)
            ]

            async def alone(one: CapturedPayment) -> None:
                await book.confirm_many([one])

            async def together(one: CapturedPayment) -> None:
                await book.confirm(one)

            figure.add(await _speed(together, came[:BATCHED]), await _speed(alone, came[BATCHED:]))
    return figure


async def _speed(confirm: Callable[[CapturedPayment], Awaitable[None]], came: list[CapturedPayment]) -> float:
    left = iter(came)

    async def caller() -> None:
        for one in left:
            await confirm(one)

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(CONNECTIONS)))
    return len(came) / (time.perf_counter() - began)


async def _paying(on: Stage, show: int, how_many: int) -> list[Payment]:
    """Bookings of one seat that wait for their money."""
    found: list[Payment] = []
    for seats in batched(range(how_many), CONNECTIONS):
        now = time.monotonic()
        openings = [
            Opening(show, OWNERS + i, f"r{i}", 1, f"c{i}", "", 600_000, now, 1, "EUR", (i,), (1500,))
            for i in seats
        ]
        opened = [one for one in await on.app.bookings.open_many(openings) if isinstance(one, Booking)]
        asks = [
            PaymentRequest(
                show_id=show,
                number=one.number,
                owner_id=opening.owner_id,
                request_id=opening.request_id,
                body_hash=1,
                method="tok_ok",
                return_url="",
                salt="bench",
            )
            for one, opening in zip(opened, openings, strict=True)
        ]
        found += [one.payment for one in await on.app.payments.start_many(asks) if one.payment]
    assert len(found) == how_many
    return found


def batched(items: range, size: int) -> Iterator[range]:
    return (items[i : i + size] for i in range(0, len(items), size))


class Gateway:
    """The sandbox as a process of its own, and its control."""

    def __init__(self, url: str, shop_port: int) -> None:
        self.url = url
        self.shop_port = shop_port
        self._client = httpx2.AsyncClient(
            base_url=url, headers={"Authorization": f"Bearer {api_key(SECRET.encode())}"}
        )

    async def cpu_s(self) -> float:
        return float((await self._control())["cpu_s"])

    async def waiting(self) -> int:
        """Notices that have not been taken yet."""
        return int((await self._control())["webhooks"]["waiting"])

    async def _control(self) -> dict[str, Any]:
        page: dict[str, Any] = (await self._client.get("/v1/control")).raise_for_status().json()
        return page


@asynccontextmanager
async def sandbox(on: Stage) -> AsyncIterator[tuple[Stage, Gateway]]:
    port, shop_port = free_port(), free_port()
    command = ("sandbox", "--port", str(port), "--data", str(on.folder / "sandbox"), "--secret", SECRET)
    notify = ("--notify", f"http://127.0.0.1:{shop_port}/webhooks/sandbox")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "holdfast", *command, *notify, stdout=asyncio.subprocess.DEVNULL
    )
    gateway = Gateway(f"http://127.0.0.1:{port}", shop_port)
    try:
        await _answers(gateway)
        config = replace(on.config, gateway_url=gateway.url, gateway_secret=SECRET)
        yield replace(on, config=config), gateway
    finally:
        process.terminate()
        await process.wait()


async def _answers(gateway: Gateway) -> None:
    async with asyncio.timeout(START_WITHIN_S):
        while True:
            try:
                await gateway.cpu_s()
                return
            except httpx2.TransportError:
                await asyncio.sleep(0.05)
