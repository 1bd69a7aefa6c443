"""/admin/shows: when an event plays, for how much, and when its tickets are sold."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.catalogue import BadWindow, NoSuchEvent, NoSuchHall, NoSuchShow
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.layouts import LayoutInUse, NoSuchLayout
from holdfast.organisers.errors import HallBusy, ShowCancelled
from holdfast.organisers.scope import Scope
from holdfast.organisers.show_forms import ManagedShow, NewShow, ShowChange, ShowList, ShowsQuery
from holdfast.organisers.shows_store import ShowEditor
from holdfast.pricing import FeeTooHigh, PricedByRules, UnknownCategory, UnpricedCategory
from holdfast.web.caller import Role
from holdfast.web.context import get_app, get_caller
from holdfast.web.responses import answer, query, read
from holdfast.web.routing import RouteTable

MAKING = (NoSuchEvent, NoSuchHall, HallBusy, BadWindow, UnknownCategory, UnpricedCategory, FeeTooHigh)
CHANGING = (NoSuchShow, NoSuchLayout, LayoutInUse, ShowCancelled, PricedByRules)
routes = RouteTable(tag="admin", prefix="/admin/shows", role=Role.ORGANISER, refusals=MAKING + CHANGING)


@routes.post(body=NewShow, answers={201: ManagedShow}, keyed=True)
async def create_show(request: Request) -> Response:
    """Put an event on in a hall, with a price for every category of its layout.

    Prices are all-in; fee and tax are parts of them. The sale opens and closes by itself.
    """
    show = await _schedule(request).add_show(read(NewShow, await request.body()))
    get_app(request).catalogue.forget_pages()
    return answer(201, show)


@routes.patch("/{show:int}", body=ShowChange, answers={200: ManagedShow})
async def update_show(request: Request) -> Response:
    """Change a show: its times, its sale window, prices, terms, limits; or cancel it.

    Seats already held or booked keep the price and the terms they have. The layout can be replaced by one
    that grows from it.
    """
    change = read(ShowChange, await request.body())
    show = await _schedule(request).change_show(request.path_params["show"], change)
    try:
        await get_app(request).seatmap.rebuild(show.id, "changed")
    except EngineDown:  # the change is made; the map follows when Redis is back, before it sells again
        metrics.add("rebuilds_put_off_total")
    return answer(200, show)


@routes.get("/{show:int}", answers={200: ManagedShow})
async def get_managed_show(request: Request) -> Response:
    """One show of yours."""
    return answer(200, await _schedule(request).show(request.path_params["show"]))


@routes.get(query=ShowsQuery, answers={200: ShowList})
async def list_managed_shows(request: Request) -> Response:
    """Your shows, or those of one event, by time."""
    total, shows = await _schedule(request).shows(query(ShowsQuery, request))
    return answer(200, ShowList(total=total, shows=shows))


def _schedule(request: Request) -> ShowEditor:
    return get_app(request).show_editor(Scope.of(get_caller(request)))


ROUTES = routes.all
