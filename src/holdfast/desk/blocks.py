"""/desk/{organisation}/shows/{show}/blocks: seats that are held back from the sale."""

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.bookings import NoSuchBooking, from_public_id, public_id
from holdfast.desk.access import DeskTable, get_desk
from holdfast.desk.frame import render_desk, say_refusal
from holdfast.errors import Invalid, Refusal
from holdfast.fields import ONE_LINE
from holdfast.holds import SeatsTaken, SeatsWithdrawn
from holdfast.layouts import UnknownSeat
from holdfast.organisers import StoredBlock, parse_release
from holdfast.site.pages import EmptyForm, read_form, redirect
from holdfast.web.routing import get_app, get_caller, get_scope

if TYPE_CHECKING:
    from holdfast.catalogue import ShowOnSale

PATH = "/shows/{show:int}/blocks"
BETWEEN = re.compile(r"[,;\s]+")
SEATS_MAX = 1000
desk = DeskTable()


class BlockForm(Struct):
    name: Annotated[str, Meta(max_length=120, pattern=ONE_LINE)] = ""
    seats: Annotated[str, Meta(max_length=20_000)] = ""
    hours: Annotated[str, Meta(max_length=5)] = ""


@desk.get(PATH, like="list_blocks")
async def get_desk_blocks(request: Request) -> Response:
    """The blocks of a show."""
    return await _render(request)


@desk.post(PATH, like="create_block")
async def post_block(request: Request) -> Response:
    """Blocks seats: all, or none if one is taken."""
    data, show = await read_form(request, BlockForm), await _load_show(request)
    try:
        await _add(request, show, data)
    except Refusal as refusal:
        return await _render(request, data, _describe(request, refusal))
    return redirect(f"{get_desk(request).path}/shows/{show.show_id}/blocks?notice=blocked")


@desk.post(PATH + "/{block}/release", like="release_block_seats")
async def post_release(request: Request) -> Response:
    """Puts all seats of a block on sale."""
    await read_form(request, EmptyForm)
    show, app = await _load_show(request), get_app(request)
    of_show, number = from_public_id(request.path_params["block"])
    found = await app.blocks.all(show.show_id, number) if of_show == show.show_id else []
    if not found:
        raise NoSuchBooking
    if found[0].withdrawn:
        raise SeatsWithdrawn(seats=[show.layout.labels[seat] for seat in found[0].seats])
    actor_id = get_caller(request).account_id
    await app.blocks.release(show.show_id, found[0], None, actor_id, show.layout.labels)
    return redirect(f"{get_desk(request).path}/shows/{show.show_id}/blocks?notice=released")


async def _add(request: Request, show: "ShowOnSale", data: BlockForm) -> None:
    labels = [label for label in BETWEEN.split(data.seats) if label][:SEATS_MAX]
    if not labels or not data.name:
        raise Invalid(field="seats", detail="")
    if unknown := [label for label in labels if label not in show.layout.index_of]:
        raise UnknownSeat(seats=unknown)
    if data.hours and not (data.hours.isascii() and data.hours.isdigit() and int(data.hours)):
        raise Invalid(field="hours", detail="")
    release = parse_release(
        None, int(data.hours) if data.hours else None, starts_at=show.starts_at, now=datetime.now(UTC)
    )
    seats = sorted({show.layout.index_of[label] for label in labels})
    found = await get_app(request).blocks.add(
        show, seats, name=data.name, actor_id=get_caller(request).account_id, release=release
    )
    if not isinstance(found, StoredBlock):
        raise SeatsTaken(taken=[show.layout.labels[seat] for seat in found], alternatives=[])


def _describe(request: Request, refusal: Refusal) -> str:
    """With the seats that are in the way."""
    named = refusal.details.get("taken") or refusal.details.get("seats") or ()
    seats = ", ".join(named) if isinstance(named, list | tuple) else ""
    return f"{say_refusal(request, refusal)} {seats}".strip()


async def _render(request: Request, data: BlockForm | None = None, problem: str = "") -> Response:
    show, app = await _load_show(request), get_app(request)
    found = [
        (public_id(show.show_id, block.number), block, [show.layout.labels[seat] for seat in block.seats])
        for block in await app.blocks.all(show.show_id)
    ]
    return render_desk(
        request,
        "blocks.html",
        "shows",
        status=422 if problem else 200,
        show=show,
        timezone=(await app.catalogue.show_detail(show.show_id))["timezone"],
        blocks=found,
        typed=data or BlockForm(),
        problem=problem,
        notices=("blocked", "released"),
    )


async def _load_show(request: Request) -> "ShowOnSale":
    organiser_id = get_scope(request).organiser_id
    return await get_app(request).catalogue.organiser_show(request.path_params["show"], organiser_id)
