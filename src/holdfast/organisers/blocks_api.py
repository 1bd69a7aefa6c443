"""/admin/shows/{show}/blocks: block seats, list blocks, and put their seats on sale again."""

from datetime import UTC, datetime

from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from holdfast.bookings import NoSuchBooking, from_public_id, public_id
from holdfast.catalogue import NoSuchShow, ShowOnSale
from holdfast.holds import SeatsTaken, SeatsWithdrawn, TooManyBlocks
from holdfast.layouts import Layout, UnknownSeat
from holdfast.organisers.blocks_store import BlockStore, StoredBlock
from holdfast.organisers.forms import Block, BlockChange, BlockList, NewBlock, ReleaseRequest, parse_release
from holdfast.web.caller import Right, Role
from holdfast.web.responses import answer, read
from holdfast.web.routing import RouteTable, get_app, get_caller, get_scope

PATH = "/admin/shows/{show:int}/blocks"
routes = RouteTable(tag="admin", role=Role.ORGANISER, right=Right.CATALOGUE)


@routes.post(
    PATH,
    body=NewBlock,
    answers={201: Block},
    refusals=(NoSuchShow, UnknownSeat, SeatsTaken, TooManyBlocks),
)
async def create_block(request: Request) -> Response:
    """Block seats: all of them, or none if one is held or booked.

    Only organisers see the name. With a release the seats go on sale automatically.
    """
    show = await _own_show(request)
    new = read(NewBlock, await request.body())
    seats = sorted(set(_numbers(show.layout, new.seats)))
    release = parse_release(
        new.release_at, new.release_hours_before, starts_at=show.starts_at, now=datetime.now(UTC)
    )
    found = await _blocks(request).add(
        show, seats, name=new.name, actor_id=get_caller(request).account_id, release=release
    )
    if not isinstance(found, StoredBlock):
        raise SeatsTaken(taken=[show.layout.labels[seat] for seat in found], alternatives=[])
    return answer(201, _page(show, found))


@routes.get(PATH, answers={200: BlockList}, refusals=(NoSuchShow,), right=Right.MEMBER)
async def list_blocks(request: Request) -> Response:
    """The blocks of a show, with names and release times."""
    show = await _own_show(request)
    return answer(200, BlockList([_page(show, block) for block in await _blocks(request).all(show.show_id)]))


@routes.patch(
    PATH + "/{block}",
    body=BlockChange,
    answers={200: Block},
    refusals=(NoSuchShow, NoSuchBooking, SeatsWithdrawn),
)
async def update_block(request: Request) -> Response:
    """Rename a block, or change when its seats go on sale."""
    show, change = await _own_show(request), read(BlockChange, await request.body())
    block = await _block(request, show)
    release = None
    if change.release_at is not UNSET or change.release_hours_before is not UNSET:
        release = parse_release(
            change.release_at, change.release_hours_before, starts_at=show.starts_at, now=datetime.now(UTC)
        )
    name = None if change.name is UNSET else change.name
    await _blocks(request).change(show.show_id, block, name, release)
    return answer(200, _page(show, await _block(request, show)))


@routes.post(
    PATH + "/{block}/release",
    body=ReleaseRequest,
    answers={200: Block},
    refusals=(NoSuchShow, NoSuchBooking, UnknownSeat, SeatsWithdrawn),
)
async def release_block_seats(request: Request) -> Response:
    """Put some or all seats of a block on sale now. Returns the block with the seats still blocked."""
    show, body = await _own_show(request), read(ReleaseRequest, await request.body() or b"{}")
    block = await _block(request, show)
    seats = None if body.seats is None else _numbers(show.layout, body.seats)
    if foreign := [seat for seat in seats or () if seat not in block.seats]:
        raise UnknownSeat(seats=[show.layout.labels[seat] for seat in foreign])
    return answer(200, await _released(request, show, block, seats))


@routes.delete(PATH + "/{block}", answers={200: Block}, refusals=(NoSuchShow, NoSuchBooking, SeatsWithdrawn))
async def delete_block(request: Request) -> Response:
    """Put all seats of a block on sale. Returns the block as it was."""
    show = await _own_show(request)
    block = await _block(request, show)
    await _released(request, show, block, None)
    return answer(200, _page(show, block))


async def _released(request: Request, show: ShowOnSale, block: StoredBlock, seats: list[int] | None) -> Block:
    actor_id = get_caller(request).account_id
    released = await _blocks(request).release(show.show_id, block, seats, actor_id, show.layout.labels)
    if released is None:
        raise NoSuchBooking()
    still_blocked = [show.layout.labels[seat] for seat in block.seats if seat not in released]
    page = _page(show, block)
    return Block(
        page.block_id, page.name, still_blocked, page.made_at, page.release_at, page.release_hours_before
    )


async def _own_show(request: Request) -> ShowOnSale:
    """The show if it belongs to the caller; otherwise it does not exist for them."""
    organiser_id = get_scope(request).organiser_id
    return await get_app(request).catalogue.organiser_show(request.path_params["show"], organiser_id)


async def _block(request: Request, show: ShowOnSale) -> StoredBlock:
    of_show, number = from_public_id(request.path_params["block"])
    found = await _blocks(request).all(show.show_id, number) if of_show == show.show_id else []
    if not found:
        raise NoSuchBooking()
    if found[0].withdrawn:
        raise SeatsWithdrawn(seats=[show.layout.labels[seat] for seat in found[0].seats])
    return found[0]


def _blocks(request: Request) -> BlockStore:
    return get_app(request).blocks


def _numbers(layout: Layout, labels: list[str]) -> list[int]:
    if unknown := [label for label in labels if label not in layout.index_of]:
        raise UnknownSeat(seats=unknown)
    return [layout.index_of[label] for label in labels]


def _page(show: ShowOnSale, block: StoredBlock) -> Block:
    return Block(
        public_id(show.show_id, block.number),
        block.name,
        [show.layout.labels[seat] for seat in block.seats],
        block.made_at,
        block.release_at,
        block.hours_before,
        block.withdrawn,
    )


ROUTES = routes.all
