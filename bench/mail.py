"""Mail that is slow, refused or dropped: what holds and payments feel of it, and what becomes of the mail.

Purchases come at a fixed rate, well below what can be sold. Each round has one run with a healthy mail server
and one in each of its moods, in another order each time; after each run the server is fine again, and the
next run begins when every mail has arrived.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench.environment import Q
from bench.figure import Figure
from tests.fakes.mail_server_process import DROPPING, FINE, REFUSING, SLOW, PostOffice, post_office
from tests.support.box_office import Office, office
from tests.support.shows import a_layout
from tests.support.wait import until

RATE = 10  # purchases a second: a worker writes more letters than that, so none pile up in a healthy run
SECONDS = 30
WARM_UP = 40  # purchases nobody counts
PEOPLE = 500
ROW = 100  # seats
WORSE_MAX = 1.2  # p99 in trouble, by that of the healthy run
ARRIVED_WITHIN_S = 600.0
MOODS = (FINE, SLOW, REFUSING, DROPPING)
MAIL_FROM = "Box office <tickets@hall.example>"
RESULTS = Path(__file__).parent / "results"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Run:
    hold_ms: list[float]
    pay_ms: list[float]
    arrived_s: float  # after the run, until the last mail had

    def at(self, what: str, share: float) -> float:
        times = self.hold_ms if what == "hold" else self.pay_ms
        return times[min(int(len(times) * share), len(times) - 1)]


@dataclass
class Trial:
    stage: Office
    mail: PostOffice
    folder: Path
    show: int
    seats: Iterator[str]
    bookings: int = 0
    runs: dict[str, list[Run]] = field(default_factory=lambda: {mood: [] for mood in MOODS})

    async def run(self, mood: str, how_many: int) -> Run:
        await self.mail.is_now(mood)
        found = await self._bought([next(self.seats) for _ in range(how_many)])
        await self.mail.is_now(FINE)
        began = time.perf_counter()
        await until(self._all_arrived, within_s=ARRIVED_WITHIN_S)
        return Run(found["hold_ms"], found["pay_ms"], time.perf_counter() - began)

    async def _bought(self, labels: list[str]) -> dict[str, Any]:
        seats = self.folder / "seats"
        await asyncio.to_thread(seats.write_text, "\n".join(labels))
        words = [self.stage.url, str(RATE), str(self.folder / "tokens"), str(self.show), str(seats)]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bench.paced_purchase_load", *words), stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()
        assert process.returncode == 0, "the buyers failed"
        found: dict[str, Any] = json.loads(output)
        assert found["answers"] == {"201": len(labels), "200": len(labels)}, found["answers"]
        self.bookings += len(labels)
        return found

    async def _all_arrived(self) -> bool:
        return int(await self.stage.app.postgres.fetchval(Q.tickets_sent)) >= self.bookings


async def letter_figures(rounds: int, say: Say) -> list[Figure]:
    async with _trial(WARM_UP + rounds * len(MOODS) * RATE * SECONDS) as trial:
        say("letters: warming up")
        await trial.run(FINE, WARM_UP)
        for i in range(rounds):
            for place in range(len(MOODS)):
                mood = MOODS[(i + place) % len(MOODS)]
                say(f"letters, round {i + 1} of {rounds}: mail is {mood}")
                trial.runs[mood].append(await trial.run(mood, RATE * SECONDS))
        taken, twice = len(trial.mail.taken()), trial.mail.twice()
        dead = await trial.stage.app.postgres.fetchval(Q.notices_dead)
    assert not twice, f"these came twice: {twice}"
    assert not dead, f"{dead} were given up"
    arrived = Figure("mails of confirmed bookings", "mails", "bookings", 1.0)
    arrived.add(taken, trial.bookings)
    _tell(trial, taken)
    return [*_slower(trial), arrived]


def _slower(trial: Trial) -> list[Figure]:
    figures = []
    for what in ("hold", "pay"):
        for mood in MOODS[1:]:
            name = f"{what} p99 with healthy mail"
            figure = Figure(name, "ms", f"p99 while mail is {mood}", round(1 / WORSE_MAX, 2))
            for healthy, run in zip(trial.runs[FINE], trial.runs[mood], strict=True):
                figure.add(healthy.at(what, 0.99), run.at(what, 0.99))
            figures.append(figure)
    return figures


def _tell(trial: Trial, taken: int) -> None:
    found: dict[str, Any] = {"purchases_a_second": RATE, "seconds": SECONDS, "rounds": len(trial.runs[FINE])}
    for mood in MOODS:
        runs = trial.runs[mood]
        page = {"arrived_s": round(median(run.arrived_s for run in runs), 1)}
        for what in ("hold", "pay"):
            for name, share in (("p50", 0.5), ("p99", 0.99)):
                page[f"{what}_{name}_ms"] = round(median(run.at(what, share) for run in runs), 1)
            pairs = zip(runs, trial.runs[FINE], strict=True)
            ratios = [run.at(what, 0.99) / healthy.at(what, 0.99) for run, healthy in pairs]
            page[f"{what}_p99_by_healthy"] = round(median(ratios), 2)
        found[mood] = page
        print(f"mail is {mood}: {page}")
    found |= {"bookings": trial.bookings, "mails": taken, "twice": 0}
    print(f"{trial.bookings} bookings, {taken} mails, none twice")
    (RESULTS / "letters.json").write_text(json.dumps(found, indent=2) + "\n")


@asynccontextmanager
async def _trial(seats: int) -> AsyncIterator[Trial]:
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-letters-") as place:
        folder = Path(place)
        async with post_office(folder) as mail:
            async with office(web=2, mail_url=mail.url, mail_from=MAIL_FROM) as stage:
                layout = a_layout(seats, row=ROW)
                show = await stage.a_show(layout=layout, owner_seats_max=1000)
                tokens = [fan.token for fan in await stage.fans(PEOPLE)]
                (folder / "tokens").write_text("\n".join(tokens))
                yield Trial(stage, mail, folder, show, iter(layout.labels))
