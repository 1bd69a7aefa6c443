"""Facts while people buy: `holdfast work` beside the web, as in production; does anybody fall behind?

python -m bench --only facts        facts a second written and consumed, by group, with backlog and lag

Purchases, web, sandbox, engines and the worker share the machine, so this is also what being told of every
purchase costs: the note has the purchases of the same seconds.
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

from bench.environment import START_WITHIN_S, Q, Stage, shows, stage, tokens, workers
from bench.figure import Figure
from bench.purchases import RESULTS, Say, bought_from, sandbox, settled
from tests.support.shows import a_layout
from tests.support.wait import until

SECONDS = 10
BEGIN_S = 2.0  # after so long everything is warm, and counting begins
LOOK_S = 0.25
SHOWS_A_RUN = 250  # of 200 seats: more than a run can sell
PEOPLE = 2_000
GROUPS = {"relay", "figures", "hooks", "notices", "search"}
DRAINED_WITHIN_S = 60.0
BAR = 0.98  # one, and what is on its way at one end of the count and not at the other


@dataclass(frozen=True)
class Look:
    at: float
    places: dict[str, int]  # of each group, and of what is written
    lags: dict[str, float]

    def behind(self, group: str) -> int:
        return max(0, self.places["written"] - self.places[group])


@dataclass(frozen=True)
class Kept:
    """How one group kept up."""

    group: str
    written_s: float
    consumed_s: float
    behind: tuple[int, int, int]  # when counting began, at most, when it ended
    lag_max_s: float
    lag_end_s: float


async def fact_figures(rounds: int, say: Say) -> list[Figure]:
    figure = Figure("facts consumed by the slowest group while people buy", "facts/s", "facts written", BAR)
    told: list[dict[str, object]] = []
    async with stage() as on, sandbox(on) as (on, gateway):
        say("shows and people")
        people = on.folder / "tokens"
        people.write_text("\n".join(await tokens(on, PEOPLE)) + "\n")
        ids = await shows(on, a_layout(200), SHOWS_A_RUN * (rounds + 1))
        async with workers(on, 2, port=gateway.shop_port) as url, working(on) as worker:
            await bought_from(url, people, ids[0], seconds=2, shows=SHOWS_A_RUN)
            for i in range(rounds):
                say(f"facts, round {i + 1} of {rounds}")
                await settled(on, gateway)
                await until(partial(is_drained, on), within_s=DRAINED_WITHIN_S)
                looks: list[Look] = []
                cpu_before = cpu_s(worker)
                looking = asyncio.create_task(look_on(on, looks))
                first = ids[(i + 1) * SHOWS_A_RUN]
                bought = await bought_from(url, people, first, seconds=SECONDS, shows=SHOWS_A_RUN)
                looking.cancel()
                ended, core = time.perf_counter(), (cpu_s(worker) - cpu_before) / SECONDS
                await until(partial(is_drained, on), within_s=DRAINED_WITHIN_S)
                kept = [kept_up(group, looks) for group in sorted(GROUPS)]
                slowest = min(kept, key=lambda one: one.consumed_s)
                figure.add(slowest.consumed_s, slowest.written_s)
                drained_s = time.perf_counter() - ended
                figure.note = (
                    f"{bought.per_second:.0f} purchases/s beside it, worker {core:.2f} of a core, "
                    f"lag at most {max(one.lag_max_s for one in kept):.2f} s, "
                    f"drained {drained_s:.2f} s after the last"
                )
                told.append(page(bought.per_second, core, drained_s, kept))
                show(figure.note, kept)
    (RESULTS / "facts.json").write_text(json.dumps(told, indent=2) + "\n")
    return [figure]


@asynccontextmanager
async def working(on: Stage) -> AsyncIterator[int]:
    """One `holdfast work`: the relay, all consumers and every other job; its process id."""
    env = os.environ | {
        "HOLDFAST_DATABASE_URL": on.config.database_url,
        "HOLDFAST_REDIS_URL": on.config.redis_url,
        "HOLDFAST_GATEWAY_URL": on.config.gateway_url,
        "HOLDFAST_GATEWAY_SECRET": on.config.gateway_secret,
        "HOLDFAST_DATA_DIR": str(on.folder / "work"),
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "holdfast", "work", "--json", env=env, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        await asyncio.wait_for(process.stdout.readline(), START_WITHIN_S)
        await until(partial(is_drained, on), within_s=DRAINED_WITHIN_S)
        yield process.pid
    finally:
        process.terminate()
        await process.wait()


def cpu_s(parent: int) -> float:
    """Of a process and its children, so far."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    stats = [Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split() for one in (parent, *children)]
    return sum(int(stat[11]) + int(stat[12]) for stat in stats) / os.sysconf("SC_CLK_TCK")


