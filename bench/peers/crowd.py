"""Load generator: buyers who each repeat one journey on their own connection, for any of the systems.

python -m bench.peers.crowd < PLAN prints one line of JSON. No journey starts after the plan's seconds; those
under way are completed and counted, so that slow journeys are not cut off.
"""

import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from itertools import repeat

import msgspec
import uvloop

from bench.load_generator import label_pair
from bench.peers import holdfast_journeys, pretix_journeys
from bench.peers.client import Client, UnexpectedResponse, expect
from bench.peers.plan import Hall, Outcome, Place, Plan, Report

Journey = Callable[[Client, Place, Plan], Awaitable[Outcome]]
ERRORS_MAX = 5  # then the run has failed
SEED = 1


async def load_page(client: Client, _: Place, plan: Plan) -> Outcome:
    expect(await client.get(plan.facts["path"]), 200)
    return Outcome.DONE


JOURNEYS: dict[str, Journey] = {
    "page": load_page,
    "holdfast hold by API": holdfast_journeys.hold_by_api,
    "holdfast hold in the shop": holdfast_journeys.hold_in_shop,
    "holdfast purchase by API": holdfast_journeys.buy_by_api,
    "holdfast purchase in the shop": holdfast_journeys.buy_in_shop,
    "pretix hold by API": pretix_journeys.hold_by_api,
    "pretix hold in the shop": pretix_journeys.hold_in_shop,
    "pretix purchase by API": pretix_journeys.buy_by_api,
    "pretix purchase in the shop": pretix_journeys.buy_in_shop,
}


class Crowd:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._journey = JOURNEYS[plan.journey]
        self._places = list_places(plan)
        self._outcomes: Counter[str] = Counter()
        self._done: list[tuple[float, float]] = []  # when, and how long the journey took
        self._errors: list[str] = []

    async def run(self) -> Report:
        self._began = time.perf_counter()
        cpu_before = time.process_time()
        await asyncio.gather(*(self._buy() for _ in range(self._plan.connections)))
        seconds = time.perf_counter() - self._began
        took = sorted(took_s for _, took_s in self._done)
        return Report(
            outcomes=dict(self._outcomes),
            seconds=seconds,
            sold_s=max((at for at, _ in self._done), default=self._began) - self._began,
            p50_ms=took[len(took) // 2] * 1000 if took else 0,
            p99_ms=took[len(took) * 99 // 100] * 1000 if took else 0,
            client_cores=(time.process_time() - cpu_before) / seconds,
            errors=self._errors,
        )

    async def _buy(self) -> None:
        client = Client(self._plan.url)
        for place in self._places:
            began = time.perf_counter()
            if began - self._began > self._plan.seconds or len(self._errors) >= ERRORS_MAX:
                break
            try:
                outcome = await self._journey(client, place, self._plan)
            except (UnexpectedResponse, OSError, TimeoutError) as error:
                self._errors.append(f"{type(error).__name__}: {error}")
                continue
            now = time.perf_counter()
            self._outcomes[outcome] += 1
            if outcome is Outcome.DONE:
                self._done.append((now, now - began))
        client.close()


def list_places(plan: Plan) -> Iterator[Place]:
    """Every pair of seats once, or in a random order as often as the plan wants it. Shared by all buyers."""
    if not plan.halls:  # pages have no end
        yield from repeat(Place(Hall(""), [], 0))
    whole = [(hall, pair) for hall in plan.halls for pair in range(plan.pairs)] * plan.wanted_by
    if plan.wanted_by > 1:
        random.Random(SEED).shuffle(whole)
    for number, (hall, pair) in enumerate(whole):
        yield Place(hall, label_pair(pair, plan.pairs_per_row), number)


def main() -> None:
    plan = msgspec.json.decode(sys.stdin.buffer.read(), type=Plan)
    report = uvloop.run(Crowd(plan).run())
    print(msgspec.json.encode(report).decode())


if __name__ == "__main__":
    main()
