"""GET /shows/{show}/queue/stream: the status of a waiting room as server-sent events.

For people near the front: others poll. A status is read once per second and process, however many people
follow it. Streams count towards the limits of live maps.
"""

import asyncio
from dataclasses import dataclass

import msgspec
from starlette.types import Message, Receive, Scope, Send

from holdfast.catalogue import NoSuchShow
from holdfast.engines.errors import EngineDown
from holdfast.seatmap import LiveMaps, TooManyStreams, TooManyViewers
from holdfast.waitingroom.errors import NoQueue
from holdfast.waitingroom.room import RoomStatus
from holdfast.waitingroom.store import WaitingRooms
from holdfast.web.routing import RouteTable, scope_app

EVENT_STREAM = "text/event-stream"
START: Message = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        (b"content-type", EVENT_STREAM.encode()),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),  # nginx passes on what comes, when it comes
    ],
}
PAUSE_S = 1.0
HEARTBEAT_PAUSES = 15
HEARTBEAT = b": still here\n\n"
routes = RouteTable(tag="queue")


@routes.stream(
    "/shows/{show:int}/queue/stream",
    answers={200: RoomStatus},
    refusals=(NoSuchShow, NoQueue, TooManyViewers, TooManyStreams),
    media_types=(EVENT_STREAM,),
)
async def stream_queue(scope: Scope, receive: Receive, send: Send) -> None:
    """The waiting room as server-sent events: a `queue` event with the whole status whenever it changes."""
    app, show_id = scope_app(scope), scope["path_params"]["show"]
    await app.catalogue.public_show(show_id)
    status = await app.waiting_rooms.status(show_id)
    if status is None:
        raise NoQueue
    address = (scope.get("client") or ("", 0))[0]
    app.live.take_place(address)
    try:
        await send(START)
        await send(_piece(encode_event(status)))
        follower = Follower(app.waiting_rooms, app.live, status)
        await follower.send_changes(receive, send)
    finally:
        app.live.give_place_back(address)


@dataclass(slots=True)
class Follower:
    """One person who follows a room."""

    rooms: WaitingRooms
    live: LiveMaps
    last: RoomStatus

    async def send_changes(self, receive: Receive, send: Send) -> None:
        """Until the client goes away, or the process stops."""
        gone = asyncio.create_task(_wait_until_gone(receive))
        quiet = 0
        try:
            while not self.live.is_draining:
                await asyncio.wait({gone}, timeout=PAUSE_S)
                if gone.done():
                    return
                event = await self._find_event()
                quiet = 0 if event else quiet + 1
                if event or quiet % HEARTBEAT_PAUSES == 0:
                    await send(_piece(event or HEARTBEAT))
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()

    async def _find_event(self) -> bytes:
        """Empty: nothing has changed, or the ledger is away for a moment."""
        try:
            status = await self.rooms.status(self.last.show_id)
        except EngineDown:
            return b""
        if status is None or msgspec.structs.replace(status, now=self.last.now) == self.last:
            return b""
        self.last = status
        return encode_event(status)


def encode_event(status: RoomStatus) -> bytes:
    return b"event: queue\ndata: " + msgspec.json.encode(status) + b"\n\n"


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


def _piece(body: bytes) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": True}


ROUTES = routes.all
