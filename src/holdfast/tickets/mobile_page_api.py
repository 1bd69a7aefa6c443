"""The page of one ticket, at an address that only its owner was told; and the scripts beside it."""

import hashlib
from importlib import resources
from string import Template

from starlette.requests import Request
from starlette.responses import Response

from holdfast.errors import NoSuchRoute
from holdfast.tickets.api import NO_STORE, PhoneBody, bound, live_ticket, printed_of, tickets_of
from holdfast.tickets.mobile_page import policy, ticket_html
from holdfast.web.responses import answer, read
from holdfast.web.routing import RouteTable

STATIC = resources.files("holdfast.tickets") / "static"
SHELL = Template((STATIC / "ticket.html").read_text())
STYLE = (STATIC / "ticket.css").read_text()
SAFE = {
    "Content-Security-Policy": policy(STYLE),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
SCRIPTS = {name: (STATIC / name).read_bytes() for name in ("ticket.js", "worker.js")}
routes = RouteTable(tag="pages", bare=True)


@routes.get("/tickets/{link}")
async def get_ticket_page(request: Request) -> Response:
    """A ticket for a phone; its address is the key to it."""
    ticket = await tickets_of(request).ticket_at(request.path_params["link"])
    occasion = await tickets_of(request).occasion(ticket.show_id)
    printed = await printed_of(request, ticket)
    text = ticket_html(SHELL, STYLE, occasion, printed, ticket.codes)
    return Response(text, 200, {**NO_STORE, **SAFE}, "text/html")


@routes.post("/tickets/{link}/code", body=PhoneBody)
async def post_page_code(request: Request) -> Response:
    """The live code of the ticket on this page, for this phone."""
    body = read(PhoneBody, await request.body())
    ticket = await tickets_of(request).ticket_at(request.path_params["link"])
    code, secret = await bound(request, [ticket], body.phone)
    return answer(200, live_ticket(ticket, code, secret), NO_STORE)


@routes.get("/tickets/files/{file}")
async def get_ticket_script(request: Request) -> Response:
    name = request.path_params["file"]
    if name != "ticket.js":
        raise NoSuchRoute
    return _script(name)


@routes.get("/tickets/worker.js")
async def get_ticket_worker(request: Request) -> Response:
    """The service worker: here, because one rules over what is beneath its own address."""
    return _script("worker.js")


def _script(name: str) -> Response:
    etag = f'"{hashlib.sha256(SCRIPTS[name]).hexdigest()[:20]}"'
    headers = {**SAFE, "Cache-Control": "no-cache", "ETag": etag}
    return Response(SCRIPTS[name], 200, headers, "text/javascript")


ROUTES = routes.all
