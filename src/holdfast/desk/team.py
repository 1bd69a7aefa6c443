"""/desk/{organisation}/team: members, rights, invitations, leaving."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import Email
from holdfast.desk.access import DeskTable, get_desk
from holdfast.desk.frame import render_desk, say_refusal
from holdfast.errors import Refusal
from holdfast.organisations import GRANTABLE, NewInvitation
from holdfast.site.pages import EmptyForm, get_localiser, read_form, redirect
from holdfast.web.responses import invalid
from holdfast.web.routing import get_app, get_scope

MEMBER = "/team/{account:int}"
NOTICES = ("saved", "removed", "invited", "invited_again", "withdrawn", "transferred")
Typed = Annotated[str, Meta(max_length=300)]
RightNames = Annotated[list[Annotated[str, Meta(max_length=20)]], Meta(max_length=20)]
desk = DeskTable()


class RightsForm(Struct):
    rights: RightNames = msgspec.field(default_factory=list)


class InviteForm(Struct):
    email: Typed = ""
    rights: RightNames = msgspec.field(default_factory=list)


class OneEmail(Struct):
    email: Email


@desk.get("/team", like="list_members")
async def get_team(request: Request) -> Response:
    """Who works here."""
    return await _render(request)


@desk.post(MEMBER + "/rights", like="update_member")
async def post_rights(request: Request) -> Response:
    """Changes the rights of a member."""
    data = await read_form(request, RightsForm)
    account_id, rights = request.path_params["account"], _known(data.rights)
    try:
        await get_app(request).organisations.set_rights(get_scope(request), account_id, rights)
    except Refusal as refusal:
        return await _render(request, refusal)
    return _back(request, "saved")


@desk.post(MEMBER + "/remove", like="remove_member")
async def post_remove(request: Request) -> Response:
    """Removes a member; their access ends at once."""
    await read_form(request, EmptyForm)
    try:
        await get_app(request).organisations.remove(get_scope(request), request.path_params["account"])
    except Refusal as refusal:
        return await _render(request, refusal)
    return _back(request, "removed")


@desk.post(MEMBER + "/owner", like="transfer_ownership")
async def post_owner(request: Request) -> Response:
    """Makes a member the owner."""
    await read_form(request, EmptyForm)
    try:
        await get_app(request).organisations.transfer(get_scope(request), request.path_params["account"])
    except Refusal as refusal:
        return await _render(request, refusal)
    return _back(request, "transferred")


@desk.post("/team/leave", like="leave_organisation")
async def post_leave(request: Request) -> Response:
    """The member leaves."""
    await read_form(request, EmptyForm)
    scope = get_scope(request)
    try:
        await get_app(request).organisations.remove(scope, scope.account_id)
    except Refusal as refusal:
        return await _render(request, refusal)
    return redirect("/desk")


@desk.post("/team/invitations", like="create_invitation")
async def post_invite(request: Request) -> Response:
    """Invites a person by mail."""
    data = await read_form(request, InviteForm)
    try:
        email = msgspec.convert({"email": data.email}, OneEmail).email
        new = msgspec.convert({"email": email, "rights": _known(data.rights)}, NewInvitation)
        await get_app(request).invitations.invite(get_scope(request), new)
    except msgspec.ValidationError as error:
        return await _render(request, invalid(error), data, get_localiser(request).t("account.wrong_email"))
    except Refusal as refusal:
        return await _render(request, refusal, data)
    return _back(request, "invited")


@desk.post("/team/invitations/{invitation:int}/resend", like="resend_invitation")
async def post_resend_invitation(request: Request) -> Response:
    """Mails it again; the link in the first mail ends."""
    await read_form(request, EmptyForm)
    try:
        await get_app(request).invitations.send_again(get_scope(request), request.path_params["invitation"])
    except Refusal as refusal:
        return await _render(request, refusal)
    return _back(request, "invited_again")


@desk.post("/team/invitations/{invitation:int}/withdraw", like="withdraw_invitation")
async def post_withdraw(request: Request) -> Response:
    """The link of the invitation stops working."""
    await read_form(request, EmptyForm)
    here = get_desk(request)
    await get_app(request).invitations.withdraw(here.organisation_id, request.path_params["invitation"])
    return _back(request, "withdrawn")


def _known(rights: list[str]) -> list[str]:
    return [right.value for right in GRANTABLE if right.value in rights]


def _back(request: Request, notice: str) -> Response:
    return redirect(f"{get_desk(request).path}/team?notice={notice}")


async def _render(
    request: Request, refusal: Refusal | None = None, data: InviteForm | None = None, problem: str = ""
) -> Response:
    here, app = get_desk(request), get_app(request)
    may_change = here.may("update_member")
    return render_desk(
        request,
        "team.html",
        "team",
        status=refusal.status if refusal else 200,
        members=await app.organisations.members(here.organisation_id),
        invitations=await app.invitations.list_open(here.organisation_id) if may_change else [],
        rights=[right.value for right in GRANTABLE],
        typed=data or InviteForm(),
        is_invitation=data is not None,
        problem=problem or (say_refusal(request, refusal) if refusal else ""),
        notices=NOTICES,
    )
