"""GET /shows/{show}/seats/stream: every change of a map as server-sent events. docs/live.md is for clients.

A bare ASGI callable, and a small object a viewer. Its task waits for the viewer to go away and does nothing
else: the feed writes to all viewers in one go (`push`).
"""

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any, cast

import structlog
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from holdfast.catalogue import NoSuchShow
from holdfast.engines.metrics import metrics
from holdfast.errors import Busy
from holdfast.seatmap.errors import TooManyStreams, TooManyViewers
from holdfast.seatmap.feed import Feed
from holdfast.seatmap.live import LiveMaps, retry
from holdfast.web.responses import query
from holdfast.web.routing import BIGINT_MAX, RouteTable, scope_app

log = structlog.get_logger(__name__)

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
GOODBYE_S = 5.0  # for a viewer that was cut off to take what it has been sent
routes = RouteTable(tag="seat map")


class StreamQuery(Struct, forbid_unknown_fields=True, frozen=True):
    # the last version seen, for clients that cannot send Last-Event-ID
    since: Annotated[int, Meta(ge=0, le=BIGINT_MAX)] = 0


class SeatEvents(Struct, frozen=True):
    """The data of both events; a change has `changes`, a snapshot `layout` and `states`."""

    version: int  # the same as the id of the event; it never goes back
    changes: list[tuple[int, str]] = []
    layout: str = ""
    states: str = ""


class Stream:
    """One viewer."""

    __slots__ = (
        "_backlog_max",
        "_catching_up",
        "_has_begun",
        "_last",
        "_send",
        "_size",
        "_task",
        "_waiting",
        "since",
    )

    def __init__(self, send: Send, since: int, backlog_max: int) -> None:
        self.since = since
        self._send = send
        self._task = asyncio.current_task()
        self._backlog_max = backlog_max
        self._waiting: list[bytes] | None = []  # None: nothing waits, and what is pushed is sent at once
        self._has_begun = False
        self._size = 0  # of what waits or is being sent
        self._last: bytes | None = None  # once it is over: the last words
        self._catching_up: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        return self._last is not None

    def push(self, body: bytes) -> None:
        """Sent at once if the viewer's network takes it, else queued until it does."""
        if self.is_over:
            return
        if self._waiting is not None:
            self._keep(body)
            return
        # The server's send writes and is done, or waits for the network before it writes: it is run by hand
        # up to there, because a task a viewer and a change would cost more than all the rest.
        sending = cast(Coroutine[Any, Any, None], self._send(_piece(body)))
        try:
            sending.send(None)
        except StopIteration:
            return
        except Exception:
            log.exception("a viewer could not be written to")
            self.end(b"")
            return
        sending.close()
        self._waiting = []
        self._keep(body)
        self._catching_up = asyncio.create_task(self.catch_up())

    async def catch_up(self) -> None:
        """Send what waits, until nothing does."""
        while self._waiting:
            body = b"".join(self._waiting)
            self._waiting = []
            await self._send(_piece(body))
            self._size -= len(body)
        self._waiting = None

    async def begin(self, first: bytes) -> None:
        await self._send(START)
        self._has_begun = True
        await self._send(_piece(first))
        await self.catch_up()

    def end(self, last: bytes) -> None:
        """From outside: no more for this viewer, but these last words."""
        if not self.is_over and self._task is not None:
            self._last, self._waiting, self._size = last, [], 0
            self._task.cancel()

    async def say_goodbye(self) -> None:
        """End the response. A viewer that does not read it in time is left to the server."""
        if not self._has_begun:
            raise Busy(retry_after_s=1)
        self.stop()
        try:
            async with asyncio.timeout(GOODBYE_S):
                await self._send({"type": "http.response.body", "body": self._last or b""})
        except TimeoutError:
            return

    def stop(self) -> None:
        if self._catching_up is not None:
            self._catching_up.cancel()

    def _keep(self, body: bytes) -> None:
        assert self._waiting is not None
        self._waiting.append(body)
        self._size += len(body)
        if self._backlog_max < self._size > len(body):  # a whole map alone may be longer
            metrics.add("viewers_cut_total")
            self.end(b"")


@routes.stream(
    "/shows/{show:int}/seats/stream",
    query=StreamQuery,
    answers={200: SeatEvents},
    refusals=(NoSuchShow, TooManyViewers, TooManyStreams),
    media_types=(EVENT_STREAM,),
)
async def stream_seats(scope: Scope, receive: Receive, send: Send) -> None:
    """Every change of a show's seats, as server-sent events.

    First a `snapshot` with the state of every seat, then a `change` for every step of the version, which is
    the id of the event. With `Last-Event-ID` or `?since=` the stream goes on from there, if it still can, and
    begins with a `snapshot` if it cannot. After a rebuild of the map there is a `snapshot`, too.
    """
    app, show_id = scope_app(scope), scope["path_params"]["show"]
    params = query(StreamQuery, Request(scope))
    since = _last_event_id(scope["state"]["headers"]) or params.since
    live: LiveMaps = app.live
    address = (scope.get("client") or ("", 0))[0]
    await app.catalogue.public_show(show_id)
    number = live.take_place(address)
    try:
        feed = await live.watch(show_id, since)
        await _watch(live, feed, Stream(send, since, app.config.viewer_backlog_bytes_max), receive, number)
    finally:
        live.give_place_back(address)


async def _watch(live: LiveMaps, feed: Feed, viewer: Stream, receive: Receive, number: int) -> None:
    try:
        await viewer.begin(retry(number) + live.join(feed, viewer))
        while (await receive())["type"] != "http.disconnect":
            continue
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if not viewer.is_over or task is None:  # the server's own wish
            raise
        task.uncancel()
        live.leave(feed, viewer)
        await viewer.say_goodbye()
    finally:
        live.leave(feed, viewer)
        viewer.stop()


def _piece(body: bytes) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": True}


def _last_event_id(headers: dict[bytes, bytes]) -> int:
    """0 when there is none; a malformed one is ignored, so that the browser still gets its map."""
    sent = headers.get(b"last-event-id", b"")
    return int(sent) if sent.isdigit() and len(sent) <= 18 else 0


ROUTES = routes.all
