"""Who may open a page of the desk: the same as may use the routes of the API that do the same.

    desk = DeskTable()

    @desk.get("/shows/{show:int}", like="get_managed_show")
    async def get_show_page(request: Request) -> Response: ...

The rights come from the declarations of those routes (`build_routes`), so that a page and the API cannot
disagree. A page of an organisation is under /desk/{organisation}; for others than its members and admins it
does not exist. A page of the house is under /desk/house, for admins.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps

from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import Session
from holdfast.desk.errors import NoSuchDesk
from holdfast.errors import NotAllowed, NotAMember
from holdfast.organisations import MyOrganisation, OrganisationPage
from holdfast.site.errors import SignInFirst
from holdfast.site.pages import current_path, refuse_foreign_form, require_session
from holdfast.web.caller import Caller, Right, Role, Scope
from holdfast.web.routing import Call, Route, get_app

OF_ORGANISATION = "/desk/{organisation:int}"
OF_HOUSE = "/desk/house"
Rights = Mapping[str, Right | None]  # of routes of the API; None: admins


@dataclass(frozen=True, slots=True)
class DeskPage:
    """The declaration of a page. Without routes of the API it is for everyone with an account."""

    method: str
    path: str
    like: tuple[str, ...]
    call: Call
    body_bytes_max: int = 0  # of a form with long texts; 0: the setting

    @property
    def is_of_organisation(self) -> bool:
        return self.path.startswith(OF_ORGANISATION)


@dataclass(frozen=True, slots=True)
class Desk:
    """What the signed-in person works for, and what they may do there."""

    session: Session
    scope: Scope
    organisation: OrganisationPage | None  # None: the house
    organisations: list[MyOrganisation]
    rights: Rights

    def may(self, *routes: str) -> bool:
        """Whether they may use all these routes of the API."""
        needed = [self.rights[name] for name in routes]
        return all(self.scope.is_admin if one is None else one in self.scope.rights for one in needed)

    @property
    def path(self) -> str:
        return f"/desk/{self.organisation.organisation_id}" if self.organisation else OF_HOUSE

    @property
    def organisation_id(self) -> int:
        assert self.organisation is not None, "a page of the house"
        return self.organisation.organisation_id


class DeskTable:
    """The pages of one module, in the order in which the handlers are defined."""

    def __init__(self, prefix: str = OF_ORGANISATION) -> None:
        self._prefix = prefix
        self._pages: list[DeskPage] = []

    def get(self, path: str, *, like: str | tuple[str, ...]) -> Callable[[Call], Call]:
        return self._page("GET", path, like)

    def post(
        self, path: str, *, like: str | tuple[str, ...], body_bytes_max: int = 0
    ) -> Callable[[Call], Call]:
        return self._page("POST", path, like, body_bytes_max)

    @property
    def all(self) -> tuple[DeskPage, ...]:
        return tuple(self._pages)

    def _page(
        self, method: str, path: str, like: str | tuple[str, ...], body_bytes_max: int = 0
    ) -> Callable[[Call], Call]:
        names = (like,) if isinstance(like, str) else like

        def add(call: Call) -> Call:
            self._pages.append(DeskPage(method, self._prefix + path, names, call, body_bytes_max))
            return call

        return add


def build_routes(pages: Iterable[DeskPage], api: Iterable[Route]) -> tuple[Route, ...]:
    """Pages with the rights of the routes that they name."""
    rights = {route.name: route.right for route in api if not route.bare and route.role is not None}
    return tuple(
        Route(
            method=page.method,
            path=page.path,
            tag="desk",
            call=_guarded(page, rights),
            bare=True,
            body_bytes_max=page.body_bytes_max,
        )
        for page in pages
    )


def _guarded(page: DeskPage, rights: Rights) -> Call:
    needed = [rights[name] for name in page.like]

    @wraps(page.call)
    async def call(request: Request) -> Response:
        if page.method == "POST":
            refuse_foreign_form(request)
        session = await require_account(request)
        caller = Caller(
            session.account_id, session.role, session.session_id, is_verified=session.account.is_verified
        )
        request.scope["state"]["caller"] = caller
        scope = await _find_scope(request, page, needed)
        request.scope["state"]["scope"] = scope
        request.scope["state"]["desk"] = await _open_desk(request, session, scope, rights)
        return await page.call(request)

    return call


async def require_account(request: Request) -> Session:
    """The session of an account; guests sign in first."""
    session = await require_session(request)
    if session.is_guest:
        raise SignInFirst(back=current_path(request))
    return session


async def _find_scope(request: Request, page: DeskPage, needed: list[Right | None]) -> Scope:
    caller: Caller = request.scope["state"]["caller"]
    if not page.is_of_organisation:
        if page.like and caller.role is not Role.ADMIN:
            raise NotAllowed(needed=Role.ADMIN)
        if page.like:
            await get_app(request).organisations.check_house(caller)
        return Scope(caller.account_id, is_admin=caller.role is Role.ADMIN)
    first, *more = [right or Right.OWNER for right in needed]
    try:
        named = str(request.path_params["organisation"])
        scope = await get_app(request).organisations.find_scope(caller, first, named)
    except NotAMember:  # whether it exists is for its members to know
        raise NoSuchDesk from None
    for right in more:
        scope.require(right)
    return scope


async def _open_desk(request: Request, session: Session, scope: Scope, rights: Rights) -> Desk:
    organisations = get_app(request).organisations
    mine = await organisations.mine(session.account_id)
    named = scope.organisation_id
    return Desk(
        session=session,
        scope=scope,
        organisation=None if named is None else await organisations.organisation(named),
        organisations=mine,
        rights=rights,
    )


def get_desk(request: Request) -> Desk:
    desk: Desk = request.scope["state"]["desk"]
    return desk
