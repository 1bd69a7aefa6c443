"""/admin/shows/{show}/blocks: keep seats back, see what is kept back, give them to the sale again."""

from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.catalogue import Layout
from holdfast.ledger import Booking, State, from_public_id, public_id
from holdfast.people import Role
from holdfast.refusals import NoSuchBooking, NoSuchShow, SeatsTaken, UnknownSeat
from holdfast.web.answers import answer, read
from holdfast.web.routing import Route

BLOCK_SEATS_MAX = 1000  # in one block; a stand is kept back in several

Label = Annotated[str, Meta(min_length=1, max_length=200)]


class NewBlock(Struct, forbid_unknown_fields=True, frozen=True):
    seats: Annotated[list[Label], Meta(min_length=1, max_length=BLOCK_SEATS_MAX)]
    name: Annotated[str, Meta(min_length=1, max_length=100)]  # for whom, or why


class Block(Struct, frozen=True):
    block_id: str
    name: str
    seats: list[str]


class BlockList(Struct, frozen=True):
    blocks: list[Block]


async def post_block(request: Request) -> Response:
    """Keep seats back. All of them, or none: a seat that somebody holds or has booked is not taken away."""
    box, show_id = request.state.box, request.path_params["show"]
    layout = await _own_layout(request)
    new = read(NewBlock, await request.body())
    if unknown := [label for label in new.seats if label not in layout.index_of]:
        raise UnknownSeat(seats=unknown)
    seats = sorted({layout.index_of[label] for label in new.seats})
    found = await box.sales.block(show_id, seats, new.name, request.state.caller.account_id)
    if not isinstance(found, int):
        raise SeatsTaken(taken=[layout.labels[seat] for seat in found], alternatives=[])
    return answer(201, Block(public_id(show_id, found), new.name, [layout.labels[seat] for seat in seats]))


async def list_blocks(request: Request) -> Response:
    """What is kept back."""
    layout = await _own_layout(request)
    found = await request.state.box.ledger.blocks(request.path_params["show"])
    return answer(200, BlockList([_page(block, layout) for block in found]))


async def delete_block(request: Request) -> Response:
    """Give the seats of a block to the sale."""
    box, show_id = request.state.box, request.path_params["show"]
    layout = await _own_layout(request)
    of_show, number = from_public_id(request.path_params["block"])
    block = await box.ledger.booking(of_show, number) if of_show == show_id else None
    if block is None or block.state is not State.BLOCKED:
        raise NoSuchBooking()
    if await box.sales.unblock(block, request.state.caller.account_id) is None:
        raise NoSuchBooking()
    return answer(200, _page(block, layout))


async def _own_layout(request: Request) -> Layout:
    """The layout of a show of one's own; to everybody else there is no such show."""
    caller, box = request.state.caller, request.state.box
    organiser_id = None if caller.role is Role.ADMIN else caller.account_id
    show = await box.catalogue.show_of(request.path_params["show"], organiser_id)
    layout: Layout = show.layout
    return layout


def _page(block: Booking, layout: Layout) -> Block:
    return Block(
        public_id(block.show_id, block.number), block.note, [layout.labels[seat] for seat in block.seats]
    )


PATH = "/admin/shows/{show:int}/blocks"

ROUTES = (
    Route(
        method="POST",
        path=PATH,
        call=post_block,
        tag="admin",
        body=NewBlock,
        answers={201: Block},
        refusals=(NoSuchShow, UnknownSeat, SeatsTaken),
        role=Role.ORGANISER,
        keyed=True,
    ),
    Route(
        method="GET",
        path=PATH,
        call=list_blocks,
        tag="admin",
        answers={200: BlockList},
        refusals=(NoSuchShow,),
        role=Role.ORGANISER,
    ),
    Route(
        method="DELETE",
        path=PATH + "/{block}",
        call=delete_block,
        tag="admin",
        answers={200: Block},
        refusals=(NoSuchShow, NoSuchBooking),
        role=Role.ORGANISER,
    ),
)