async def look(on: Stage) -> Look:
    rows = await on.app.postgres.fetch(Q.facts_now)
    now = time.perf_counter()
    return Look(now, {row["name"]: row["at_id"] for row in rows}, {row["name"]: row["lag_s"] for row in rows})


async def look_on(on: Stage, looks: list[Look]) -> None:
    while True:
        looks.append(await look(on))
        await asyncio.sleep(LOOK_S)


async def is_drained(on: Stage) -> bool:
    now = await look(on)
    return now.places.keys() >= GROUPS and all(not now.behind(group) for group in GROUPS)


def kept_up(group: str, looks: list[Look]) -> Kept:
    grew = [b.at for a, b in itertools.pairwise(looks) if b.places["written"] > a.places["written"]]
    counted = [one for one in looks if grew[0] + BEGIN_S <= one.at <= grew[-1]]
    begin, end = counted[0], counted[-1]
    written_s = (end.places["written"] - begin.places["written"]) / (end.at - begin.at)
    return Kept(
        group=group,
        written_s=written_s,
        consumed_s=written_s - growth_s(group, counted),
        behind=(begin.behind(group), max(one.behind(group) for one in counted), end.behind(group)),
        lag_max_s=max(one.lags[group] for one in counted),
        lag_end_s=end.lags[group],
    )


def growth_s(group: str, looks: list[Look]) -> float:
    """Of the backlog, in facts a second: the last third of the looks against the first.

    Single looks say little: what is on its way comes and goes with every batch.
    """
    third = max(1, len(looks) // 3)
    early, late = looks[:third], looks[-third:]
    more = mean(one.behind(group) for one in late) - mean(one.behind(group) for one in early)
    return more / (mean(one.at for one in late) - mean(one.at for one in early))


def page(purchases_s: float, core: float, drained_s: float, kept: list[Kept]) -> dict[str, object]:
    return {
        "purchases_s": round(purchases_s, 1),
        "worker_cores": round(core, 2),
        "written_s": round(kept[0].written_s, 1),
        "drained_s": round(drained_s, 2),
        "groups": {
            one.group: {
                "consumed_s": round(one.consumed_s, 1),
                "behind": one.behind,
                "lag_max_s": round(one.lag_max_s, 3),
                "lag_end_s": round(one.lag_end_s, 3),
            }
            for one in kept
        },
    }


def show(note: str, kept: list[Kept]) -> None:
    table = Table(title=f"{kept[0].written_s:,.0f} facts written/s; {note}")
    for name in ("group", "facts/s", "of written", "behind: begin", "most", "end", "lag: most", "end"):
        table.add_column(name, justify="left" if name == "group" else "right")
    for one in kept:
        begin, most, end = (f"{count:,}" for count in one.behind)
        share = f"{one.consumed_s / one.written_s:.3f}"
        lags = (f"{one.lag_max_s:.2f} s", f"{one.lag_end_s:.2f} s")
        table.add_row(one.group, f"{one.consumed_s:,.0f}", share, begin, most, end, *lags)
    Console(width=120).print(table)
