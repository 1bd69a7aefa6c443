"""/desk/{organisation}/door: passes for scanners, their code shown once, and how many people are inside."""

from datetime import UTC, datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.checkin import NewPass, PassPage, load_counts
from holdfast.desk.access import DeskTable, get_desk
from holdfast.desk.frame import render_desk, say_refusal
from holdfast.errors import Invalid, Refusal
from holdfast.site.pages import EmptyForm, read_form, redirect
from holdfast.tickets import svg_url
from holdfast.web.responses import invalid, query
from holdfast.web.routing import get_app, get_scope

SHOWS_LISTED = 40
ShowId = Annotated[int, Meta(ge=1, le=2**63 - 1)]
desk = DeskTable()


class DoorQuery(Struct):
    show: ShowId | Literal[""] = ""
    notice: str = ""


class PassForm(Struct):
    shows: Annotated[list[ShowId], Meta(max_length=20)] = msgspec.field(default_factory=list)
    gate: Annotated[str, Meta(max_length=60)] = ""
    name: Annotated[str, Meta(max_length=120)] = ""


@desk.get("/door", like="list_gate_passes")
async def get_desk_door(request: Request) -> Response:
    """The passes, and the form for a new one."""
    try:
        wanted = query(DoorQuery, request)
    except Invalid:
        wanted = DoorQuery()
    return await _render(request, PassForm(shows=[wanted.show] if wanted.show else []))


@desk.post("/door", like="create_gate_pass")
async def post_pass(request: Request) -> Response:
    """Makes a pass. Its code is on this page alone: it is never shown again."""
    data = await read_form(request, PassForm)
    try:
        given = {"shows": data.shows, "gate": data.gate, "name": data.name or data.gate}
        new = msgspec.convert(given, NewPass)
        made, code = await get_app(request).passes.make(get_scope(request).organiser_id, new)
    except msgspec.ValidationError as error:
        return await _render(request, data, invalid(error))
    except Refusal as refusal:
        return await _render(request, data, refusal)
    drawn = svg_url(code) if code else ""
    return render_desk(request, "pass.html", "door", made=made, code=code, drawn=drawn)


@desk.post("/door/{pass:int}/revoke", like="revoke_gate_pass")
async def post_revoke(request: Request) -> Response:
    """Revokes a pass: its next scan is refused."""
    await read_form(request, EmptyForm)
    await get_app(request).passes.revoke(request.path_params["pass"], get_scope(request).organiser_id)
    return redirect(f"{get_desk(request).path}/door?notice=revoked")


async def _render(request: Request, data: PassForm, refusal: Refusal | None = None) -> Response:
    here, app, now = get_desk(request), get_app(request), datetime.now(UTC)
    shows = await app.reports.shows_of_organiser(here.organisation_id, is_past=False, limit=SHOWS_LISTED)
    found = (await app.passes.of(get_scope(request).organiser_id, None)).passes
    titles = {show.show_id: show.title for show in shows}
    counts = await load_counts(app, [show.show_id for show in shows if show.starts_at.date() <= now.date()])
    return render_desk(
        request,
        "door.html",
        "door",
        status=refusal.status if refusal else 200,
        shows=shows,
        passes=[
            (one, standing_of(one, now), [titles.get(show, f"#{show}") for show in one.shows])
            for one in found
        ],
        counts=[(titles.get(one.show_id, ""), one) for one in counts],
        typed=data,
        problem=say_refusal(request, refusal) if refusal else "",
        notices=("revoked",),
    )


def standing_of(one: PassPage, now: datetime) -> str:
    if one.revoked_at is not None:
        return "revoked"
    if one.ends_at < now:
        return "over"
    return "in_use" if one.has_device else "waiting"
