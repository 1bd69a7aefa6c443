"""Routes that another process serves, when this one serves only some subjects: `holdfast serve --only …`.

Their paths stay in the table, lest one is taken for another (`/tickets/worker.js` for `/tickets/{link}`),
and in the API document, which describes the whole application, whichever process serves it.
"""

from collections.abc import Container
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from holdfast.errors import Refusal
from holdfast.web.routing import Route


class ServedElsewhere(Refusal):
    """The address exists, but this process does not serve its subject, `served_as`.

    The load balancer sent this request to the wrong process. Operators: route it to a process that was
    started with this name in `holdfast serve --only`, or without `--only`.
    """

    code, status, title = "served_elsewhere", 404, "Another process serves this"


def role_name(route: Route) -> str:
    return route.tag.replace(" ", "")


def serve_or_refuse(route: Route, only: Container[str]) -> Route:
    """The route, or one in its place that says where it is not."""
    if role_name(route) in only:
        return route

    async def served_elsewhere(request: Request) -> Response:
        raise ServedElsewhere(served_as=role_name(route))

    bare = {"asgi": None, "body": None, "query": None, "role": None, "keyed": False, "takes_key": False}
    return replace(route, call=served_elsewhere, **bare)  # type: ignore[arg-type]
