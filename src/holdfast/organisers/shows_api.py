"""/admin/shows: when an event plays, for how much, and when its tickets are sold."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.errors import (
    BadWindow,
    HallBusy,
    LayoutInUse,
    NoSuchEvent,
    NoSuchHall,
    NoSuchLayout,
    NoSuchShow,
    Refusal,
    ShowCancelled,
    UnknownCategory,
    UnpricedCategory,
)
from holdfast.organisers.scope import Scope
from holdfast.organisers.show_forms import KeptShow, NewShow, ShowChange, ShowList, ShowsAsked
from holdfast.organisers.shows_store import ShowEditor
from holdfast.pricing import FeeTooHigh, PricedByRules
from holdfast.web.caller import Role
from holdfast.web.context import get_app, get_caller
from holdfast.web.responses import answer, query, read
from holdfast.web.routing import Call, Route


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Routes about one sort of thing. A POST is keyed; who may not see a thing is told it is not there."""

    path: str
    role: Role = Role.ORGANISER
    refusals: tuple[type[Refusal], ...] = ()

    def get(self, call: Call, told: type, *, path: str = "", query: type | None = None) -> Route:
        return self._route("GET", call, told, path=path, query=query)

    def post(
        self, call: Call, told: type, *, path: str = "", bytes_max: int = 0, **takes: type | None
    ) -> Route:
        return self._route("POST", call, told, path=path, bytes_max=bytes_max, **takes)

    def patch(self, call: Call, told: type, *, path: str, body: type) -> Route:
        return self._route("PATCH", call, told, path=path, body=body)

    def _route(
        self, method: str, call: Call, told: type, *, path: str, bytes_max: int = 0, **takes: type | None
    ) -> Route:
        return Route(
            method=method,
            path=f"/admin/{self.path}{path}",
            tag="admin",
            call=call,
            answers={201 if method == "POST" else 200: told},
            refusals=self.refusals,
            role=self.role,
            keyed=method == "POST",
            body=takes.get("body"),
            query=takes.get("query"),
            body_bytes_max=bytes_max,
            long_numbers=bytes_max > 0,  # a layout, full of coordinates
        )


async def post_show(request: Request) -> Response:
    """Put an event on in a hall, with a price for every category of its layout.

    Prices are all-in; fee and tax are parts of them. The sale opens and closes by itself.
    """
    show = await _schedule(request).add_show(read(NewShow, await request.body()))
    get_app(request).catalogue.forget_pages()
    return answer(201, show)


async def patch_show(request: Request) -> Response:
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


async def get_kept_show(request: Request) -> Response:
    """One show of yours."""
    return answer(200, await _schedule(request).show(request.path_params["show"]))


async def list_shows(request: Request) -> Response:
    """Your shows, or those of one event, by time."""
    total, shows = await _schedule(request).shows(query(ShowsAsked, request))
    return answer(200, ShowList(total=total, shows=shows))


def _schedule(request: Request) -> ShowEditor:
    app = get_app(request)
    return ShowEditor(app.postgres, app.catalogue, app.config, Scope.of(get_caller(request)))


MAKING = (NoSuchEvent, NoSuchHall, HallBusy, BadWindow, UnknownCategory, UnpricedCategory, FeeTooHigh)
CHANGING = (NoSuchShow, NoSuchLayout, LayoutInUse, ShowCancelled, PricedByRules)
SHOWS = Desk(path="shows", refusals=MAKING + CHANGING)

ROUTES: tuple[Route, ...] = (
    SHOWS.get(list_shows, ShowList, query=ShowsAsked),
    SHOWS.get(get_kept_show, KeptShow, path="/{show:int}"),
    SHOWS.post(post_show, KeptShow, body=NewShow),
    SHOWS.patch(patch_show, KeptShow, path="/{show:int}", body=ShowChange),
)
