"""Whole purchases on real processes: hold → pay → charge at the sandbox over HTTP → webhook → confirmed."""

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

from bench.environment import (
    START_WITHIN_S,
    Environment,
    Q,
    create_shows,
    find_free_port,
    start_environment,
    start_workers,
    write_tokens,
)
from bench.errors import require
from bench.figure import Figure
from bench.load import HoldLoad, load_holds, run_generator
from bench.plot import plot_sold_out
from bench.session import Session
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
SHOWS_PER_RUN = 1_000  # of 200 seats: more than a run can sell
ACCOUNTS = 2_000
SOLD_OUT_SEATS, SOLD_OUT_ROW = 10_000, 100
ALONE = 500  # purchases one after the other, whose transactions are counted
ALONE_SHOWS = 5
REPORTED_WITHIN_S = 11  # a connection of PostgreSQL that is idle reports its transactions after 10 s
SETTLED_WITHIN_S = 60.0
BATCHED, SINGLE = 20_000, 4_000  # payments confirmed in batches, and one by one
FIRST_OWNER = 50_000_000  # account ids that do not exist


@dataclass(frozen=True)
class PurchaseResult:
    per_second: float
    p50_ms: float
    p99_ms: float
    at_s: list[float]  # when each purchase was complete, from the start


async def measure_purchases(session: Session) -> list[Figure]:
    whole = Figure("whole purchases", "purchases/s", "holds of the same run", 0.06, 0.15)
    async with start_environment() as env, start_sandbox(env) as (env, gateway):
        session.report("creating shows and accounts")
        tokens = await write_tokens(env, ACCOUNTS)
        async with start_workers(env, 2, port=gateway.shop_port) as url:
            warm = await create_shows(env, a_layout(200), SHOWS_PER_RUN)
            await buy(url, tokens, warm[0], seconds=2)
            async for attempt in session.repeat(whole):
                session.report(f"purchases, attempt {attempt + 1}")
                first = (await create_shows(env, a_layout(200), 2 * SHOWS_PER_RUN))[0]
                load = HoldLoad("hold", first, shows=SHOWS_PER_RUN, seconds=SECONDS)
                held = (await load_holds(url, tokens, load)).expect(201)
                cpu_before = await gateway.cpu_s()
                bought = await buy(url, tokens, first + SHOWS_PER_RUN)
                cores = (await gateway.cpu_s() - cpu_before) / SECONDS
                whole.add(bought.per_second, held.per_second)
                whole.note = (
                    f"p50 {bought.p50_ms:.0f} ms, p99 {bought.p99_ms:.0f} ms, sandbox {cores:.2f} cores"
                )
                await wait_until_settled(env, gateway)
            session.report("selling out a show of 10 000 seats in pairs")
            (large,) = await create_shows(env, a_layout(SOLD_OUT_SEATS, row=SOLD_OUT_ROW), 1)
            await _sell_out(env, url, tokens, large, gateway, session.results)
            session.report("counting the transactions of a purchase")
            await _count_statements(env, url, tokens, warm[-ALONE_SHOWS], session.results)
    return [whole, await _measure_confirmations(session)]


async def buy(
    url: str, tokens: Path, first: int, *, seconds: float = SECONDS, purchases: int = 0, **hall: int
) -> PurchaseResult:
    arguments = [str(hall.get("connections", CONNECTIONS)), str(seconds), str(purchases), str(tokens)]
    arguments += [str(first), str(hall.get("shows", SHOWS_PER_RUN))]
    arguments += [str(hall.get("pairs", 100)), str(hall.get("pairs_per_row", 5))]
    found = await run_generator([sys.executable, "-m", "bench.purchase_load", url, *arguments])
    others = {status: count for status, count in found["statuses"].items() if status != "200"}
    require(not others, f"unexpected responses by status: {others}, expected only 200")
    return PurchaseResult(found["paid"] / found["seconds"], found["p50_ms"], found["p99_ms"], found["at_s"])


