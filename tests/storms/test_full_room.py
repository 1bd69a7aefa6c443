"""A waiting room with many entrants and live clients among them (R27): each comes in once, in drawn order.

Most entrants join through the service that the API calls, and leave when they are called; the live clients
do everything over HTTP. The order is recomputed by the program in docs/waiting_room.md, which shares no code
with us.
"""

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from holdfast.engines.errors import EngineDown
from holdfast.waitingroom import Joiner
from holdfast.waitingroom.draw import DrawRecord
from tests.support.box_office import Office
from tests.support.queue_crowd import QueueCrowd
from tests.support.wait import until
from tests.support.waiting_room import Room, a_room

FIRST = 10**12  # an account that does not exist, and those after it
LEAVING_AT_ONCE = 200  # each takes a connection of the pool
PROGRAM = Path(__file__).parents[2] / "docs" / "waiting_room.md"
# Runs the program of the docs once for each number, in one process.
FOR_EACH = """
import sys
program, draw, *numbers = sys.argv[1:]
code = compile(open(program).read(), program, "exec")
for number in numbers:
    sys.argv = [program, draw, number]
    exec(code, {})
"""
CALLED = """
SELECT account_id FROM queue_turn JOIN queue_place USING (show_id, opening, number)
 WHERE show_id = $1 AND queue_turn.state = 'called' AND account_id >= $2
"""
TURNS = "SELECT number, position, call FROM queue_turn WHERE show_id = $1"


async def test_everyone_comes_in_once_in_the_drawn_order(
    stage: Office, is_full: bool, tmp_path: Path
) -> None:
    others, live, inside_max = (198_000, 2_000, 5_000) if is_full else (580, 20, 400)
    show_id = await stage.a_show(seats=max(2 * live, inside_max))
    room = await a_room(stage.app, show_id, inside_max=inside_max)
    crowd = QueueCrowd(stage, show_id, await stage.fans(live), pause_s=10 if is_full else 0.3)

    began_s = time.perf_counter()
    await asyncio.gather(crowd.join_all(), join_many(room, range(FIRST, FIRST + others)))
    print(f"{(others + live) / (time.perf_counter() - began_s):.0f} joins per second")
    await room.draw_by_worker()
    await until(room.is_admitting, within_s=60)
    late = [await join_many(room, range(FIRST + others + n, FIRST + others + n + 1)) for n in range(20)]
    began_s = time.perf_counter()
    async with asyncio.TaskGroup() as group:  # the end of one is the end of all
        leaving = group.create_task(leave_when_called(room))
        await crowd.visit_all()
        leaving.cancel()
    print(f"all {live} live clients came in after {time.perf_counter() - began_s:.0f} s")

    draw = await room.app.waiting_rooms.load_draw(show_id)
    positions = recompute(draw, sorted(crowd.numbers.values()), tmp_path)
    turns = await room.app.postgres.fetch(TURNS, show_id)
    of_live = [row for row in turns if row["number"] in positions]
    assert [number for (number,) in late] == list(range(others + live, others + live + 20))
    assert crowd.other_numbers == []
    assert {row["number"]: row["position"] for row in of_live} == positions
    assert all(row["call"] == 1 for row in of_live)
    assert len(of_live) == len(crowd.came_in) == live
    assert all(row["position"] == row["number"] for row in turns if row["number"] >= others + live)
    await room.editor.close(show_id)
    await stage.settled()  # numbers are dense, the cap held at every call, the seed is the committed one


async def join_many(room: Room, accounts: range) -> list[int]:
    """In the order of the accounts, 1000 at once."""
    found: list[int] = []
    for first in range(0, len(accounts), 1000):
        joins = (
            room.app.waiting_rooms.join(room.show_id, Joiner(account))
            for account in accounts[first : first + 1000]
        )
        found += [joined.place.number for joined in await asyncio.gather(*joins)]
    return found


async def leave_when_called(room: Room) -> None:
    """What the others do, until cancelled."""
    while True:
        try:
            rows = await room.app.postgres.fetch(CALLED, room.show_id, FIRST)
            for first in range(0, len(rows), LEAVING_AT_ONCE):
                some = rows[first : first + LEAVING_AT_ONCE]
                await asyncio.gather(
                    *(room.app.waiting_rooms.leave(room.show_id, row["account_id"]) for row in some)
                )
        except EngineDown as error:  # no connection in time: those who did not leave are read again
            print(f"leaving goes on after {error}")
        await asyncio.sleep(0.2)


def recompute(draw: DrawRecord, numbers: Sequence[int], folder: Path) -> dict[int, int]:
    """Number → position, by the program in the docs, from what the API publishes."""
    (program,) = re.findall(r"```python\n(.*?)```", PROGRAM.read_text(), re.DOTALL)
    (folder / "check.py").write_text(program)
    (folder / "draw.json").write_bytes(msgspec.json.encode(draw))
    words = [str(folder / "check.py"), str(folder / "draw.json"), *map(str, numbers)]
    command = [sys.executable, "-I", "-c", FOR_EACH, *words]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found = [int(line.removeprefix("position ")) for line in run.stdout.splitlines()]
    return dict(zip(numbers, found, strict=True))
