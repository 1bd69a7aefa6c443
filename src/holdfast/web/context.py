"""What every request carries: the application it is served by and the caller it comes from."""

from typing import TYPE_CHECKING, cast

from starlette.requests import Request
from starlette.types import Scope

from holdfast.web.caller import Caller

if TYPE_CHECKING:
    from holdfast.app import App


def get_app(request: Request) -> "App":
    return scope_app(request.scope)


def scope_app(scope: Scope) -> "App":
    return cast("App", scope["state"]["app"])


def get_caller(request: Request) -> Caller:
    """The signed-in caller. Only for routes with a role: those of public routes have none."""
    caller: Caller | None = request.scope["state"]["caller"]
    assert caller is not None, "a route without a role has no caller"
    return caller
