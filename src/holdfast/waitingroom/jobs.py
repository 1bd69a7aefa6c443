"""The job of waiting rooms: opens them, draws the order, ends turns, calls people, notices that all is sold.

    scheduled ──opens_at──► open ──draw_at, beacon──► admitting ──everything sold──► drained
                                                        │
                                                        └ each second: end turns ─► measure ─► call

Any number of workers: one is at a room at a time, and the row of its queue is locked while people are called,
so the cap on people inside holds at every moment. A worker that dies leaves nothing half done: a step is one
transaction, and the next step is computed from the ledger.
"""

import time

import asyncpg
import structlog

from holdfast.bookings import Bookings
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import AGAIN, Postgres, Queries, Transaction, require_row
from holdfast.outbox import QueueCalled, QueueDrawn, add_fact
from holdfast.waitingroom.admission import Measured, count_next, find_brake, next_rate
from holdfast.waitingroom.draw import Permutation, derive_key
from holdfast.waitingroom.guard import END_GRACE_S
from holdfast.waitingroom.opening import Beacon, end_queue, log_step, open_queue
from holdfast.waitingroom.room import RoomState
from holdfast.waitingroom.web_load import forget_web_load, load_web_load

Q = Queries("holdfast.waitingroom")
STEPS = Queries("holdfast.waitingroom", "jobs")
log = structlog.get_logger(__name__)
ROOMS_DUE = STEPS.is_due
CALLED_MAX = 1_000  # per step and room
QUIET_S = 300  # without a person waiting, a room that demand has opened closes
PASSED_OVER = 2  # positions looked at per person to call: some have left


