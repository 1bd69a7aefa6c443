"""/admin/shows/{show}/figures, /admin/events/{event}/figures: how my sales go."""

from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from holdfast.catalogue import NoSuchEvent, NoSuchShow
from holdfast.reports.every_pod import event_sheet, load_event_figures
from holdfast.reports.figures import EventFigures, FiguresQuery, ShowFigures
from holdfast.reports.store import ReportStore
from holdfast.web.caller import Right, Role
from holdfast.web.responses import answer, query
from holdfast.web.routing import RouteTable, get_app, get_scope

NO_STORE = {"Cache-Control": "no-store"}
CSV = "text/csv"
SHOW = "/admin/shows/{show:int}/figures"
EVENT = "/admin/events/{event:int}/figures"
routes = RouteTable(tag="admin", role=Role.ORGANISER, right=Right.MONEY)


@routes.get(SHOW, query=FiguresQuery, answers={200: ShowFigures}, refusals=(NoSuchShow,))
async def get_show_figures(request: Request) -> Response:
    """How the sale of a show goes: sold by minute, how far bookings came, revenue, refunds, who came in."""
    parameters = query(FiguresQuery, request)
    show_id = await _own_show(request)
    return answer(200, await _figures(request).of_show(show_id, parameters.since), NO_STORE)


@routes.get(SHOW + ".csv", answers={200: bytes}, refusals=(NoSuchShow,), media_types=(CSV,))
async def get_show_figures_csv(request: Request) -> Response:
    """Every seat of a show that was ever sold, for a spreadsheet."""
    show_id = await _own_show(request)
    return _sheet(_figures(request).sheet([show_id]), f"show-{show_id}.csv")


@routes.get(EVENT, answers={200: EventFigures}, refusals=(NoSuchEvent,))
async def get_event_figures(request: Request) -> Response:
    """How the sales of all shows of an event go."""
    event_id = request.path_params["event"]
    found = await load_event_figures(get_app(request), event_id, _organiser_id(request))
    return answer(200, found, NO_STORE)


@routes.get(EVENT + ".csv", answers={200: bytes}, refusals=(NoSuchEvent,), media_types=(CSV,))
async def get_event_figures_csv(request: Request) -> Response:
    """Every seat of an event's shows that was ever sold, for a spreadsheet."""
    event_id = request.path_params["event"]
    show_ids = await _figures(request).shows_of(event_id, _organiser_id(request))
    return _sheet(await event_sheet(get_app(request), show_ids), f"event-{event_id}.csv")


def _sheet(pages: AsyncIterator[bytes], name: str) -> Response:
    headers = NO_STORE | {
        "Content-Disposition": f'attachment; filename="{name}"',
        "X-Content-Type-Options": "nosniff",
    }
    return StreamingResponse(pages, headers=headers, media_type=CSV)


def _figures(request: Request) -> ReportStore:
    figures: ReportStore = get_app(request).reports
    return figures


def _organiser_id(request: Request) -> int | None:
    return get_scope(request).organiser_id


async def _own_show(request: Request) -> int:
    show_id: int = request.path_params["show"]
    await get_app(request).catalogue.organiser_show(show_id, _organiser_id(request))
    return show_id


ROUTES = routes.all
