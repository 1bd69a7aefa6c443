"""/desk: where the work of a role is; an organisation's shows with their sales."""

from typing import Annotated, Literal

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.desk.access import OF_HOUSE, DeskTable, get_desk
from holdfast.desk.frame import render_desk
from holdfast.errors import Invalid
from holdfast.reports import load_show_lines
from holdfast.site.pages import redirect
from holdfast.web.caller import Role
from holdfast.web.responses import query
from holdfast.web.routing import get_app

SHOWS_SHOWN = 25
start = DeskTable("/desk")
desk = DeskTable()


class ShowsPageQuery(Struct):
    when: Literal["", "past"] = ""
    page: Annotated[int, Meta(ge=1, le=1000)] = 1
    notice: str = ""


@start.get("", like=())
async def get_desk_start(request: Request) -> Response:
    """To the only desk a person has, or to choose one."""
    here = get_desk(request)
    if here.session.role is Role.ADMIN and not here.organisations:
        return redirect(OF_HOUSE)
    if len(here.organisations) == 1 and here.session.role is not Role.ADMIN:
        return redirect(f"/desk/{here.organisations[0].organisation_id}")
    if not here.organisations and here.session.role is Role.FAN:
        return redirect("/my")
    return render_desk(request, "start.html", "")


@desk.get("", like="list_managed_shows")
async def get_desk_home(request: Request) -> Response:
    """The organisation's shows, with what was sold of them."""
    try:
        wanted = query(ShowsPageQuery, request)
    except Invalid:
        wanted = ShowsPageQuery()
    found, away = await load_show_lines(
        get_app(request),
        get_desk(request).organisation_id,
        is_past=wanted.when == "past",
        limit=SHOWS_SHOWN + 1,
        start=(wanted.page - 1) * SHOWS_SHOWN,
    )
    return render_desk(
        request,
        "home.html",
        "shows",
        shows=found[:SHOWS_SHOWN],
        wanted=wanted,
        missing_pods=away,
        has_more=len(found) > SHOWS_SHOWN,
        notices=("joined",),
    )
