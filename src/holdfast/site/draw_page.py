"""/shows/{show}/queue/draw: the proof of a draw, and a form that recomputes the place of a number."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.errors import Invalid
from holdfast.site.pages import render_page
from holdfast.waitingroom import DrawMismatch, DrawRecord, NoQueue, Permutation, verify_draw
from holdfast.web.responses import query, site_of
from holdfast.web.routing import RouteTable, get_app

if TYPE_CHECKING:
    from holdfast.app import App

routes = RouteTable(tag="site", prefix="/shows/{show:int}", bare=True)


class NumberQuery(Struct):
    number: Annotated[str, Meta(max_length=12)] = ""


@dataclass(frozen=True, slots=True)
class CheckedNumber:
    """A number that was typed, and its place; both are counted from 1."""

    typed: str = ""
    number: int = 0
    place: int = 0
    is_wrong: bool = False


@routes.get("/queue/draw")
async def get_draw_page(request: Request) -> Response:
    """Commitment, seed, beacon and the number of people; the same for everybody."""
    app, show_id = get_app(request), int(request.path_params["show"])
    await app.catalogue.public_show(show_id)  # a draft has no page
    row = await app.catalogue.show_detail(show_id)
    record = await _load_record(app, show_id)
    order = _find_order(record)
    checked = _check(order, _typed_number(request))
    return render_page(
        request,
        "queue/draw.html",
        status=422 if checked.is_wrong else 200,
        row=row,
        zone=row["timezone"],
        here=f"/shows/{show_id}/queue",
        record=record,
        record_url=f"{site_of(request)}/api/v1/shows/{show_id}/queue/draw",
        matches=order is not None,
        checked=checked,
    )


async def _load_record(app: "App", show_id: int) -> DrawRecord | None:
    try:
        record: DrawRecord = await app.waiting_rooms.load_draw(show_id)
    except NoQueue:  # or one that opened without a draw
        return None
    return record


def _find_order(record: DrawRecord | None) -> Permutation | None:
    """None: not drawn yet, or what was published is not what was committed to."""
    if record is None or not record.is_drawn:
        return None
    try:
        return verify_draw(record)
    except DrawMismatch:
        return None


def _typed_number(request: Request) -> str:
    try:
        return query(NumberQuery, request).number.strip()
    except Invalid:
        return "?"


def _check(order: Permutation | None, typed: str) -> CheckedNumber:
    if order is None or not typed:
        return CheckedNumber(typed)
    digits = typed.replace(",", "").replace(".", "").replace("\u202f", "").replace(" ", "")
    number = int(digits) if digits.isascii() and digits.isdigit() else 0
    if not 1 <= number <= order.n:
        return CheckedNumber(typed, is_wrong=True)
    return CheckedNumber(typed, number, order.position(number - 1) + 1)


ROUTES = routes.all
