"""/my: all that is mine. And the worker that keeps it, with its tickets, for when there is no network."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.site.booking_page import KEEP
from holdfast.site.my_bookings import all_of
from holdfast.site.pages import SAFE, page, visit_of
from holdfast.site.templates_env import edition, files
from holdfast.web.context import get_app
from holdfast.web.routing import RouteTable

WORKER = "js/checkout_worker.js"
routes = RouteTable(tag="site", bare=True)


@routes.get("/my")
async def get_my(request: Request) -> Response:
    """My bookings: what is open, what is coming, what is over. Of a guest: those of this browser."""
    visit = await visit_of(request)
    mine = await all_of(get_app(request), visit) if visit is not None else None
    headers = KEEP if visit is not None else {}
    return page(request, "checkout/my.html", headers=headers, visit=visit, mine=mine)


@routes.get("/my/offline")
async def get_offline(request: Request) -> Response:
    """What a browser shows without a network where it has kept nothing. Nothing of anybody is in it."""
    return page(request, "checkout/offline.html", headers=KEEP)


@routes.get("/my-tickets-worker.js")
async def get_worker(request: Request) -> Response:
    """The service worker of /my and /bookings; at the root, because it is registered for both."""
    script = files()[WORKER].content.replace(b"{{edition}}", edition().encode())
    return Response(script, 200, {**SAFE, "Cache-Control": "no-cache"}, "text/javascript")


ROUTES = routes.all
