"""/admin/shows/{show}/queue: the waiting rooms of organisers' shows."""

from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.catalogue import NoSuchShow
from holdfast.waitingroom.editor import RoomEditor, RoomPage
from holdfast.waitingroom.errors import NoQueue, WrongRoomState
from holdfast.waitingroom.room import RoomSettings
from holdfast.web.caller import Right, Role
from holdfast.web.responses import answer, read
from holdfast.web.routing import RouteTable, get_app, get_scope

routes = RouteTable(
    tag="admin",
    prefix="/admin/shows/{show:int}/queue",
    role=Role.ORGANISER,
    right=Right.CATALOGUE,
    answers={200: RoomPage},
    refusals=(NoSuchShow,),
)


class OverrideBody(Struct, forbid_unknown_fields=True, frozen=True):
    reason: Annotated[str, Meta(min_length=1, max_length=500)]  # for the audit log
    lets_everyone_in: bool = True  # false: ends the override


class BeaconBody(Struct, forbid_unknown_fields=True, frozen=True):
    value: Annotated[str, Meta(min_length=1, max_length=500)]  # as published by the beacon


@routes.get(refusals=(NoQueue,), right=Right.MEMBER)
async def get_show_queue(request: Request) -> Response:
    """The waiting room of a show: settings, state, figures, and how good its estimates of waits were."""
    return answer(200, await _editor(request).load(request.path_params["show"]))


@routes.put(body=RoomSettings)
async def set_show_queue(request: Request) -> Response:
    """Create or change the waiting room of a show.

    A change of the beacon counts for the next opening. After a room was closed or drained, another begins.
    """
    settings = read(RoomSettings, await request.body())
    return answer(200, await _editor(request).set(request.path_params["show"], settings))


@routes.post("/open", refusals=(NoQueue, WrongRoomState))
async def open_show_queue(request: Request) -> Response:
    """Open the waiting room now: people can join, and the commitment of the draw is published."""
    return answer(200, await _editor(request).open(request.path_params["show"]))


@routes.post("/close", refusals=(NoQueue, WrongRoomState))
async def close_show_queue(request: Request) -> Response:
    """Close the waiting room: places end, and seats are held without it."""
    return answer(200, await _editor(request).close(request.path_params["show"]))


@routes.post("/override", body=OverrideBody, refusals=(NoQueue, WrongRoomState))
async def override_show_queue(request: Request) -> Response:
    """Let everyone hold seats without a turn, or end that. The reason is recorded in the audit log."""
    body = read(OverrideBody, await request.body())
    editor, show_id = _editor(request), request.path_params["show"]
    page = await editor.override(show_id, lets_everyone_in=body.lets_everyone_in, reason=body.reason)
    return answer(200, page)


@routes.post("/beacon", body=BeaconBody, refusals=(NoQueue, WrongRoomState))
async def set_show_queue_beacon(request: Request) -> Response:
    """Enter the public value that was announced when the room opened.

    The draw waits for it, until the deadline that was published with it, if there is one.
    """
    value = read(BeaconBody, await request.body()).value
    return answer(200, await _editor(request).set_beacon(request.path_params["show"], value))


def _editor(request: Request) -> RoomEditor:
    return get_app(request).room_editor(get_scope(request))


ROUTES = routes.all
