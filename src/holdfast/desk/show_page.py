"""/desk/{organisation}/shows/{show}, /events/{event}: figures, plots and spreadsheets."""

from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from holdfast.attendees import AttendeeFilter, BookingFilter, BookingQuery
from holdfast.desk.access import DeskTable, get_desk
from holdfast.desk.chart import build_chart
from holdfast.desk.frame import render_desk
from holdfast.organisers import ManagedShow
from holdfast.reports import load_event_figures
from holdfast.site.pages import PRIVATE_HEADERS
from holdfast.web.routing import get_app, get_scope

LATEST_SHOWN = 10
SHOW = "/shows/{show:int}"
desk = DeskTable()


@desk.get(SHOW, like="get_managed_show")
async def get_desk_show(request: Request) -> Response:
    """One show: what was sold, the latest bookings, and what can be done."""
    here, app, show = get_desk(request), get_app(request), await load_show(request)
    timezone = await load_timezone(request)
    figures = await app.reports.of_show(show.id, None) if here.may("get_show_figures") else None
    latest = (
        await app.attendees.search(here.organisation_id, BookingQuery(show=show.id, size=LATEST_SHOWN))
        if here.may("find_bookings")
        else None
    )
    return render_desk(
        request,
        "show.html",
        "shows",
        show=show,
        timezone=timezone,
        figures=figures.figures if figures else None,
        chart=build_chart(figures.minutes, timezone) if figures else None,
        latest=latest,
        blocks=len(await app.blocks.all(show.id)),
        cancellation=await app.refund_store.cancellation(show.id) if show.cancelled else None,
        notices=("saved",),
    )


@desk.get(SHOW + "/attendees.csv", like="export_attendees")
async def get_attendees_file(request: Request) -> Response:
    """The people of a show, for a spreadsheet."""
    show_id = request.path_params["show"]
    organiser_id = get_scope(request).organiser_id
    sheet = await get_app(request).attendees.export_attendees(show_id, organiser_id, AttendeeFilter())
    return send_sheet(sheet, f"attendees-{show_id}.csv")


@desk.get(SHOW + "/bookings.csv", like="export_bookings")
async def get_bookings_file(request: Request) -> Response:
    """The bookings of a show, for a spreadsheet."""
    show_id = request.path_params["show"]
    organiser_id = get_scope(request).organiser_id
    sheet = await get_app(request).attendees.export_bookings(organiser_id, BookingFilter(show=show_id))
    return send_sheet(sheet, f"bookings-{show_id}.csv")


@desk.get("/events/{event:int}", like="get_event_figures")
async def get_desk_event(request: Request) -> Response:
    """All shows of an event together."""
    event_id = request.path_params["event"]
    found = await load_event_figures(get_app(request), event_id, get_scope(request).organiser_id)
    away = found.missing_pods
    return render_desk(request, "event.html", "shows", event=found, figures=found.figures, missing_pods=away)


async def load_show(request: Request) -> ManagedShow:
    """One of the organisation's own; any other does not exist."""
    show: ManagedShow = (
        await get_app(request).show_editor(get_scope(request)).show(request.path_params["show"])
    )
    return show


async def load_timezone(request: Request) -> str:
    return str((await get_app(request).catalogue.show_detail(request.path_params["show"]))["timezone"])


def send_sheet(sheet: AsyncIterator[bytes], name: str) -> Response:
    headers = {**PRIVATE_HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(sheet, headers=headers, media_type="text/csv")
