"""/desk/{organisation}/shows/{show}/queue: the waiting room of a show: settings, live state, switches."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from msgspec import Meta, Struct, ValidationError, convert
from starlette.requests import Request
from starlette.responses import Response

from holdfast.desk.access import DeskTable, get_desk
from holdfast.desk.frame import render_desk, say_refusal
from holdfast.desk.show_page import load_show, load_timezone
from holdfast.errors import Invalid, Refusal
from holdfast.fields import ONE_LINE
from holdfast.site.pages import get_localiser, read_form, redirect
from holdfast.waitingroom import NoQueue, RoomEditor, RoomPage, RoomSettings, RoomState
from holdfast.web.responses import invalid
from holdfast.web.routing import get_app, get_scope

PATH = "/shows/{show:int}/queue"
REFRESH_S = 5
AT_WORK = frozenset({RoomState.OPEN, RoomState.ADMITTING, RoomState.OVERRIDDEN})
Number = Annotated[str, Meta(max_length=7)]
LocalTime = Annotated[str, Meta(max_length=20)]  # 2026-11-20T10:00, where the show is
desk = DeskTable()


class RoomForm(Struct):
    opens_at: LocalTime = ""
    draw_at: LocalTime = ""
    inside_max: Number = ""
    per_minute_max: Number = ""
    turn_s: Number = ""
    window_s: Number = ""
    beacon: Annotated[str, Meta(max_length=200)] = ""
    opens_above_holds_per_second: Number = ""
    opens_above_viewers: Number = ""
    beacon_until: LocalTime = ""


class SwitchForm(Struct):
    """A switch of the room: no one opens or closes one by a slip."""

    confirmed: bool = False
    reason: Annotated[str, Meta(max_length=500, pattern=ONE_LINE)] = ""


class BeaconForm(Struct):
    value: Annotated[str, Meta(max_length=500, pattern=ONE_LINE)] = ""


TIMES = ("opens_at", "draw_at", "beacon_until")


@desk.get(PATH, like="get_show_queue")
async def get_desk_queue(request: Request) -> Response:
    """Settings and live state; for a show without a room, the form that gives it one."""
    return await _render(request)


@desk.post(PATH, like="set_show_queue")
async def post_desk_queue(request: Request) -> Response:
    """Saves the settings."""
    data, show = await read_form(request, RoomForm), await load_show(request)
    try:
        await _editor(request).set(show.id, _parse_settings(data, await load_timezone(request)))
    except Refusal as refusal:
        return await _render(request, _as_typed(data), _say(request, refusal))
    return redirect(f"{_path(request)}?notice=queue_saved")


@desk.post(PATH + "/open", like="open_show_queue")
async def post_open(request: Request) -> Response:
    return await _switch(request, "open")


@desk.post(PATH + "/close", like="close_show_queue")
async def post_close(request: Request) -> Response:
    return await _switch(request, "close")


@desk.post(PATH + "/override", like="override_show_queue")
async def post_override(request: Request) -> Response:
    """Lets everyone in without a turn."""
    return await _switch(request, "override")


@desk.post(PATH + "/resume", like="override_show_queue")
async def post_resume(request: Request) -> Response:
    """Ends that: seats are sold by turns again."""
    return await _switch(request, "resume")


@desk.post(PATH + "/beacon", like="set_show_queue_beacon")
async def post_beacon(request: Request) -> Response:
    """Enters the public value that was announced when the room opened."""
    data, show = await read_form(request, BeaconForm), await load_show(request)
    try:
        if not data.value:
            raise Invalid(field="value", detail="Expected a value.")
        await _editor(request).set_beacon(show.id, data.value)
    except Refusal as refusal:
        return await _render(request, problem=_say(request, refusal))
    return redirect(f"{_path(request)}?notice=queue_changed")


async def _switch(request: Request, what: str) -> Response:
    data, show = await read_form(request, SwitchForm), await load_show(request)
    needs_reason = what in ("override", "resume")
    if not data.confirmed or (needs_reason and not data.reason):
        return await _render(request, problem=get_localiser(request).t("desk.queue_unconfirmed"))
    editor = _editor(request)
    try:
        match what:
            case "open":
                await editor.open(show.id)
            case "close":
                await editor.close(show.id)
            case _:
                lets_in = what == "override"
                await editor.override(show.id, lets_everyone_in=lets_in, reason=data.reason)
    except Refusal as refusal:
        return await _render(request, problem=_say(request, refusal))
    return redirect(f"{_path(request)}?notice=queue_changed")


def _parse_settings(data: RoomForm, zone: str) -> RoomSettings:
    """Empty fields keep their defaults."""
    given: dict[str, Any] = {name: value for name, value in _as_typed(data).items() if value != ""}
    try:
        for name in TIMES:
            if name in given:
                given[name] = datetime.fromisoformat(given[name]).replace(tzinfo=ZoneInfo(zone))
    except ValueError:
        raise Invalid(field="opens_at", detail="Expected a date and a time.") from None
    try:
        return convert(given, RoomSettings, strict=False)
    except ValidationError as error:
        raise invalid(error) from None


def _as_typed(data: RoomForm) -> dict[str, str]:
    return {name: getattr(data, name) for name in RoomForm.__struct_fields__}


def _typed_settings(settings: RoomSettings, zone: str) -> dict[str, str]:
    """As the fields of the form have them."""
    typed = {name: getattr(settings, name) for name in RoomSettings.__struct_fields__}
    local = {
        name: at.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%dT%H:%M") if (at := typed[name]) else ""
        for name in TIMES
    }
    return {**{name: str(value) for name, value in typed.items()}, **local}


def _say(request: Request, refusal: Refusal) -> str:
    if isinstance(refusal, Invalid) and refusal.details.get("field") in TIMES:
        return get_localiser(request).t("desk.queue_wrong_time")
    return say_refusal(request, refusal)


async def _load_room(request: Request) -> RoomPage | None:
    try:
        room: RoomPage = await _editor(request).load(int(request.path_params["show"]))
    except NoQueue:
        return None
    return room


async def _render(request: Request, typed: Mapping[str, str] | None = None, problem: str = "") -> Response:
    show, zone, room = await load_show(request), await load_timezone(request), await _load_room(request)
    return render_desk(
        request,
        "queue.html",
        "shows",
        status=422 if problem else 200,
        show=show,
        timezone=zone,
        room=room,
        typed=typed or _typed_settings(room.settings if room is not None else RoomSettings(), zone),
        problem=problem,
        refresh_s=REFRESH_S if room is not None and room.status.state in AT_WORK and not problem else 0,
        notices=("queue_saved", "queue_changed"),
    )


def _editor(request: Request) -> RoomEditor:
    editor: RoomEditor = get_app(request).room_editor(get_scope(request))
    return editor


def _path(request: Request) -> str:
    return f"{get_desk(request).path}/shows/{request.path_params['show']}/queue"
