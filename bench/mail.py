"""A slow, refusing or disconnecting mail server: its effect on holds and payments, and on the mails.

Purchases arrive at a fixed rate, well below the capacity. Each round has one run with a healthy mail server
and one in each bad state, in another order each time. After each run the server is healthy again, and the
next run begins when every mail has arrived.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.environment import Q
from bench.errors import require
from bench.figure import Figure
from bench.load import run_generator
from bench.session import ATTEMPTS_MAX, Session
from tests.fakes.mail_server_process import DROPPING, FINE, REFUSING, SLOW, PostOffice, post_office
from tests.support.box_office import Office, office
from tests.support.shows import a_layout
from tests.support.wait import until

RATE = 10  # purchases per second: a worker sends more mails than that, so that none queue in a healthy run
SECONDS = 30
WARM_UP = 40  # purchases that are not measured
ACCOUNTS = 500
ROW = 100  # seats
SLOWER_MAX = 1.2  # p99 with a bad mail server, over p99 with a healthy one
ARRIVED_WITHIN_S = 600.0
STATES = (FINE, SLOW, REFUSING, DROPPING)
MAIL_FROM = "Box office <tickets@hall.example>"
STEPS = ("hold", "pay")

Round = dict[str, "PurchaseTimes"]  # by state of the mail server


@dataclass(frozen=True)
class PurchaseTimes:
    hold_ms: list[float]  # in ascending order
    pay_ms: list[float]
    arrived_s: float  # from the end of the run until the last mail had arrived

    def percentile(self, step: str, share: float) -> float:
        times = self.hold_ms if step == "hold" else self.pay_ms
        return times[min(int(len(times) * share), len(times) - 1)]


@dataclass
class MailBench:
    office: Office
    mail: PostOffice
    folder: Path
    show: int
    seats: Iterator[str]
    bookings: int = 0

    async def run_round(self, first_state: int) -> Round:
        found: Round = {}
        for i in range(len(STATES)):
            state = STATES[(first_state + i) % len(STATES)]
            found[state] = await self.run(state, RATE * SECONDS)
        return found

    async def run(self, state: str, count: int) -> PurchaseTimes:
        await self.mail.is_now(state)
        found = await self._buy([next(self.seats) for _ in range(count)])
        await self.mail.is_now(FINE)
        began = time.perf_counter()
        await until(self._all_arrived, within_s=ARRIVED_WITHIN_S)
        return PurchaseTimes(found["hold_ms"], found["pay_ms"], time.perf_counter() - began)

    async def _buy(self, labels: list[str]) -> dict[str, Any]:
        seats = self.folder / "seats"
        await asyncio.to_thread(seats.write_text, "\n".join(labels))
        arguments = (self.office.url, str(RATE), str(self.folder / "tokens"), str(self.show), str(seats))
        found = await run_generator([sys.executable, "-m", "bench.paced_purchase_load", *arguments])
        expected = {"201": len(labels), "200": len(labels)}
        require(
            found["statuses"] == expected, f"responses by status: {found['statuses']}, expected {expected}"
        )
        self.bookings += len(labels)
        return found

    async def _all_arrived(self) -> bool:
        return int(await self.office.app.postgres.fetchval(Q.tickets_sent)) >= self.bookings


async def measure_mail(session: Session) -> list[Figure]:
    figures = {(step, state): _create_figure(step, state) for step in STEPS for state in STATES[1:]}
    rounds: list[Round] = []
    async with _start(WARM_UP + session.rounds * ATTEMPTS_MAX * len(STATES) * RATE * SECONDS) as bench:
        session.report("mail: warming up")
        await bench.run(FINE, WARM_UP)
        async for attempt in session.repeat(*figures.values()):
            session.report(f"mail, attempt {attempt + 1}")
            del rounds[len(figures["hold", SLOW].runs) :]  # of an attempt that did not count
            rounds.append(await bench.run_round(attempt))
            for (step, state), figure in figures.items():
                healthy, bad = rounds[-1][FINE], rounds[-1][state]
                figure.add(healthy.percentile(step, 0.99), bad.percentile(step, 0.99))
        received, twice = len(bench.mail.taken()), bench.mail.twice()
        dead = await bench.office.app.postgres.fetchval(Q.notices_dead)
    require(not twice, f"these mails arrived twice: {twice}")
    require(not dead, f"{dead} mails were given up")
    arrived = Figure("mails of confirmed bookings", "mails", "bookings", 1.0)
    arrived.add(received, bench.bookings)
    if counted := rounds[: len(figures["hold", SLOW].runs)]:
        _write_details(counted, bench.bookings, received, session.results)
    return [*figures.values(), arrived]


def _create_figure(step: str, state: str) -> Figure:
    return Figure(
        f"{step} p99 with healthy mail", "ms", f"p99 while mail is {state}", round(1 / SLOWER_MAX, 2)
    )


def _write_details(rounds: list[Round], bookings: int, received: int, results: Path) -> None:
    found: dict[str, Any] = {"purchases_per_second": RATE, "seconds": SECONDS, "rounds": len(rounds)}
    for state in STATES:
        page = {"arrived_s": round(median(each[state].arrived_s for each in rounds), 1)}
        for step in STEPS:
            for name, share in (("p50", 0.5), ("p99", 0.99)):
                times = [each[state].percentile(step, share) for each in rounds]
                page[f"{step}_{name}_ms"] = round(median(times), 1)
            ratios = [
                each[state].percentile(step, 0.99) / each[FINE].percentile(step, 0.99) for each in rounds
            ]
            page[f"{step}_p99_by_healthy"] = round(median(ratios), 2)
        found[state] = page
        print(f"mail is {state}: {page}")
    found |= {"bookings": bookings, "mails": received, "twice": 0}
    print(f"{bookings} bookings, {received} mails, none twice")
    (results / "mail.json").write_text(json.dumps(found, indent=2) + "\n")


@asynccontextmanager
async def _start(seats: int) -> AsyncIterator[MailBench]:
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-mail-") as name:
        folder = Path(name)
        async with (
            post_office(folder) as mail,
            office(web=2, mail_url=mail.url, mail_from=MAIL_FROM) as running,
        ):
            layout = a_layout(seats, row=ROW)
            show = await running.a_show(layout=layout, owner_seats_max=1000)
            tokens = [fan.token for fan in await running.fans(ACCOUNTS)]
            (folder / "tokens").write_text("\n".join(tokens))
            yield MailBench(running, mail, folder, show, iter(layout.labels))
