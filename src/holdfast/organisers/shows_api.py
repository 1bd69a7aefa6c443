"""/admin/shows: create and change shows, their price rules and their layouts."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.catalogue import BadWindow, NoSuchEvent, NoSuchHall, NoSuchShow
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.errors import Busy
from holdfast.layouts import LayoutInUse, NoSuchLayout, UnknownSeat
from holdfast.organisers.errors import HallBusy, LayoutUnsafe, ShowCancelled, SomethingSold
from holdfast.organisers.layout_change import LayoutChanger
from holdfast.organisers.price_rules_store import PriceRulesStore
from holdfast.organisers.show_forms import (
    LayoutChange,
    LayoutDiffPage,
    ManagedShow,
    NewShow,
    PricePlan,
    ShowChange,
    ShowList,
    ShowsQuery,
)
from holdfast.organisers.shows_store import ShowEditor
from holdfast.payments import GatewayMissing
from holdfast.pods import ShowElsewhere
from holdfast.pricing import (
    BadPriceRules,
    FeeTooHigh,
    PricedByRules,
    PriceRules,
    RulesPreview,
    UnknownCategory,
    UnpricedCategory,
)
from holdfast.web.caller import Right, Role
from holdfast.web.responses import answer, query, read
from holdfast.web.routing import RouteTable, get_app, get_scope

CREATE_REFUSALS = (
    NoSuchEvent,
    NoSuchHall,
    HallBusy,
    BadWindow,
    UnknownCategory,
    UnpricedCategory,
    FeeTooHigh,
    GatewayMissing,
)
CHANGE_REFUSALS = (NoSuchShow, NoSuchLayout, LayoutInUse, ShowCancelled, PricedByRules)
routes = RouteTable(
    tag="admin",
    prefix="/admin/shows",
    role=Role.ORGANISER,
    right=Right.CATALOGUE,
    refusals=CREATE_REFUSALS + CHANGE_REFUSALS,
)

PRICE_FIELDS = {"prices", "fee_minor", "fee_bp", "tax_bp", "refund_policy"}
RULES_PATH = "/admin/shows/{show:int}/price-rules"
BAD_RULES = (BadPriceRules, UnknownCategory, FeeTooHigh)
price_rules = RouteTable(tag="admin", role=Role.ORGANISER, right=Right.PRICES)

LAYOUT_PATH = "/admin/shows/{show:int}/layout"
LAYOUT_REFUSALS = (NoSuchShow, NoSuchLayout, UnknownSeat, Busy, ShowElsewhere)
layouts = RouteTable(tag="admin", role=Role.ORGANISER, right=Right.CATALOGUE)


@routes.post(body=NewShow, answers={201: ManagedShow})
async def create_show(request: Request) -> Response:
    """Schedule an event in a hall, with a price for every category of its layout.

    Prices include the fee and the tax. The sale opens and closes automatically. It needs the right `prices`
    as well.
    """
    get_scope(request).require(Right.PRICES)
    show = await _show_editor(request).add_show(read(NewShow, await request.body()))
    get_app(request).catalogue.clear_cached_responses()
    return answer(201, show)


@routes.patch("/{show:int}", body=ShowChange, answers={200: ManagedShow})
async def update_show(request: Request) -> Response:
    """Change a show: its times, its sale window, prices, terms, limits; or cancel it.

    Seats that are already held or booked keep their price and terms. The layout can be replaced by one that
    was uploaded with `grows_from`. Prices and terms need the right `prices`, cancelling the right `refund`.
    """
    change = read(ShowChange, await request.body())
    if PRICE_FIELDS & change.given().keys():
        get_scope(request).require(Right.PRICES)
    if change.given().get("cancelled"):
        get_scope(request).require(Right.REFUND)
    show = await _show_editor(request).change_show(request.path_params["show"], change)
    try:
        await get_app(request).seatmap.rebuild(show.id, "changed")
    except EngineDown:  # committed; the map is rebuilt when Redis is back, before it sells again
        metrics.add("rebuilds_put_off_total")
    return answer(200, show)


@routes.delete("/{show:int}", answers={204: None}, refusals=(SomethingSold, Busy))
async def delete_show(request: Request) -> Response:
    """Delete a show, while nothing is sold, held or being paid for.

    Of a first hold and a deletion at the same time one wins: the show is sold or deleted, never both. A show
    that has sold can be unpublished, or cancelled.
    """
    app = get_app(request)
    await app.catalogue_remover(get_scope(request)).delete_show(request.path_params["show"])
    return answer(204)


@routes.get("/{show:int}", answers={200: ManagedShow}, right=Right.MEMBER)
async def get_managed_show(request: Request) -> Response:
    """One of your shows."""
    return answer(200, await _show_editor(request).show(request.path_params["show"]))


@routes.get(query=ShowsQuery, answers={200: ShowList}, right=Right.MEMBER)
async def list_managed_shows(request: Request) -> Response:
    """Your shows, or those of one event, ordered by start time."""
    total, shows = await _show_editor(request).shows(query(ShowsQuery, request))
    return answer(200, ShowList(total=total, shows=shows))


def _show_editor(request: Request) -> ShowEditor:
    return get_app(request).show_editor(get_scope(request))


@price_rules.get(RULES_PATH, answers={200: PricePlan}, refusals=(NoSuchShow, Busy))
async def get_price_rules(request: Request) -> Response:
    """The price rules of one of your shows, its current prices, and the latest price changes."""
    return answer(200, await _rules_store(request).plan(request.path_params["show"]))


@price_rules.post(
    RULES_PATH + "/preview",
    body=PriceRules,
    answers={200: RulesPreview},
    refusals=(NoSuchShow, Busy, *BAD_RULES),
)
async def preview_price_rules(request: Request) -> Response:
    """Preview price rules without storing them.

    For each category: the price that buyers would see at once, and a table of prices by time and share sold.
    """
    rules = read(PriceRules, await request.body())
    return answer(200, await _rules_store(request).preview(request.path_params["show"], rules))


@price_rules.put(
    RULES_PATH,
    body=PriceRules,
    answers={200: PricePlan},
    refusals=(NoSuchShow, ShowCancelled, Busy, GatewayMissing, *BAD_RULES),
)
async def set_price_rules(request: Request) -> Response:
    """Set the price rules of a show; they apply at once.

    They replace the previous rules. Seats that are held or booked keep their price. A category that loses
    its rule returns to its base price.
    """
    rules = read(PriceRules, await request.body())
    return answer(200, await _rules_store(request).put(request.path_params["show"], rules))


@price_rules.delete(RULES_PATH, answers={200: PricePlan}, refusals=(NoSuchShow, Busy))
async def delete_price_rules(request: Request) -> Response:
    """Remove the price rules: every category returns to its base price."""
    return answer(200, await _rules_store(request).remove(request.path_params["show"]))


def _rules_store(request: Request) -> PriceRulesStore:
    return get_app(request).price_rules(get_scope(request))


@layouts.post(
    LAYOUT_PATH + "/diff", body=LayoutChange, answers={200: LayoutDiffPage}, refusals=LAYOUT_REFUSALS
)
async def compare_show_layout(request: Request) -> Response:
    """Compare another layout with that of a show on sale, seat by seat. Nothing is changed.

    `in_use` lists the affected seats that are held, booked or blocked.
    """
    change = read(LayoutChange, await request.body())
    return answer(200, await _layout_changer(request).compare(request.path_params["show"], change))


@layouts.put(
    LAYOUT_PATH,
    body=LayoutChange,
    answers={200: LayoutDiffPage},
    refusals=(
        *LAYOUT_REFUSALS,
        LayoutUnsafe,
        ShowCancelled,
        UnpricedCategory,
        UnknownCategory,
        GatewayMissing,
    ),
)
async def change_show_layout(request: Request) -> Response:
    """Change the layout of a show on sale, all of it or nothing.

    Seats may be added, renamed, moved to another category, or withdrawn permanently, unless they are held,
    booked or blocked. Compare first: an unsafe change is refused.
    """
    show_id, change = request.path_params["show"], read(LayoutChange, await request.body())
    if change.given().get("prices"):
        get_scope(request).require(Right.PRICES)
    page, app = await _layout_changer(request).apply(show_id, change), get_app(request)
    app.catalogue.forget(show_id)  # of a pod: home's has forgotten it
    app.catalogue.clear_cached_responses()
    try:
        await app.seatmap.rebuild(show_id, "changed")
    except EngineDown:  # committed; the map is rebuilt when Redis is back, before it sells again
        metrics.add("rebuilds_put_off_total")
    return answer(200, page)


def _layout_changer(request: Request) -> LayoutChanger:
    return get_app(request).layout_change(get_scope(request))


ROUTES = (*routes.all, *price_rules.all, *layouts.all)
