"""Facts while clients buy: does a consumer fall behind? `holdfast work` runs beside the web workers.

python -m bench --only facts        facts per second written and consumed, by consumer, with backlog and lag

Buyers, web workers, sandbox, engines and the worker share the machine, so the purchases per second in the
note also show what the consumers cost.
"""

import asyncio
import itertools
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean

from rich.console import Console
from rich.table import Table

from bench.environment import (
    START_WITHIN_S,
    Environment,
    Q,
    create_shows,
    start_environment,
    start_workers,
    write_tokens,
)
from bench.figure import Figure
from bench.purchases import buy, start_sandbox, wait_until_settled
from bench.session import Session
from tests.support.shows import a_layout
from tests.support.wait import until

SECONDS = 10
WARM_UP_S = 2.0  # samples before are not counted
SAMPLE_S = 0.25
SHOWS_PER_RUN = 250  # of 200 seats: more than a run can sell
ACCOUNTS = 2_000
GROUPS = {"relay", "reports", "webhooks", "notifications", "search"}
DRAINED_WITHIN_S = 60.0
BAR = 0.98  # 1, less facts that are in flight at one end of the count and not at the other


@dataclass(frozen=True)
class Sample:
    at: float
    checkpoints: dict[str, int]  # of each consumer; "written": the last fact
    lags: dict[str, float]

    def behind(self, group: str) -> int:
        return max(0, self.checkpoints["written"] - self.checkpoints[group])


@dataclass(frozen=True)
class Throughput:
    """Of one consumer during a round."""

    group: str
    written_s: float
    consumed_s: float
    behind: tuple[int, int, int]  # when counting began, at most, when it ended
    lag_max_s: float
    lag_end_s: float


async def measure_facts(session: Session) -> list[Figure]:
    name = "facts consumed by the slowest consumer while clients buy"
    figure = Figure(name, "facts/s", "facts written", BAR)
    pages: list[dict[str, object]] = []
    async with start_environment() as env, start_sandbox(env) as (env, gateway):
        session.report("creating shows and accounts")
        tokens = await write_tokens(env, ACCOUNTS)
        async with start_workers(env, 2, port=gateway.shop_port) as url, start_background(env) as worker:
            (first, *_) = await create_shows(env, a_layout(200), SHOWS_PER_RUN)
            await buy(url, tokens, first, seconds=2, shows=SHOWS_PER_RUN)
            async for attempt in session.repeat(figure):
                session.report(f"facts, attempt {attempt + 1}")
                (first, *_) = await create_shows(env, a_layout(200), SHOWS_PER_RUN)
                await wait_until_settled(env, gateway)
                await until(partial(is_drained, env), within_s=DRAINED_WITHIN_S)
                samples: list[Sample] = []
                cpu_before = cpu_s(worker)
                sampling = asyncio.create_task(sample_forever(env, samples))
                bought = await buy(url, tokens, first, seconds=SECONDS, shows=SHOWS_PER_RUN)
                sampling.cancel()
                ended, cores = time.perf_counter(), (cpu_s(worker) - cpu_before) / SECONDS
                await until(partial(is_drained, env), within_s=DRAINED_WITHIN_S)
                drained_s = time.perf_counter() - ended
                throughputs = [measure_throughput(group, samples) for group in sorted(GROUPS)]
                slowest = min(throughputs, key=lambda each: each.consumed_s)
                figure.add(slowest.consumed_s, slowest.written_s)
                figure.note = (
                    f"{bought.per_second:.0f} purchases/s beside it, worker {cores:.2f} cores, "
                    f"lag at most {max(each.lag_max_s for each in throughputs):.2f} s, "
                    f"drained {drained_s:.2f} s after the last purchase"
                )
                pages.append(render_round(bought.per_second, cores, drained_s, throughputs))
                print_round(figure.note, throughputs)
    (session.results / "facts.json").write_text(json.dumps(pages, indent=2) + "\n")
    return [figure]


