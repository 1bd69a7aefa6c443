"""A show with a waiting room, its organiser, its job, and time that passes in its rows."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.app import App
from holdfast.waitingroom import RoomEditor, RoomSettings, RoomState
from holdfast.waitingroom.jobs import RoomJobs
from holdfast.web.caller import Scope

FAST: dict[str, Any] = {"inside_max": 1000, "per_minute_max": 100_000}
ADMIN = Scope(1, is_admin=True)
PASS_TIME = """
WITH moved AS (
    UPDATE queue_turn
       SET called_at = called_at - $2 * interval '1 s', ends_at = ends_at - $2 * interval '1 s',
           redeemed_at = redeemed_at - $2 * interval '1 s', ended_at = ended_at - $2 * interval '1 s',
           freed_at = freed_at - $2 * interval '1 s'
     WHERE show_id = $1
), logged AS (
    UPDATE queue_log SET at = at - $2 * interval '1 s' WHERE show_id = $1
)
UPDATE queue
   SET opened_at = opened_at - $2 * interval '1 s', drawn_at = drawn_at - $2 * interval '1 s',
       called_at = called_at - $2 * interval '1 s'
 WHERE show_id = $1
"""


@dataclass(frozen=True)
class Room:
    app: App
    show_id: int

    @property
    def editor(self) -> RoomEditor:
        return self.app.room_editor(ADMIN)

    async def step(self) -> int:
        """What the job does in a second; how many people it called."""
        return await RoomJobs(self.app.postgres, self.app.bookings).step_room(self.show_id)

    async def draw(self) -> None:
        """The time of the draw is now, and this process draws."""
        await self.draw_by_worker()
        await self.step()
        await self.refresh()

    async def draw_by_worker(self) -> None:
        """The time of the draw is now; another process draws, whatever is killed in this moment."""
        await self.app.postgres.execute(
            "UPDATE waiting_room SET draw_at = now() WHERE show_id = $1", self.show_id
        )

    async def is_admitting(self) -> bool:
        await self.refresh()
        status = await self.app.waiting_rooms.status(self.show_id)
        return status is not None and status.state is RoomState.ADMITTING

    async def admit(self, seconds: float = 60) -> int:
        """After so many seconds, the job calls people."""
        await self.pass_time(seconds)
        called = await self.step()
        await self.refresh()
        return called

    async def pass_time(self, seconds: float) -> None:
        """Everything in the room is that much older."""
        await self.app.postgres.execute(PASS_TIME, self.show_id, seconds)

    async def refresh(self) -> None:
        """This process reads the room again; others do so within two seconds."""
        self.app.waiting_rooms.forget(self.show_id)
        await self.app.waiting_rooms.guard.refresh()


async def a_room(app: App, show_id: int, *, is_open: bool = True, **settings: Any) -> Room:
    """Open, with a draw in an hour, unless a test says otherwise."""
    room = Room(app, show_id)
    given = FAST | {"draw_at": datetime.now(UTC) + timedelta(hours=1)} | settings
    await room.editor.set(show_id, RoomSettings(**given))
    if is_open:
        await room.editor.open(show_id)
    return room
