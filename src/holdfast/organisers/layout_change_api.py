"""/admin/shows/{show}/layout: what another layout would change, and taking it over while tickets are sold."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.catalogue import NoSuchShow
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.errors import Busy
from holdfast.layouts import NoSuchLayout, UnknownSeat
from holdfast.organisers.errors import LayoutUnsafe, ShowCancelled
from holdfast.organisers.layout_change import LayoutChanger
from holdfast.organisers.layout_change_forms import LayoutChange, LayoutDiffPage
from holdfast.organisers.scope import Scope
from holdfast.pricing import UnknownCategory, UnpricedCategory
from holdfast.web.caller import Role
from holdfast.web.context import get_app, get_caller
from holdfast.web.responses import answer, read
from holdfast.web.routing import RouteTable

PATH = "/admin/shows/{show:int}/layout"
REFUSALS = (NoSuchShow, NoSuchLayout, UnknownSeat, Busy)
routes = RouteTable(tag="admin", role=Role.ORGANISER)


@routes.post(PATH + "/diff", body=LayoutChange, answers={200: LayoutDiffPage}, refusals=REFUSALS)
async def compare_show_layout(request: Request) -> Response:
    """What another layout would change about a show on sale, seat by seat. Nothing is changed.

    `in_use` are seats that it touches and that somebody holds, has booked, or that are blocked.
    """
    change = read(LayoutChange, await request.body())
    return answer(200, await _relayout(request).compare(request.path_params["show"], change))


@routes.put(
    PATH,
    body=LayoutChange,
    answers={200: LayoutDiffPage},
    refusals=(*REFUSALS, LayoutUnsafe, ShowCancelled, UnpricedCategory, UnknownCategory),
)
async def change_show_layout(request: Request) -> Response:
    """Change the layout of a show on sale, all of it or nothing.

    Seats may be added, renamed, put into another category, or withdrawn from sale for ever; none that
    somebody has. Compare first: what is not safe is refused.
    """
    show_id = request.path_params["show"]
    page = await _relayout(request).take_over(show_id, read(LayoutChange, await request.body()))
    try:
        await get_app(request).seatmap.rebuild(show_id, "changed")
    except EngineDown:  # the change is made; the map follows when Redis is back, before it sells again
        metrics.add("rebuilds_put_off_total")
    return answer(200, page)


def _relayout(request: Request) -> LayoutChanger:
    return get_app(request).layout_change(Scope.of(get_caller(request)))


ROUTES = routes.all