@asynccontextmanager
async def start_background(env: Environment) -> AsyncIterator[int]:
    """One `holdfast work`: the relay, all consumers and every other job; its process id."""
    variables = os.environ | {
        "HOLDFAST_DATABASE_URL": env.config.database_url,
        "HOLDFAST_REDIS_URL": env.config.redis_url,
        "HOLDFAST_GATEWAY": "sandbox",
        "HOLDFAST_GATEWAY_URL": env.config.gateway_url,
        "HOLDFAST_GATEWAY_SECRET": env.config.gateway_secret,
        "HOLDFAST_DATA_DIR": str(env.folder / "work"),
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "holdfast", "work", "--json", env=variables, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        await asyncio.wait_for(process.stdout.readline(), START_WITHIN_S)
        await until(partial(is_drained, env), within_s=DRAINED_WITHIN_S)
        yield process.pid
    finally:
        process.terminate()
        await process.wait()


def cpu_s(parent: int) -> float:
    """CPU time of a process and its children so far."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in (parent, *children)]
    return sum(int(stat[11]) + int(stat[12]) for stat in stats) / os.sysconf("SC_CLK_TCK")


async def take_sample(env: Environment) -> Sample:
    rows = await env.app.postgres.fetch(Q.facts_now)
    now = time.perf_counter()
    return Sample(
        now, {row["name"]: row["at_id"] for row in rows}, {row["name"]: row["lag_s"] for row in rows}
    )


async def sample_forever(env: Environment, samples: list[Sample]) -> None:
    while True:
        samples.append(await take_sample(env))
        await asyncio.sleep(SAMPLE_S)


async def is_drained(env: Environment) -> bool:
    now = await take_sample(env)
    return now.checkpoints.keys() >= GROUPS and all(not now.behind(group) for group in GROUPS)


def measure_throughput(group: str, samples: list[Sample]) -> Throughput:
    grew = [
        b.at for a, b in itertools.pairwise(samples) if b.checkpoints["written"] > a.checkpoints["written"]
    ]
    counted = [each for each in samples if grew[0] + WARM_UP_S <= each.at <= grew[-1]]
    begin, end = counted[0], counted[-1]
    written_s = (end.checkpoints["written"] - begin.checkpoints["written"]) / (end.at - begin.at)
    return Throughput(
        group=group,
        written_s=written_s,
        consumed_s=written_s - growth_per_s(group, counted),
        behind=(begin.behind(group), max(each.behind(group) for each in counted), end.behind(group)),
        lag_max_s=max(each.lags[group] for each in counted),
        lag_end_s=end.lags[group],
    )


def growth_per_s(group: str, samples: list[Sample]) -> float:
    """Growth of the backlog in facts per second: the last third of the samples against the first.

    Single samples vary too much, because facts are consumed in batches.
    """
    third = max(1, len(samples) // 3)
    early, late = samples[:third], samples[-third:]
    more = mean(each.behind(group) for each in late) - mean(each.behind(group) for each in early)
    return more / (mean(each.at for each in late) - mean(each.at for each in early))


def render_round(
    purchases_s: float, cores: float, drained_s: float, throughputs: list[Throughput]
) -> dict[str, object]:
    return {
        "purchases_s": round(purchases_s, 1),
        "worker_cores": round(cores, 2),
        "written_s": round(throughputs[0].written_s, 1),
        "drained_s": round(drained_s, 2),
        "groups": {
            each.group: {
                "consumed_s": round(each.consumed_s, 1),
                "behind": each.behind,
                "lag_max_s": round(each.lag_max_s, 3),
                "lag_end_s": round(each.lag_end_s, 3),
            }
            for each in throughputs
        },
    }


def print_round(note: str, throughputs: list[Throughput]) -> None:
    table = Table(title=f"{throughputs[0].written_s:,.0f} facts written/s; {note}")
    for name in ("consumer", "facts/s", "of written", "behind: begin", "most", "end", "lag: most", "end"):
        table.add_column(name, justify="left" if name == "consumer" else "right")
    for each in throughputs:
        begin, most, end = (f"{count:,}" for count in each.behind)
        share = f"{each.consumed_s / each.written_s:.3f}"
        lags = (f"{each.lag_max_s:.2f} s", f"{each.lag_end_s:.2f} s")
        table.add_row(each.group, f"{each.consumed_s:,.0f}", share, begin, most, end, *lags)
    Console(width=120).print(table)
