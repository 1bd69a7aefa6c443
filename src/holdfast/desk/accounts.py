"""/desk/house/accounts, /desk/house/organisations: people and organisations of the house, for admins."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import ListedAccount
from holdfast.desk.access import OF_HOUSE, DeskTable, get_desk
from holdfast.desk.frame import render_desk, say_refusal
from holdfast.errors import Invalid, Refusal
from holdfast.fields import ONE_LINE
from holdfast.organisations import NewOrganisation, OrganisationsQuery
from holdfast.site.pages import EmptyForm, get_localiser, read_form, redirect
from holdfast.web.caller import Role
from holdfast.web.responses import query
from holdfast.web.routing import get_app

BEFORE_MAX = 2**63 - 1
SHOWN = 50
ONE = "/accounts/{account:int}"
Words = Annotated[str, Meta(max_length=100, pattern=ONE_LINE)]
house = DeskTable(OF_HOUSE)


class AccountsPageQuery(Struct):
    q: Words = ""
    role: Annotated[str, Meta(max_length=20)] = ""  # one of Role; all, if it is none
    before: Annotated[int, Meta(ge=1, le=BEFORE_MAX)] = BEFORE_MAX


class OrganisationsPageQuery(Struct):
    q: Words = ""
    page: Annotated[int, Meta(ge=1, le=10_000)] = 1
    notice: str = ""


class RoleForm(Struct):
    role: Role


class NewOrganisationForm(Struct):
    name: Annotated[str, Meta(max_length=300)] = ""


@house.get("/accounts", like="list_accounts")
async def get_accounts(request: Request) -> Response:
    """Accounts, newest first."""
    try:
        wanted = query(AccountsPageQuery, request)
    except Invalid:
        wanted = AccountsPageQuery()
    found = await get_app(request).account_admin.list(
        text=wanted.q.strip(),
        role=wanted.role if wanted.role in set(Role) else "",
        before=wanted.before,
        limit=SHOWN + 1,
    )
    return render_desk(
        request,
        "accounts.html",
        "accounts",
        accounts=found[:SHOWN],
        wanted=wanted,
        roles=list(Role),
        next=found[SHOWN - 1].account.account_id if len(found) > SHOWN else None,
    )


@house.get(ONE, like="get_admin_account")
async def get_one_account(request: Request) -> Response:
    """One account, and what can be done with it."""
    return await _render(request)


@house.post(ONE + "/role", like="set_account_role")
async def post_role(request: Request) -> Response:
    """Gives the account another role."""
    data = await read_form(request, RoleForm)
    try:
        await get_app(request).account_admin.set_role(_id(request), data.role)
    except Refusal as refusal:
        return await _render(request, refusal)
    return _back(request, "role")


@house.post(ONE + "/ban", like="ban_account")
async def post_ban(request: Request) -> Response:
    """Signs the account out everywhere and refuses its sign-ins."""
    await read_form(request, EmptyForm)
    try:
        await get_app(request).account_admin.ban(_id(request))
    except Refusal as refusal:
        return await _render(request, refusal)
    return _back(request, "banned")


@house.post(ONE + "/unban", like="unban_account")
async def post_unban(request: Request) -> Response:
    """Lets the account sign in again."""
    await read_form(request, EmptyForm)
    await get_app(request).account_admin.unban(_id(request))
    return _back(request, "unbanned")


@house.post(ONE + "/reset", like="reset_account")
async def post_reset(request: Request) -> Response:
    """A link to choose a new password, on this page alone."""
    await read_form(request, EmptyForm)
    app = get_app(request)
    path = await app.account_admin.reset(_id(request))
    return await _render(request, link=app.config.public_url.rstrip("/") + path)


@house.get("/organisations", like="list_organisations")
async def get_organisations(request: Request) -> Response:
    """Organisations by name, each with its desk."""
    return await _render_organisations(request)


@house.post("/organisations", like="create_organisation")
async def post_organisation(request: Request) -> Response:
    """Creates an organisation, which the admin owns at first."""
    data, here = await read_form(request, NewOrganisationForm), get_desk(request)
    try:
        new = msgspec.convert({"name": data.name}, NewOrganisation)
    except msgspec.ValidationError:
        return await _render_organisations(request, data.name, get_localiser(request).t("desk.wrong_name"))
    made = await get_app(request).organisations.create(new.name, here.session.account_id)
    return redirect(f"/desk/{made.organisation_id}/team")


async def _render(request: Request, refusal: Refusal | None = None, link: str = "") -> Response:
    app, account_id = get_app(request), _id(request)
    listed: ListedAccount = await app.account_admin.find(account_id)
    return render_desk(
        request,
        "account.html",
        "accounts",
        status=refusal.status if refusal else 200,
        listed=listed,
        account=listed.account,
        memberships=await app.organisations.mine(account_id),
        roles=list(Role),
        link=link,
        problem=say_refusal(request, refusal) if refusal else "",
        notices=("role", "banned", "unbanned"),
    )


async def _render_organisations(request: Request, name: str = "", wrong: str = "") -> Response:
    try:
        wanted = query(OrganisationsPageQuery, request)
    except Invalid:
        wanted = OrganisationsPageQuery()
    asking = OrganisationsQuery(q=wanted.q.strip(), page=wanted.page, size=SHOWN)
    total, found = await get_app(request).organisations.all(asking)
    return render_desk(
        request,
        "organisations.html",
        "organisations",
        status=422 if wrong else 200,
        organisations=found,
        has_more=total > wanted.page * SHOWN,
        wanted=wanted,
        name=name,
        wrong=wrong,
    )


def _id(request: Request) -> int:
    return int(request.path_params["account"])


def _back(request: Request, notice: str) -> Response:
    return redirect(f"{OF_HOUSE}/accounts/{_id(request)}?notice={notice}")
