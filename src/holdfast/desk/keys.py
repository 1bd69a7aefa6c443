"""/desk/{organisation}/keys: API keys of the organisation's machines; a secret is shown once."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.desk.access import DeskTable, get_desk
from holdfast.desk.frame import render_desk, say_refusal
from holdfast.errors import Refusal
from holdfast.organisations import GRANTABLE, KeyRotation, NewKey
from holdfast.site.pages import EmptyForm, get_localiser, read_form, redirect
from holdfast.web.responses import invalid
from holdfast.web.routing import get_app, get_scope

RightNames = Annotated[list[Annotated[str, Meta(max_length=20)]], Meta(max_length=20)]
desk = DeskTable()


class KeyForm(Struct):
    name: Annotated[str, Meta(max_length=300)] = ""
    rights: RightNames = msgspec.field(default_factory=list)


@desk.get("/keys", like="list_api_keys")
async def get_keys(request: Request) -> Response:
    """The keys with their rights and last use."""
    return await _render(request)


@desk.post("/keys", like="create_api_key")
async def post_key(request: Request) -> Response:
    """Creates a key. Its secret is on this page alone."""
    data = await read_form(request, KeyForm)
    rights = [right.value for right in GRANTABLE if right.value in data.rights]
    try:
        new = msgspec.convert({"name": data.name, "rights": rights}, NewKey)
        page, secret = await get_app(request).api_keys.create(get_scope(request), new)
    except msgspec.ValidationError as error:
        return await _render(request, data, invalid(error), get_localiser(request).t("desk.wrong_name"))
    except Refusal as refusal:
        return await _render(request, data, refusal)
    return render_desk(request, "key.html", "keys", key=page, secret=secret)


@desk.post("/keys/{key:int}/rotate", like="rotate_api_key")
async def post_rotate_key(request: Request) -> Response:
    """A new secret; the one before works for another day."""
    await read_form(request, EmptyForm)
    key_id = request.path_params["key"]
    try:
        page, secret = await get_app(request).api_keys.rotate(get_scope(request), key_id, KeyRotation())
    except Refusal as refusal:
        return await _render(request, refusal=refusal)
    return render_desk(request, "key.html", "keys", key=page, secret=secret)


@desk.post("/keys/{key:int}/revoke", like="revoke_api_key")
async def post_revoke_key(request: Request) -> Response:
    """Ends a key with all its secrets."""
    await read_form(request, EmptyForm)
    here = get_desk(request)
    try:
        await get_app(request).api_keys.revoke(here.organisation_id, request.path_params["key"])
    except Refusal as refusal:
        return await _render(request, refusal=refusal)
    return redirect(f"{here.path}/keys?notice=key_revoked")


async def _render(
    request: Request, data: KeyForm | None = None, refusal: Refusal | None = None, problem: str = ""
) -> Response:
    return render_desk(
        request,
        "keys.html",
        "keys",
        status=refusal.status if refusal else 200,
        keys=await get_app(request).api_keys.keys(get_desk(request).organisation_id),
        rights=[right.value for right in GRANTABLE],
        typed=data or KeyForm(),
        problem=problem or (say_refusal(request, refusal) if refusal else ""),
        notices=("key_revoked",),
    )
