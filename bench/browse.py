"""Browsing: what lies ready in a process, what nginx keeps in front of it, and holds while many browse.

Through nginx, each figure is against a file of the same size that the same nginx serves in the same run. What
reaches the box office is counted in nginx's log, what reaches the engines by the engines themselves.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx2

from bench.environment import Q, Stage, shows, stage, tokens, workers
from bench.figure import Figure
from bench.load import Load, Run, run
from bench.nginx import Browse, Edge, browse, edge
from holdfast.engines.postgres import require_row
from tests.support.shows import API, a_layout
from tests.support.watched_show import audience

SHOWS_A_RUN = 500  # of 200 seats: more than a run can sell
PEOPLE = 2_000
SECONDS = 4
SLICES, SLICE_S = 4, 1
LONG_S = 8  # a run whose refills are counted, and one whose p99 counts
VIEWERS = 1_000
PAGES_A_SECOND = 12_000  # asked for; who waits for an answer asks later, and over 10 000 come
BROWSERS, BUYERS = 200, 128  # connections
HALF = 0.58  # of the top rate is asked for, and a little more than half comes

Say = Callable[[str], None]


@dataclass(frozen=True)
class Scene:
    on: Stage
    app: str
    edge: Edge
    people: Path
    show: int  # the one that everybody looks at

    @property
    def pages(self) -> dict[str, str]:
        """What is browsed, by what it is."""
        show = f"{API}/shows/{self.show}"
        return {"a show": show, "its map": f"{show}/seats", "a search": f"{API}/search?q=test&size=5"}

    async def holds(self, first: int, *, pause_ms: int, seconds: int = SECONDS) -> Run:
        load = Load("win", first, SHOWS_A_RUN, connections=BUYERS, seconds=seconds, pause_ms=pause_ms)
        return (await run(self.app, self.people, load)).only(201)

    async def look_at(self, first: int) -> None:
        await run(self.app, self.people, Load("warm", first, SHOWS_A_RUN, seconds=2))


async def browse_figures(rounds: int, say: Say) -> list[Figure]:
    bare = {kind: Figure(f"{kind} without nginx", "pages/s", "bare GET of that size", 0.5) for kind in KINDS}
    kept = {kind: Figure(f"{kind} through nginx", "pages/s", "a file of that size", 0.7) for kind in KINDS}
    refills = Figure("refills that reach the box office", "allowed/s", "refills/s", 1.0)
    untouched = Figure("pages for each look of a browser at an engine", "pages/s", "commands/s", 100.0)
    beside = Figure("holds beside 10 000 pages/s and 1 000 viewers", "1/p99", "the same holds alone", 0.5)
    async with stage() as on:
        say("shows and people")
        people = on.folder / "tokens"
        people.write_text("\n".join(await tokens(on, PEOPLE)) + "\n")
        ids = list(await shows(on, a_layout(200), 1 + SHOWS_A_RUN * (3 * rounds + 1)))
        await on.app.search_index.reindex()
        async with workers(on, 2) as app, edge(on.folder / "nginx", app) as front:
            scene = Scene(on, app, front, people, ids[0])
            for i in range(rounds):
                say(f"pages, {i + 1} of {rounds}")
                await _ready(scene, bare)
                await _through_nginx(scene, kept)
                say(f"refills, {i + 1} of {rounds}")
                await _refills(scene, refills, untouched)
            await _beside(scene, beside, ids[1:], rounds, say)
    return [*bare.values(), *kept.values(), refills, untouched, beside]


KINDS = ("a show", "its map", "a search")


async def _ready(scene: Scene, figures: dict[str, Figure]) -> None:
    """What a process has in memory, against bytes that lie ready in the same process."""
    how = Browse(seconds=SLICE_S)
    for kind, path in scene.pages.items():
        size = await _size(scene.app + path)
        figures[kind].add(*await _in_turn(how, scene.app, path, f"{API}/bare/{size}", scene.on.folder))


async def _through_nginx(scene: Scene, figures: dict[str, Figure]) -> None:
    how = Browse(seconds=SLICE_S)
    for kind, path in scene.pages.items():
        size = await _size(scene.app + path)
        file = scene.edge.file_of(size)
        figures[kind].add(*await _in_turn(how, scene.edge.url, path, file, scene.on.folder))


async def _in_turn(how: Browse, url: str, ours: str, theirs: str, folder: Path) -> tuple[float, float]:
    """Both for a second, again and again: whatever else the machine does, it does to both."""
    found: dict[str, float] = {ours: 0.0, theirs: 0.0}
    for _ in range(SLICES):
        for path in found:
            found[path] += (await browse(url, [path], how, folder)).per_second / SLICES
    return found[ours], found[theirs]


async def _refills(scene: Scene, refills: Figure, untouched: Figure) -> None:
    """Nobody buys: whatever the engines are asked for meanwhile is because of who browses, or of no one."""
    paths, how = list(scene.pages.values()), Browse(seconds=LONG_S)
    reached, asked = await scene.edge.reached(), await _asked(scene.on)
    ours = await scene.edge.browse(paths, how)
    after = await _asked(scene.on)
    came = (await scene.edge.reached()) - reached
    allowed = len(paths) * (LONG_S + 1)  # one a second each, and the first
    refills.add(allowed / LONG_S, came.total() / LONG_S)
    refills.note = f"{ours.per_second * LONG_S:,.0f} pages, {came.total()} refills of {len(paths)} pages"
    changes = {name: after[name] - asked[name] for name in after}
    assert changes["ledger rows written"] == 0, changes
    untouched.add(ours.per_second, max(1, changes["scripts"] + changes["ledger statements"]) / LONG_S)
    untouched.note = ", ".join(f"{count} {name}" for name, count in changes.items())


async def _beside(scene: Scene, figure: Figure, fresh: list[int], rounds: int, say: Say) -> None:
    """The same holds, at half of what is possible, alone and while many browse and watch."""
    starts = iter(fresh[::SHOWS_A_RUN])
    await scene.look_at(first := next(starts))
    top = await scene.holds(first, pause_ms=0)
    pause_ms = round(1000 * BUYERS / (top.per_second * HALF) - top.p50_ms / 2)
    for i in range(rounds):
        say(f"holds beside browsers, {i + 1} of {rounds}")
        await scene.look_at(first := next(starts))
        alone = await scene.holds(first, pause_ms=pause_ms, seconds=LONG_S)
        await scene.look_at(first := next(starts))
        async with audience(
            scene.on.folder, scene.edge.url, scene.show, count=VIEWERS, keeps_states=False
        ) as crowd:
            how = Browse(connections=BROWSERS, seconds=LONG_S + 2, a_second=PAGES_A_SECOND)
            browsing = asyncio.create_task(scene.edge.browse(scene.pages.values(), how))
            await asyncio.sleep(1)
            ours = await scene.holds(first, pause_ms=pause_ms, seconds=LONG_S)
            pages = await browsing
            seen = await crowd.go_home()
        assert not seen.wrong, seen.wrong
        figure.add(1000 / ours.p99_ms, 1000 / alone.p99_ms)
        figure.note = (
            f"{ours.per_second:,.0f} holds/s of {top.per_second:,.0f}, p99 {ours.p99_ms:.1f} ms, alone "
            f"{alone.p99_ms:.1f} ms; {pages.per_second:,.0f} pages/s, p99 {pages.p99_ms:.1f} ms"
        )


async def _asked(on: Stage) -> dict[str, int]:
    """What the engines have been asked for so far, by their own count."""
    await asyncio.sleep(1.5)  # a connection of the ledger tells what it did a second later
    told = (await on.app.redis.call("INFO", "commandstats")).decode()
    counts = [line.split("calls=")[1].split(",")[0] for line in told.splitlines() if _is_script(line)]
    row = require_row(await on.app.postgres.fetchrow(Q.asked_of_ledger))
    return {"scripts": sum(map(int, counts)), **dict(row)}


def _is_script(line: str) -> bool:
    return line.startswith(("cmdstat_eval", "cmdstat_fcall"))


async def _size(url: str) -> int:
    async with httpx2.AsyncClient() as client:
        return len((await client.get(url)).raise_for_status().content)
