"""/desk/{organisation}/shows/{show}/waitlist: who waits for seats, and what became of their offers."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.desk.access import DeskTable
from holdfast.desk.frame import render_desk
from holdfast.errors import Invalid
from holdfast.waitlist import EntryState, PartiesQuery
from holdfast.web.responses import query
from holdfast.web.routing import get_app, get_scope

desk = DeskTable()


@desk.get("/shows/{show:int}/waitlist", like="list_waitlist")
async def get_desk_waitlist(request: Request) -> Response:
    """Counts by state, and the parties in the order of joining."""
    app = get_app(request)
    show = await app.catalogue.organiser_show(request.path_params["show"], get_scope(request).organiser_id)
    try:
        wanted = query(PartiesQuery, request)
    except Invalid:
        wanted = PartiesQuery()
    found = await app.waitlists.parties(show, wanted)
    return render_desk(
        request,
        "waitlist.html",
        "shows",
        show=show,
        timezone=(await app.catalogue.show_detail(show.show_id))["timezone"],
        found=found,
        wanted=wanted,
        states=list(EntryState),
    )
