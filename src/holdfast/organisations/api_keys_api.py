"""/organisations/…/keys: keys with which machines use the routes of organisers. Only people manage them."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.organisations.api_key import CreatedKey, KeyList, KeyRotation, NewKey
from holdfast.organisations.api_keys import ApiKeys
from holdfast.organisations.errors import KeysMax, NoSuchKey, RightsTooHigh
from holdfast.web.caller import Right, Role
from holdfast.web.responses import answer, read
from holdfast.web.routing import RouteTable, get_app, get_scope

NO_STORE = {"Cache-Control": "no-store"}
ALL = "/organisations/{organisation:int}/keys"
ONE = ALL + "/{key:int}"
routes = RouteTable(tag="admin", role=Role.ORGANISER, right=Right.SETTINGS, for_people=True)


@routes.post(ALL, body=NewKey, answers={201: CreatedKey}, refusals=(KeysMax, RightsTooHigh))
async def create_api_key(request: Request) -> Response:
    """Create an API key. `secret` is shown only now: send it as `Authorization: Bearer hfk_…`.

    It works on every route that needs one of its rights, for this organisation alone.
    """
    new = read(NewKey, await request.body())
    return answer(201, CreatedKey(*await _keys(request).create(get_scope(request), new)), NO_STORE)


@routes.get(ALL, answers={200: KeyList})
async def list_api_keys(request: Request) -> Response:
    """Keys that are not revoked, newest first, with their last use."""
    return answer(200, KeyList(await _keys(request).keys(request.path_params["organisation"])), NO_STORE)


@routes.post(
    ONE + "/secret", body=KeyRotation, answers={201: CreatedKey}, refusals=(NoSuchKey, RightsTooHigh)
)
async def rotate_api_key(request: Request) -> Response:
    """Create a new secret, shown only now. The one before works for `overlap_h` more hours."""
    wanted, key_id = read(KeyRotation, await request.body()), request.path_params["key"]
    rotated = await _keys(request).rotate(get_scope(request), key_id, wanted)
    return answer(201, CreatedKey(*rotated), NO_STORE)


@routes.delete(ONE, answers={204: None}, refusals=(NoSuchKey,))
async def revoke_api_key(request: Request) -> Response:
    """Revoke a key with all its secrets, at once."""
    await _keys(request).revoke(request.path_params["organisation"], request.path_params["key"])
    return answer(204)


def _keys(request: Request) -> ApiKeys:
    return get_app(request).api_keys


ROUTES = routes.all
