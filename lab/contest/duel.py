"""A duel: clients stand still at the worst moment, a fault strikes, rivals come, and then the clients go on.

    three processes, each with a few seats of its own, stop
        in the hold         after the check, before the write
        with a hold         acknowledged, not yet paid
        in the confirmation after the check, before the write
    the fault strikes
    rivals try to get every one of these seats, and buy what they get
    the three processes go on: they finish what they were doing, and buy what they hold

Nothing depends on luck: every step waits for the one before it.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Struct

from lab.contest.faults import BY_NAME, Fault, Scenario, planned
from lab.contest.messages import Note, Open, Point, Race, Reply, Rivals, Victims
from lab.contest.oracle import Verdict, judge
from lab.contest.processes import ClientProcess
from lab.contest.servers import Servers
from lab.contest.shows import Shows

POINTS: tuple[Point, ...] = ("hold", "held", "confirm")
VICTIM, RIVAL, EARLY = 1, 101, 201  # first client of each kind
RACE_WAIT_S = 0.2
RIVALS_LATE_S = 0.5  # they try for this long after holds and locks have lapsed


class DuelResult(Struct, frozen=True):
    verdict: Verdict
    attacked: int  # seats
    seconds: float
    log: list[Note]


@dataclass(frozen=True)
class Arena:
    servers: Servers
    shows: Shows
    processes: Sequence[ClientProcess]  # one per point, and the rivals'
    seats: int = 3  # per point
    early_seats: int = 40  # sold before the duel: the numbers of a lock have grown by then
    rivals_s: float = 0.6  # for which rivals try, where nothing lapses

    @property
    def rivals(self) -> ClientProcess:
        return self.processes[-1]


async def run_duel(arena: Arena, strategy: str, scenario_name: str) -> DuelResult:
    scenario, began = BY_NAME[scenario_name], time.monotonic()
    async with planned(arena.servers, strategy, scenario) as fault:
        show_id = await _open_show(arena, strategy, fault, scenario)
        await arena.rivals.call(Rivals(EARLY, tuple(range(100, 100 + arena.early_seats)), arena.rivals_s))
        match scenario.name:
            case "race":
                attacked: tuple[int, ...] = tuple(range(arena.seats))
                replies = [await arena.rivals.call(Race(RIVAL, attacked, RACE_WAIT_S))]
            case "slow_payment":
                attacked = tuple(range(arena.seats))
                replies = await _run_parts(arena, fault, scenario, {"paying": attacked})
            case _:
                parts = {
                    point: tuple(range(i * arena.seats, (i + 1) * arena.seats))
                    for i, point in enumerate(POINTS)
                }
                attacked = tuple(seat for seats in parts.values() for seat in seats)
                replies = await _run_parts(arena, fault, scenario, parts)
        rows = await arena.shows.sold_rows(show_id)
    events = [event for reply in replies for event in reply.events]
    rows = {seat: rows.get(seat, 0) for seat in attacked}
    log = sorted((note for reply in replies for note in reply.notes), key=lambda note: note.at_s)
    return DuelResult(judge(events, rows), len(attacked), time.monotonic() - began, log)


async def _open_show(arena: Arena, strategy: str, fault: Fault, scenario: Scenario) -> int:
    target = fault.target
    show_id = await arena.shows.create(
        strategy, 200, hold_ttl_ms=scenario.times.hold_ttl_ms, redis_url=target.redis_url
    )
    setup = Open(
        strategy=strategy,
        show_id=show_id,
        times=scenario.times,
        database_url=arena.servers.database_url,
        redis_url=target.redis_url,
        voter_urls=tuple(voter.url for voter in target.voters) if strategy == "redlock" else (),
    )
    await asyncio.gather(*(process.call(setup) for process in arena.processes))
    return show_id


async def _run_parts(
    arena: Arena, fault: Fault, scenario: Scenario, parts: dict[Point, tuple[int, ...]]
) -> list[Reply]:
    await fault.prepare()
    victims, early = [], []
    for process, (point, seats) in zip(arena.processes, parts.items(), strict=False):
        reply = await process.call(Victims(point, VICTIM + seats[0], seats))
        if reply.parked:
            victims.append(process)
        else:
            early.append(reply)  # none of its clients came as far as the point
    struck_at = time.monotonic()
    text = await fault.strike(victims)
    seats = tuple(seat for part in parts.values() for seat in part)
    times = scenario.times
    within_s = arena.rivals_s
    if times.hold_ttl_ms < 5000:
        within_s = max(times.hold_ttl_ms, times.lock_ttl_ms) / 1000 + RIVALS_LATE_S
    rivals = await arena.rivals.call(Rivals(RIVAL, seats, within_s))
    went_on_at = time.monotonic()
    for process in victims:
        await process.go_on()
    late = [await process.receive() for process in victims]
    notes = [Note(struck_at, "director", text), Note(went_on_at, "director", "the stopped clients go on")]
    return [*early, rivals, *late, Reply(notes=notes)]


def one_seat(result: DuelResult, seat: int) -> list[Note]:
    """The lines of a log that are about one seat: of its client, its rival and the director."""
    names = {f"client {VICTIM + seat}", f"client {RIVAL + seat}", "director"}
    return [note for note in result.log if note.who in names]
