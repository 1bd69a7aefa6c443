"""What organisers do with the waiting rooms of their shows. Every change is in the audit log."""

from typing import Any

import msgspec
from msgspec import Struct

from holdfast.catalogue import Catalogue
from holdfast.engines.postgres import Postgres, Queries, Transaction
from holdfast.errors import Invalid
from holdfast.waitingroom.errors import NoQueue, WrongRoomState
from holdfast.waitingroom.opening import Beacon, end_queue, log_step, open_queue
from holdfast.waitingroom.room import MOVES, RoomSettings, RoomState, RoomStatus
from holdfast.waitingroom.store import WaitingRooms
from holdfast.waitingroom.waits import Calibration
from holdfast.web.audit_log import AuditEntry, record, record_change
from holdfast.web.caller import Scope

Q = Queries("holdfast.waitingroom", "editor")


class RoomPage(Struct, frozen=True):
    """A waiting room for its organiser."""

    settings: RoomSettings
    status: RoomStatus
    opened_by: str  # schedule, organiser, demand; empty: not open yet
    beacon_value: str | None
    held_back_by: str  # why admission does not speed up: see `Brake`; empty: it does, or is at its maximum
    left: int  # people who gave up their place
    out: int  # people who did not respond twice
    done: int  # people who were inside
    calibration: Calibration  # of the estimated waits


class RoomEditor:
    def __init__(self, postgres: Postgres, catalogue: Catalogue, rooms: WaitingRooms, scope: Scope) -> None:
        self._postgres = postgres
        self._catalogue = catalogue
        self._rooms = rooms
        self._scope = scope

    async def load(self, show_id: int) -> RoomPage:
        await self._require_own(show_id)
        row = await self._postgres.fetchrow(Q.room, show_id)
        self._rooms.forget(show_id)
        status = await self._rooms.status(show_id)
        if row is None or status is None:
            raise NoQueue
        counts = await self._postgres.fetch(Q.ended_places, show_id, status.opening)
        ended = {one["state"]: one["people"] for one in counts}
        return RoomPage(
            settings=_settings(row),
            status=status,
            opened_by=row["opened_by"],
            beacon_value=row["beacon_value"],
            held_back_by=row["held_back_by"],
            left=ended.get(1, 0),
            out=ended.get(2, 0),
            done=ended.get(3, 0),
            calibration=await self._rooms.load_calibration(show_id, status.opening),
        )

    async def set(self, show_id: int, settings: RoomSettings) -> RoomPage:
        """Creates the room, or changes it; a closed or drained one gets another opening."""
        await self._require_own(show_id)
        _require_sensible(settings)
        async with self._postgres.transaction() as tx:
            row = await tx.fetchrow(Q.lock_room, show_id)
            before = None if row is None else _settings(row)
            opening = 1 if row is None else row["opening"]
            if row is not None and row["state"] in (RoomState.CLOSED, RoomState.DRAINED):
                opening += 1
            await tx.execute(Q.set_room, show_id, opening, *msgspec.structs.astuple(settings))
            await tx.execute(Q.add_queue, show_id, opening)
            await record_change(tx, _entry(show_id, "queue.changed"), before, settings)
        return await self._changed(show_id)

    async def open(self, show_id: int) -> RoomPage:
        """People can join from now on."""
        await self._require_own(show_id)
        async with self._postgres.transaction() as tx:
            row = await self._lock(tx, show_id, RoomState.OPEN)
            opening = row["opening"]
            beacon = Beacon.planned(row["beacon"], row["beacon_until"])
            await open_queue(tx, show_id, opening, by="organiser", beacon=beacon)
            await log_step(tx, show_id, opening, "opened", seats_left=row["seats"])
            await record(tx, _entry(show_id, "queue.opened", opening=opening))
        return await self._changed(show_id)

    async def close(self, show_id: int) -> RoomPage:
        """Seats are held without the room from now on."""
        await self._require_own(show_id)
        async with self._postgres.transaction() as tx:
            row = await self._lock(tx, show_id, RoomState.CLOSED)
            await end_queue(tx, show_id, row["opening"], RoomState.CLOSED)
            await record(tx, _entry(show_id, "queue.closed", opening=row["opening"]))
        return await self._changed(show_id)

    async def override(self, show_id: int, *, lets_everyone_in: bool, reason: str) -> RoomPage:
        """Lets everyone hold seats, or ends that."""
        await self._require_own(show_id)
        wanted = RoomState.OVERRIDDEN if lets_everyone_in else RoomState.ADMITTING
        async with self._postgres.transaction() as tx:
            row = await self._lock(tx, show_id, wanted)
            if not lets_everyone_in and row["state"] != RoomState.OVERRIDDEN:
                raise WrongRoomState(state=row["state"])
            # Overridden before its draw, it goes back to where it was: the order is still to be drawn.
            if not lets_everyone_in and row["entrants"] is None:
                wanted = RoomState.OPEN
            await tx.execute(Q.set_room_state, show_id, row["opening"], wanted)
            await log_step(tx, show_id, row["opening"], wanted)
            await record(tx, _entry(show_id, "queue.overridden", state=wanted, reason=reason))
        return await self._changed(show_id)

    async def set_beacon(self, show_id: int, value: str) -> RoomPage:
        """The public value that was announced when the room opened; once, and before its deadline."""
        await self._require_own(show_id)
        async with self._postgres.transaction() as tx:
            row = await tx.fetchrow(Q.lock_room, show_id)
            if row is None:
                raise NoQueue
            is_expected = row["state"] == RoomState.OPEN and row["stated_beacon"]
            if not is_expected or row["is_beacon_late"] or row["beacon_value"] not in (None, value):
                raise WrongRoomState(state=row["state"], beacon=row["stated_beacon"])
            await tx.execute(Q.set_beacon, show_id, row["opening"], value)
            await record(tx, _entry(show_id, "queue.beacon_set", value=value))
        return await self._changed(show_id)

    async def _lock(self, tx: Transaction, show_id: int, wanted: RoomState) -> Any:
        row = await tx.fetchrow(Q.lock_room, show_id)
        if row is None:
            raise NoQueue
        if wanted not in MOVES[RoomState(row["state"])]:
            raise WrongRoomState(state=row["state"])
        return row

    async def _changed(self, show_id: int) -> RoomPage:
        self._rooms.forget(show_id)
        await self._rooms.guard.refresh()
        return await self.load(show_id)

    async def _require_own(self, show_id: int) -> None:
        await self._catalogue.organiser_show(show_id, self._scope.organiser_id)


def _require_sensible(settings: RoomSettings) -> None:
    """A deadline is of a beacon, and lets the draw come first: otherwise the value would never count."""
    until, draw_at = settings.beacon_until, settings.draw_at
    if until is None:
        return
    if not settings.beacon or until.tzinfo is None or (draw_at is not None and until <= draw_at):
        raise Invalid(field="beacon_until", detail="Expected a time after the draw, for a named beacon.")


def _settings(row: Any) -> RoomSettings:
    return RoomSettings(**{name: row[name] for name in RoomSettings.__struct_fields__})


def _entry(show_id: int, action: str, **after: object) -> AuditEntry:
    return AuditEntry(action=action, subject=("show", show_id), show_id=show_id, after=after)