class RoomJobs:
    def __init__(self, postgres: Postgres, bookings: Bookings) -> None:
        self._postgres = postgres
        self._bookings = bookings

    async def step(self) -> int:
        """A job: one step of every room. Returns 0, so that the loop pauses."""
        rooms = await self._postgres.fetch(STEPS.rooms_at_work)
        for row in rooms:
            try:
                await self.step_room(row["show_id"])
            except AGAIN as error:  # locked, or its show is being moved: the other rooms go on
                log.info("a waiting room waits for a lock", show_id=row["show_id"], error=repr(error))
        if rooms:
            await forget_web_load(self._postgres)
        return 0

    async def step_room(self, show_id: int) -> int:
        """How many people were called."""
        async with self._postgres.transaction() as tx:
            if not await tx.fetchval(STEPS.try_turn, show_id):
                return 0
            seats = (await self._bookings.counts_many([show_id]))[show_id]
            if await tx.fetchval(STEPS.lock_queue, show_id) is None:
                return 0
            began_s = time.perf_counter()
            room = require_row(await tx.fetchrow(Q.current_queue, show_id))
            left = max(0, room["seats"] - sum(seats.values()))
            match RoomState(room["state"]):
                case RoomState.DRAINED | RoomState.CLOSED:
                    return 0
                case _ if room["is_over"]:
                    await end_queue(tx, show_id, room["opening"], RoomState.CLOSED, left)
                case RoomState.SCHEDULED:
                    await self._open_if_due(tx, room, left)
                case RoomState.OPEN:
                    await self._draw_if_due(tx, room, left)
                case _ if left == 0 and seats["H"] == 0:
                    await end_queue(tx, show_id, room["opening"], RoomState.DRAINED)
                case RoomState.ADMITTING:
                    return await self._admit(tx, room, left, began_s)
        return 0

    async def _open_if_due(self, tx: Transaction, room: asyncpg.Record, left: int) -> None:
        show_id, opening = room["show_id"], room["opening"]
        if room["opens_at"] is not None and room["opens_at"] <= room["now"]:
            planned = require_row(await tx.fetchrow(STEPS.planned_beacon, show_id))
            beacon = Beacon.planned(planned["beacon"], planned["beacon_until"])
            is_opened = await open_queue(tx, show_id, opening, by="schedule", beacon=beacon)
        elif await tx.fetchval(STEPS.is_in_demand, show_id):
            is_opened = await open_queue(tx, show_id, opening, by="demand")
        else:
            return
        if is_opened:
            await log_step(tx, show_id, opening, "opened", seats_left=left)

    async def _draw_if_due(self, tx: Transaction, room: asyncpg.Record, left: int) -> None:
        """The queue's row is locked: no person joins between the count and the draw.

        Nor is the value of the beacon entered: before its deadline the draw waits for it, after it
        editor.py refuses it. So there is no moment at which a party could choose with or without.
        """
        is_beacon_missing = bool(room["beacon"]) and room["beacon_value"] is None
        has_time = room["beacon_until"] is None or room["beacon_until"] > room["now"]
        if room["draw_at"] > room["now"] or (is_beacon_missing and has_time):
            return
        show_id, opening = room["show_id"], room["opening"]
        seed = await tx.fetchval(STEPS.draw_order, show_id, opening)
        key = derive_key(show_id, opening, seed, room["joined"], room["beacon_value"] or "")
        await tx.execute(STEPS.set_order, show_id, opening, key)
        await log_step(tx, show_id, opening, "drawn", seats_left=left)
        await add_fact(tx, show_id, QueueDrawn(opening=opening, entrants=room["joined"]))

    async def _admit(self, tx: Transaction, room: asyncpg.Record, left: int, began_s: float) -> int:
        show_id, opening, serving = room["show_id"], room["opening"], room["serving"]
        await tx.execute(STEPS.end_buyers, show_id, opening, END_GRACE_S)
        await tx.fetchval(STEPS.end_due_turns, show_id, opening, serving + room["inside_max"])
        inside = await tx.fetchval(STEPS.inside, show_id, opening)
        new = room["joined"] - serving
        waiting = new + await tx.fetchval(STEPS.missed, show_id, opening)
        since = room["called_at"] or room["drawn_at"] or room["opened_at"]
        measured = Measured(
            inside=inside,
            waiting=waiting,
            seats_left=left,
            since_call_s=(room["now"] - since).total_seconds(),
            ledger_ms=(time.perf_counter() - began_s) * 1000,
            load=await load_web_load(tx),
        )
        if room["opened_by"] == "demand" and not waiting and measured.since_call_s > QUIET_S:
            await self._end_by_itself(tx, room, left)
            return 0
        brake = find_brake(measured)
        rate = next_rate(room["rate"], room["per_minute_max"], brake)
        most = min(count_next(measured, rate, room["inside_max"]), CALLED_MAX)
        called = 0
        if most:
            numbers = find_numbers(room, min(new, most * PASSED_OVER))
            row = require_row(
                await tx.fetchrow(STEPS.call_people, show_id, opening, numbers, serving, most, new == 0)
            )
            called, serving = row["called"], row["serving"]
            if called:
                fact = QueueCalled(opening=opening, people=called, called_at=row["called_at"])
                await add_fact(tx, show_id, fact)
        await tx.execute(STEPS.set_serving, show_id, opening, serving, rate, called > 0, brake or "")
        is_changed = (serving, inside + called, left) != (room["serving"], room["inside"], room["seats_left"])
        if is_changed:
            await log_step(tx, show_id, opening, "called", called=called, seats_left=left)
        metrics.add("queue_called_total", called)
        return called

    async def _end_by_itself(self, tx: Transaction, room: asyncpg.Record, left: int) -> None:
        """The rush is over: seats are held without the room, until the next rush."""
        await end_queue(tx, room["show_id"], room["opening"], RoomState.CLOSED, left)
        await tx.execute(STEPS.begin_next_opening, room["show_id"], room["opening"] + 1)


def find_numbers(room: asyncpg.Record, count: int) -> list[int]:
    """The entrants at the next positions: of the draw, then later arrivals in their order."""
    first, entrants = room["serving"], room["entrants"]
    order = Permutation(room["key"], entrants) if room["key"] is not None and entrants else None
    return [
        order.number(position) if order is not None and position < entrants else position
        for position in range(first, first + count)
    ]
