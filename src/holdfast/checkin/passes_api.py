"""/admin/gate-passes, /admin/shows/{show}/door: which devices may scan, and how codes are checked."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.bookings import reference
from holdfast.catalogue import BadWindow, NoSuchShow
from holdfast.checkin.errors import NoSuchPass, NotAGateAccount
from holdfast.checkin.passes import (
    ConflictList,
    ConflictPage,
    CreatedPass,
    DoorBody,
    NewPass,
    Passes,
    PassesQuery,
    PassList,
    PassPage,
)
from holdfast.checkin.scan import ShowCount
from holdfast.tickets import EntryPolicy, svg_url
from holdfast.web.caller import Right, Role
from holdfast.web.responses import answer, query, read
from holdfast.web.routing import RouteTable, get_app, get_scope

PASSES = "/admin/gate-passes"
DOOR = "/admin/shows/{show:int}/door"
routes = RouteTable(tag="admin", role=Role.ORGANISER, right=Right.DOOR)


@routes.post(
    PASSES,
    body=NewPass,
    answers={201: CreatedPass},
    refusals=(NoSuchShow, BadWindow, NotAGateAccount, NoSuchPass),
)
async def create_gate_pass(request: Request) -> Response:
    """Let a device ask at the door.

    For these shows, at one gate, until the pass ends. The device signs in with `code`, which is shown only
    this once (show it as a QR); the first device to do so has the pass. With `email`, the member with that
    address has it instead; they need the right `door`, and lose the pass with it.
    """
    new = read(NewPass, await request.body())
    made, code = await _passes(request).make(_organiser_id(request), new)
    drawn = svg_url(code) if code else None
    return answer(201, CreatedPass(made, code, drawn), {"Cache-Control": "no-store"})


@routes.get(PASSES, query=PassesQuery, answers={200: PassList})
async def list_gate_passes(request: Request) -> Response:
    """Your passes, newest first; `show` filters by show."""
    wanted = query(PassesQuery, request)
    found = await _passes(request).of(_organiser_id(request), wanted.show, wanted.before, wanted.size)
    return answer(200, found)


@routes.delete(PASSES + "/{pass:int}", answers={200: PassPage}, refusals=(NoSuchPass,))
async def revoke_gate_pass(request: Request) -> Response:
    """Revoke a pass. The next scan with it is refused."""
    return answer(200, await _passes(request).revoke(request.path_params["pass"], _organiser_id(request)))


@routes.get(DOOR, answers={200: DoorBody}, refusals=(NoSuchShow,))
async def get_door_settings(request: Request) -> Response:
    """How a show's tickets are checked."""
    await _own_show(request)
    door = await get_app(request).tickets.door(request.path_params["show"])
    return answer(200, DoorBody(door.codes, door.reentry))


@routes.put(DOOR, body=DoorBody, answers={200: DoorBody}, refusals=(NoSuchShow,))
async def set_door_settings(request: Request) -> Response:
    """Say how a show's tickets are checked: `fixed` codes, `live` ones, or live ones with paper allowed."""
    body = read(DoorBody, await request.body())
    await _own_show(request)
    await get_app(request).tickets.set_door(
        request.path_params["show"], EntryPolicy(body.codes, body.reentry)
    )
    return answer(200, body)


@routes.get(DOOR + "/counts", answers={200: ShowCount}, refusals=(NoSuchShow,))
async def get_door_counts(request: Request) -> Response:
    """Who came in where, now."""
    await _own_show(request)
    (count,) = await get_app(request).checkin.counts([request.path_params["show"]])
    return answer(200, count, {"Cache-Control": "no-store"})


@routes.get(DOOR + "/conflicts", answers={200: ConflictList}, refusals=(NoSuchShow,))
async def list_door_conflicts(request: Request) -> Response:
    """What gates without a network let in and should not have; newest first."""
    show = await _own_show(request)
    rows = await get_app(request).checkin.conflicts(show.show_id)
    pages = [
        ConflictPage(
            why=row["why"],
            raised_at=row["at"],
            second_gate=row["second_gate"],
            second_at=row["second_at"],
            seat=show.layout.labels[row["seat"]] if row["seat"] is not None else None,
            reference=reference(show.show_id, row["number"]) if row["number"] is not None else None,
            first_gate=row["first_gate"],
            first_at=row["first_at"],
        )
        for row in rows
    ]
    return answer(200, ConflictList(pages), {"Cache-Control": "no-store"})


def _passes(request: Request) -> Passes:
    return get_app(request).passes


def _organiser_id(request: Request) -> int | None:
    return get_scope(request).organiser_id


async def _own_show(request: Request):  # type: ignore[no-untyped-def]
    return await get_app(request).catalogue.organiser_show(
        request.path_params["show"], _organiser_id(request)
    )


ROUTES = routes.all