async def _sell_out(
    env: Environment, url: str, tokens: Path, show: int, gateway: "Gateway", results: Path
) -> None:
    """From the first hold until every pair is paid for and every webhook of the gateway was accepted."""
    began = time.perf_counter()
    hall = {"shows": 1, "pairs": SOLD_OUT_SEATS // 2, "pairs_per_row": SOLD_OUT_ROW // 2}
    bought = await buy(url, tokens, show, seconds=300, **hall)
    await wait_until_settled(env, gateway)
    settled_s = time.perf_counter() - began
    confirmed = await env.app.postgres.fetchval(Q.seats_confirmed, show)
    require(confirmed == SOLD_OUT_SEATS, f"{confirmed} of {SOLD_OUT_SEATS} seats were confirmed")
    found = {
        "seats": SOLD_OUT_SEATS,
        "sold_out_s": round(max(bought.at_s), 2),
        "webhooks_accepted_s": round(settled_s, 2),
        "p50_ms": round(bought.p50_ms, 1),
        "p99_ms": round(bought.p99_ms, 1),
    }
    print(f"sold out: {found}")
    (results / "sold_out.json").write_text(json.dumps(found, indent=2) + "\n")
    plot_sold_out(bought.at_s, SOLD_OUT_SEATS, results)


async def wait_until_settled(env: Environment, gateway: "Gateway") -> None:
    async def is_settled() -> bool:
        in_progress = await env.app.postgres.fetchval(Q.payments_in_progress)
        return not in_progress and not await gateway.count_waiting()

    await until(is_settled, within_s=SETTLED_WITHIN_S)


async def _count_statements(env: Environment, url: str, tokens: Path, first: int, results: Path) -> None:
    """Per purchase, one after the other: transactions and scripts when no batch is shared."""
    before = await _count_traffic(env)
    await buy(url, tokens, first, purchases=ALONE, seconds=60, shows=ALONE_SHOWS, connections=1)
    after = await _count_traffic(env)
    each = {name: round((after[name] - before[name]) / ALONE, 2) for name in after}
    print(f"one purchase at a time: {each}")
    (results / "statements.json").write_text(json.dumps(each, indent=2) + "\n")


async def _count_traffic(env: Environment) -> dict[str, int]:
    """Transactions of PostgreSQL and scripts of Redis so far, without those of this count."""
    await asyncio.sleep(REPORTED_WITHIN_S)
    commits = int(await env.app.postgres.fetchval(Q.commits))
    stats: dict[str, Any] = await env.app.redis.call("INFO", "commandstats")
    text = stats.decode() if isinstance(stats, bytes) else str(stats)
    line = next((line for line in text.splitlines() if line.startswith("cmdstat_evalsha:")), "calls=0,")
    return {"postgres": commits, "redis": int(line.partition("calls=")[2].partition(",")[0])}


def _captured(payment: Payment) -> Charge:
    return Charge(
        answer=GatewayAnswer.YES,
        reference="pay_bench",
        amount_minor=payment.amount_minor,
        currency=payment.currency,
    )


async def _measure_confirmations(session: Session) -> Figure:
    figure = Figure(
        "payments confirmed in batches", "payments/s", "one transaction per payment, pool of 6", 6.0
    )
    async with start_environment() as env:
        payments = env.app.payments
        async for attempt in session.repeat(figure):
            session.report(f"confirmations, attempt {attempt + 1}")
            (show,) = await create_shows(env, a_layout(BATCHED + SINGLE, row=100), 1, with_maps=False)
            started = await _start_payments(env, show, BATCHED + SINGLE)
            captured = [CapturedPayment(payment, _captured(payment), 100, 50) for payment in started]

            async def confirm_alone(payment: CapturedPayment) -> None:
                await payments.confirm_many([payment])

            async def confirm_batched(payment: CapturedPayment) -> None:
                await payments.confirm(payment)

            figure.add(
                await _measure_rate(confirm_batched, captured[:BATCHED]),
                await _measure_rate(confirm_alone, captured[BATCHED:]),
            )
    return figure


async def _measure_rate(
    confirm: Callable[[CapturedPayment], Awaitable[None]], captured: list[CapturedPayment]
) -> float:
    """Payments per second of concurrent callers, each taking the next payment."""
    remaining = iter(captured)

    async def call() -> None:
        for payment in remaining:
            await confirm(payment)

    began = time.perf_counter()
    await asyncio.gather(*(call() for _ in range(CONNECTIONS)))
    return len(captured) / (time.perf_counter() - began)


async def _start_payments(env: Environment, show: int, count: int) -> list[Payment]:
    """Bookings of one seat each whose payment has started."""
    found: list[Payment] = []
    for seats in batched(range(count), CONNECTIONS):
        now = time.monotonic()
        openings = [
            Opening(show, FIRST_OWNER + i, f"r{i}", 1, f"c{i}", "", 600_000, now, 1, "EUR", (i,), (1500,))
            for i in seats
        ]
        opened = [each for each in await env.app.bookings.open_many(openings) if isinstance(each, Booking)]
        requests = [
            PaymentRequest(
                show_id=show,
                number=each.number,
                owner_id=opening.owner_id,
                request_id=opening.request_id,
                body_hash=1,
                method="tok_ok",
                return_url="",
                salt="bench",
            )
            for each, opening in zip(opened, openings, strict=True)
        ]
        found += [each.payment for each in await env.app.payments.start_many(requests) if each.payment]
    require(len(found) == count, f"{len(found)} of {count} payments started")
    return found


def batched(items: range, size: int) -> Iterator[range]:
    return (items[i : i + size] for i in range(0, len(items), size))


class Gateway:
    """The sandbox gateway in its own process, and its control endpoint."""

    def __init__(self, url: str, shop_port: int) -> None:
        self.url = url
        self.shop_port = shop_port
        self._client = httpx2.AsyncClient(
            base_url=url, headers={"Authorization": f"Bearer {api_key(SECRET.encode())}"}
        )

    async def cpu_s(self) -> float:
        return float((await self._control())["cpu_s"])

    async def count_waiting(self) -> int:
        """Webhooks that the shop has not accepted yet."""
        return int((await self._control())["webhooks"]["waiting"])

    async def _control(self) -> dict[str, Any]:
        page: dict[str, Any] = (await self._client.get("/v1/control")).raise_for_status().json()
        return page


@asynccontextmanager
async def start_sandbox(env: Environment) -> AsyncIterator[tuple[Environment, Gateway]]:
    port, shop_port = find_free_port(), find_free_port()
    command = ("sandbox", "--port", str(port), "--data", str(env.folder / "sandbox"), "--secret", SECRET)
    notify = ("--notify", f"http://127.0.0.1:{shop_port}/webhooks/sandbox")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "holdfast", *command, *notify, stdout=asyncio.subprocess.DEVNULL
    )
    gateway = Gateway(f"http://127.0.0.1:{port}", shop_port)
    try:
        await _wait_for_gateway(gateway)
        config = replace(env.config, gateway_url=gateway.url, gateway_secret=SECRET)
        yield replace(env, config=config), gateway
    finally:
        process.terminate()
        await process.wait()


async def _wait_for_gateway(gateway: Gateway) -> None:
    async with asyncio.timeout(START_WITHIN_S):
        while True:
            try:
                await gateway.cpu_s()
                return
            except httpx2.TransportError:
                await asyncio.sleep(0.05)
