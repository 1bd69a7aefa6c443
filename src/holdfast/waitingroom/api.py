"""/shows/{show}/queue: join the waiting room, follow it, redeem a turn, check the draw."""

from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.catalogue import NoSuchShow
from holdfast.waitingroom.draw import DrawRecord
from holdfast.waitingroom.errors import (
    NoPlace,
    NoQueue,
    NotYourTurn,
    QueueNotOpen,
    QueueSoldOut,
    QueueTokenExpired,
    QueueTokenInvalid,
    QueueTokenKeyUnknown,
    QueueTokenOfOtherAccount,
    QueueTokenOfOtherShow,
    TurnOver,
)
from holdfast.waitingroom.place import Admission, Joiner, Place
from holdfast.waitingroom.room import RoomStatus
from holdfast.web.caller import Role
from holdfast.web.response_cache import find_cached, respond_cached
from holdfast.web.responses import answer, read
from holdfast.web.routing import RouteTable, get_app, get_caller

PATH = "/shows/{show:int}/queue"
routes = RouteTable(tag="queue", refusals=(NoSuchShow, NoQueue))


class RedeemBody(Struct, forbid_unknown_fields=True, frozen=True):
    """The signed place is optional: the account has one place."""

    place: Annotated[str, Meta(max_length=200)] = ""


@routes.post(
    PATH,
    answers={201: Place, 200: Place},
    refusals=(QueueNotOpen, QueueSoldOut),
    role=Role.FAN,
    takes_key=True,
)
async def join_queue(request: Request) -> Response:
    """Join the waiting room.

    Returns your place; the same one if you have joined already (200). Before the draw everyone is in it,
    whenever they joined; later arrivals follow in the order of arrival. The `token` is your signed place.
    """
    joined = await get_app(request).waiting_rooms.join(
        await _public_show(request), Joiner(get_caller(request).account_id)
    )
    return answer(201 if joined.is_new else 200, joined.place)


@routes.get(PATH, answers={200: RoomStatus}, peek=find_cached)
async def get_queue(request: Request) -> Response:
    """The waiting room, the same for everyone.

    Your turn is near when `serving` is near your `position`. Look again after `poll_after_s` seconds.
    """
    show_id = request.path_params["show"]

    async def load() -> RoomStatus:
        status = await get_app(request).waiting_rooms.status(await _public_show(request))
        if status is None:
            raise NoQueue
        return status

    return await respond_cached(request, ("queue", show_id), load)


@routes.get(PATH + "/place", answers={200: Place}, refusals=(NoPlace,), role=Role.FAN)
async def get_queue_place(request: Request) -> Response:
    """Your place: position, people ahead, a range for the wait, and whether it is your turn."""
    rooms, show_id = get_app(request).waiting_rooms, await _public_show(request)
    place = await rooms.find_place(show_id, get_caller(request).account_id)
    if place is None:
        if await rooms.status(show_id) is None:
            raise NoQueue
        raise NoPlace
    return answer(200, place)


@routes.delete(PATH + "/place", answers={204: None}, refusals=(NoPlace,), role=Role.FAN)
async def leave_queue(request: Request) -> Response:
    """Give up your place, or leave the shop. Join again to get a place at the end."""
    rooms, account_id = get_app(request).waiting_rooms, get_caller(request).account_id
    if not await rooms.leave(await _public_show(request), account_id):
        raise NoPlace
    return answer(204)


@routes.post(
    PATH + "/pass",
    body=RedeemBody,
    answers={200: Admission},
    refusals=(
        NoPlace,
        NotYourTurn,
        TurnOver,
        QueueSoldOut,
        QueueTokenInvalid,
        QueueTokenKeyUnknown,
        QueueTokenOfOtherAccount,
        QueueTokenOfOtherShow,
        QueueTokenExpired,
    ),
    role=Role.FAN,
    takes_key=True,
)
async def redeem_turn(request: Request) -> Response:
    """Redeem your turn.

    Returns a pass: until `ends_at`, send its `text` in the header `Admission` when you hold seats of this
    show. A turn is redeemed once; repeated, the same window is returned while it lasts.
    """
    body = read(RedeemBody, await request.body() or b"{}")
    rooms, account_id = get_app(request).waiting_rooms, get_caller(request).account_id
    return answer(200, await rooms.redeem(await _public_show(request), account_id, body.place))


@routes.get(PATH + "/draw", answers={200: DrawRecord})
async def get_queue_draw(request: Request) -> Response:
    """The draw: its commitment, and since the draw everything to recompute any position.

    `holdfast verify-draw` does so, offline too.
    """
    return answer(200, await get_app(request).waiting_rooms.load_draw(await _public_show(request)))


async def _public_show(request: Request) -> int:
    show_id: int = request.path_params["show"]
    await get_app(request).catalogue.public_show(show_id)
    return show_id


ROUTES = routes.all
