"""Figures over HTTP: two web workers, 128 connections, real engines, everybody on the same two cores."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from bench.environment import Stage, shows, stage, tokens, workers
from bench.figure import Figure
from bench.load import Load, Run, run
from tests.support.shows import a_layout

SECONDS = 4
SHOWS_A_RUN = 500  # of 200 seats: more than a run can sell
BIG_SEATS, BIG_ROW = 50_000, 100
MANY_SHOWS = 10_000
PEOPLE = 2_000

Say = Callable[[str], None]


async def web_figures(rounds: int, say: Say) -> list[Figure]:
    win = Figure("holds", "holds/s", "bare authenticated endpoint", 0.35, 0.50)
    lose = Figure("refusals", "refusals/s", "bare authenticated endpoint", 0.50, 0.70)
    big = Figure("holds on 50 000 seats", "holds/s", "holds on 200 seats", 0.80)
    read = Figure("map of 50 000 seats", "reads/s", "bare GET of that size", 0.50)
    many = Figure("holds with 10 000 shows loaded", "holds/s", "holds with one run's shows loaded", 0.80)
    async with stage() as on:
        say("shows and people")
        people = on.folder / "tokens"
        people.write_text("\n".join(await tokens(on, PEOPLE)) + "\n")
        small = await shows(on, a_layout(200), SHOWS_A_RUN * (2 * rounds + 2) + 1)
        large = await shows(on, a_layout(BIG_SEATS, row=BIG_ROW), rounds)
        async with workers(on, 2) as url:

            async def asked(mode: str, first: int = 0, seconds: int = SECONDS, **more: int) -> Run:
                return await run(url, people, Load(mode, first, seconds=seconds, **more))

            lost, at = small[0], small[1]
            await asked("bare")
            await asked("lose", lost)
            await asked("warm", at, shows=SHOWS_A_RUN)
            await asked("win", at, shows=SHOWS_A_RUN)  # fills the ledger's log and plans, too
            at += SHOWS_A_RUN
            for i in range(rounds):
                say(f"round {i + 1} of {rounds}")
                bare = (await asked("bare")).only(201)
                lose.add((await asked("lose", lost)).only(409).per_second, bare.per_second)
                await asked("warm", at, shows=SHOWS_A_RUN)
                won = (await asked("win", at, shows=SHOWS_A_RUN)).only(201)
                win.add(won.per_second, bare.per_second)
                win.note, at = f"p50 {won.p50_ms:.1f} ms, p99 {won.p99_ms:.1f} ms", at + SHOWS_A_RUN
                await asked("warm", large[i])
                # Two seconds: in four it would be sold out.
                more = {"pairs": BIG_SEATS // 2, "pairs_a_row": BIG_ROW // 2, "seconds": 2}
                on_big = (await asked("win", large[i], **more)).only(201)
                big.add(on_big.per_second, won.per_second)
                size = len((await on.app.seatmap.snapshot(large[i])).text)
                whole = (await asked(f"bytes{size}")).only(200)
                read.add((await asked("seats", large[i])).only(200).per_second, whole.per_second)
        await _many_shows(on, many, rounds, list(small[1 + SHOWS_A_RUN * (rounds + 1) :]), say)
    return [win, lose, big, read, many]


async def _many_shows(on: Stage, many: Figure, rounds: int, fresh: list[int], say: Say) -> None:
    """The same holds before and after ten thousand other shows are on sale and have their maps in Redis."""
    people, before = on.folder / "tokens", []
    async with workers(on, 2) as url:
        for i in range(rounds):
            say(f"one hot show, {i + 1} of {rounds}")
            before.append(await _warm_run(url, people, fresh, i))
        say("ten thousand shows")
        await shows(on, a_layout(200), MANY_SHOWS)
        fresh = list(await shows(on, a_layout(200), SHOWS_A_RUN * rounds))
        for i in range(rounds):
            say(f"one hot show of ten thousand, {i + 1} of {rounds}")
            many.add(await _warm_run(url, people, fresh, i), before[i])


async def _warm_run(url: str, people: Path, fresh: list[int], i: int) -> float:
    first = fresh[i * SHOWS_A_RUN]
    await run(url, people, Load("warm", first, shows=SHOWS_A_RUN, seconds=2))
    await asyncio.sleep(0.2)
    won = await run(url, people, Load("win", first, shows=SHOWS_A_RUN, seconds=SECONDS))
    return won.only(201).per_second
