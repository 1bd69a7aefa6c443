"""/admin/accounts: list, add by a one-time link, role, ban, reset."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts.account import Email, Name
from holdfast.accounts.admin import AccountAdmin, ListedAccount
from holdfast.accounts.api import NO_STORE
from holdfast.accounts.errors import EmailTaken, LastAdmin, NoSuchAccount
from holdfast.web.caller import Role
from holdfast.web.responses import answer, query, read
from holdfast.web.routing import BIGINT_MAX, RouteTable, get_app

ONE = "/admin/accounts/{account:int}"
routes = RouteTable(tag="accounts", role=Role.ADMIN)


class AccountsQuery(Struct, forbid_unknown_fields=True):
    q: Annotated[str, Meta(max_length=100)] = ""  # a part of the name or the address
    role: Role | None = None
    guests: bool = False  # list guests, too
    before: Annotated[int, Meta(ge=1, le=BIGINT_MAX)] = BIGINT_MAX  # the last id of the page before
    size: Annotated[int, Meta(ge=1, le=200)] = 50


class NewAccountBody(Struct, forbid_unknown_fields=True):
    email: Email
    name: Name
    role: Role = Role.FAN


class RoleBody(Struct, forbid_unknown_fields=True):
    role: Role


class AdminAccountPage(Struct):
    account_id: int
    email: str
    name: str
    role: Role
    created_at: datetime
    locale: str
    email_verified: bool
    banned_at: datetime | None
    erased_at: datetime | None


class AccountList(Struct):
    accounts: list[AdminAccountPage]
    more: bool


class LinkPage(Struct):
    account: AdminAccountPage
    link: str  # works once, for a week: send it to the owner of the account


@routes.get("/admin/accounts", query=AccountsQuery, answers={200: AccountList})
async def list_accounts(request: Request) -> Response:
    """Accounts, newest first."""
    wanted = query(AccountsQuery, request)
    found = await _admin(request).list(
        text=wanted.q,
        role=wanted.role or "",
        before=wanted.before,
        guests=wanted.guests,
        limit=wanted.size + 1,
    )
    pages = [build_admin_page(one) for one in found[: wanted.size]]
    return answer(200, AccountList(pages, len(found) > wanted.size), NO_STORE)


@routes.post("/admin/accounts", body=NewAccountBody, answers={201: LinkPage}, refusals=(EmailTaken,))
async def add_account(request: Request) -> Response:
    """Add an account. Its owner chooses a password with the link in the answer, which works once."""
    body = read(NewAccountBody, await request.body())
    account, path = await _admin(request).add(email=body.email, name=body.name, role=body.role)
    listed = await _admin(request).find(account.account_id)
    return answer(201, LinkPage(build_admin_page(listed), _url(request, path)), NO_STORE)


@routes.get(ONE, answers={200: AdminAccountPage}, refusals=(NoSuchAccount,))
async def get_admin_account(request: Request) -> Response:
    """One account."""
    return answer(200, build_admin_page(await _admin(request).find(_id(request))), NO_STORE)


@routes.put(
    ONE + "/role", body=RoleBody, answers={200: AdminAccountPage}, refusals=(NoSuchAccount, LastAdmin)
)
async def set_account_role(request: Request) -> Response:
    """Give an account another role. Access tokens with the old one are refused within seconds."""
    body = read(RoleBody, await request.body())
    return answer(200, build_admin_page(await _admin(request).set_role(_id(request), body.role)), NO_STORE)


@routes.post(ONE + "/ban", answers={200: AdminAccountPage}, refusals=(NoSuchAccount, LastAdmin))
async def ban_account(request: Request) -> Response:
    """Sign an account out everywhere and refuse its sign-ins.

    Its holds lapse; a payment under way ends as it would have. Tickets that are paid for stay valid: refund
    them if they should not be.
    """
    return answer(200, build_admin_page(await _admin(request).ban(_id(request))), NO_STORE)


@routes.delete(ONE + "/ban", answers={200: AdminAccountPage}, refusals=(NoSuchAccount,))
async def unban_account(request: Request) -> Response:
    """Let a banned account sign in again."""
    return answer(200, build_admin_page(await _admin(request).unban(_id(request))), NO_STORE)


@routes.post(ONE + "/reset", answers={200: LinkPage}, refusals=(NoSuchAccount,))
async def reset_account(request: Request) -> Response:
    """A link to choose a new password. The old password and every session end now."""
    path = await _admin(request).reset(_id(request))
    return answer(
        200,
        LinkPage(build_admin_page(await _admin(request).find(_id(request))), _url(request, path)),
        NO_STORE,
    )


def _admin(request: Request) -> AccountAdmin:
    return get_app(request).account_admin


def _id(request: Request) -> int:
    return int(request.path_params["account"])


def _url(request: Request, path: str) -> str:
    return get_app(request).config.public_url.rstrip("/") + path


def build_admin_page(listed: ListedAccount) -> AdminAccountPage:
    account = listed.account
    return AdminAccountPage(
        account_id=account.account_id,
        email=account.email,
        name=account.name,
        role=account.role,
        created_at=account.created_at,
        locale=account.locale,
        email_verified=account.is_verified,
        banned_at=listed.banned_at,
        erased_at=listed.erased_at,
    )


ROUTES = routes.all
