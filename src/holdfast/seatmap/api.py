"""The map of a show: its layout, the state of every seat, and the asker's own seats."""

from typing import Annotated, Literal

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from holdfast.bookings import BookingState
from holdfast.catalogue import NoSuchShow
from holdfast.engines.aside import run_aside
from holdfast.seatmap.snapshot import Snapshot, packed_page, ready_page
from holdfast.seatmap.store import SeatMap
from holdfast.web.caller import Role
from holdfast.web.responses import EncodedResponse, answer, query, takes_packed, unchanged
from holdfast.web.routing import RouteTable, get_app, get_caller, scope_app

COMPACT = "application/vnd.holdfast.seats"
COMPACT_KIND = (b"content-type", COMPACT.encode())
SECOND = "public, max-age=1"
YEAR = "public, max-age=31536000, immutable"
MINUTE = "public, max-age=60"
PACKED = {"Content-Encoding": "gzip"}
VARY = {"Vary": "Accept, Accept-Encoding"}
PEEKED = (b"", b"form=compact")
routes = RouteTable(tag="seat map")


class LayoutQuery(Struct, forbid_unknown_fields=True, frozen=True):
    v: Annotated[str, Meta(max_length=64)] = ""  # the layout's hash, as the show tells it


class SeatsQuery(Struct, frozen=True):
    form: Literal["", "compact"] = ""  # for requests that cannot set `Accept`, such as a preload


class CategoryCounts(Struct, frozen=True):
    category: str
    A: int  # available
    H: int  # held
    B: int  # booked
    X: int  # blocked


class SeatsPage(Struct, frozen=True):
    show_id: int
    version: int  # grows with every change
    layout: str  # hash of the layout that gives the order of `states`
    counts: list[CategoryCounts]
    states: str  # one code per seat: A available, H held, B booked, X blocked


class MySeat(Struct, frozen=True):
    seat: int  # number in the layout
    label: str
    state: BookingState


class MySeats(Struct, frozen=True):
    show_id: int
    seats: list[MySeat]


@routes.get(
    "/shows/{show:int}/layout", query=LayoutQuery, answers={200: dict, 304: None}, refusals=(NoSuchShow,)
)
async def get_show_layout(request: Request) -> Response:
    """The seats of a show: where they are, what they are called.

    It never changes under its hash: requested with `?v=<hash>`, it may be cached for a year.
    """
    params = query(LayoutQuery, request)
    show = await get_app(request).catalogue.public_show(request.path_params["show"])
    etag = f'"{show.layout.hash}"'
    cache_control = YEAR if params.v == show.layout.hash else MINUTE
    if known := unchanged(request, etag):
        return known
    headers = {"ETag": etag, "Cache-Control": cache_control, "Vary": "Accept-Encoding"}
    if takes_packed(request.scope):
        # A hall that was drawn seat by seat has a page of megabytes.
        page = ready_page(show.layout) or await run_aside(packed_page, show.layout)
        return answer(200, page, headers | PACKED)
    return answer(200, show.layout.page(), headers)


def ready_seats(scope: Scope) -> Response | None:
    """The map if it is fresh, before a Request is made of what was sent."""
    query_string = scope["query_string"]
    if query_string not in PEEKED:
        return None
    seatmap = scope_app(scope).seatmap
    snapshot = seatmap.fresh(scope["path_params"]["show"])
    return None if snapshot is None else _seats(snapshot, scope, is_compact=bool(query_string))


@routes.get(
    "/shows/{show:int}/seats",
    peek=ready_seats,
    query=SeatsQuery,
    answers={200: SeatsPage, 304: None},
    refusals=(NoSuchShow,),
    media_types=("application/json", COMPACT),
)
async def get_seats(request: Request) -> Response:
    """The state of every seat, one code each, in the order of the layout.

    The same for every caller. With `Accept: application/vnd.holdfast.seats` or `?form=compact` it has two
    bits per seat.
    """
    seatmap: SeatMap = get_app(request).seatmap
    show_id: int = request.path_params["show"]
    await get_app(request).catalogue.public_show(show_id)
    snapshot = seatmap.fresh(show_id) or await seatmap.snapshot(show_id)
    is_compact = query(SeatsQuery, request).form == "compact"
    return _seats(snapshot, request.scope, is_compact=is_compact)


def _seats(snapshot: Snapshot, scope: Scope, *, is_compact: bool) -> Response:
    headers = scope["state"]["headers"]
    form = "text"
    if is_compact or headers.get(b"accept") == COMPACT_KIND[1]:
        form = "packed" if takes_packed(scope) else "compact"
    ready: EncodedResponse | None = snapshot.answers.get(form)
    if ready is None:
        ready = snapshot.answers[form] = _ready(snapshot, form)
    return ready.to(headers)


def _ready(snapshot: Snapshot, form: str) -> EncodedResponse:
    etag = f'"{snapshot.version}"'
    match form:
        case "packed":
            return EncodedResponse(snapshot.compact_packed, etag, SECOND, VARY | PACKED, COMPACT_KIND)
        case "compact":
            return EncodedResponse(snapshot.compact, etag, SECOND, VARY, COMPACT_KIND)
    return EncodedResponse(snapshot.text, etag, SECOND, {"Vary": "Accept"})


@routes.get("/shows/{show:int}/seats/mine", answers={200: MySeats}, refusals=(NoSuchShow,), role=Role.FAN)
async def get_my_seats(request: Request) -> Response:
    """The seats of a show that are mine now, held or booked."""
    app, show_id = get_app(request), request.path_params["show"]
    show = await app.catalogue.show_on_sale(show_id)
    found = await app.bookings.seats_of(get_caller(request).account_id, show_id)
    mine = [MySeat(seat, show.layout.labels[seat], state) for seat, state in found]
    return answer(200, MySeats(show_id, mine), {"Cache-Control": "no-store"})


ROUTES = routes.all
