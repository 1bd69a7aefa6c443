"""The page of one ticket: one file that works without a network once it was opened.

The link is the only key to it, so it needs no sign-in. Everything a person typed is escaped. The style is in
the page and named by its hash in the policy; the code is an SVG in the page. The script (live codes, offline
copy) is the only other file.
"""

import hashlib
import html
from base64 import b64encode
from hashlib import sha256
from importlib import resources
from string import Template

from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import locale_for
from holdfast.errors import NoSuchRoute
from holdfast.tickets.api import (
    NO_STORE,
    PhoneBody,
    bind_and_sign,
    get_tickets,
    live_ticket,
    load_printed_ticket,
)
from holdfast.tickets.issued import Codes, IssuedTicket, PrintedTicket, Standing, TicketShow
from holdfast.tickets.qr import svg
from holdfast.tickets.texts import TicketTexts
from holdfast.tickets.texts_files import texts_for
from holdfast.web.responses import PAGE_TOKENS, answer, read
from holdfast.web.routing import RouteTable, follow_show

STATIC = resources.files("holdfast.tickets") / "static"
SHELL = Template((STATIC / "ticket.html").read_text())
STYLE = PAGE_TOKENS + (STATIC / "ticket.css").read_text()
LABELS = ("section", "seat", "category", "booking", "code", "live_offline", "live_given_away")


def policy(style: str) -> str:
    """No script or style but ours, no picture from elsewhere, no frame around us."""
    digest = b64encode(sha256(style.encode()).digest()).decode()
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            f"style-src 'sha256-{digest}'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "worker-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def ticket_html(occasion: TicketShow, ticket: PrintedTicket, codes: Codes, texts: TicketTexts) -> str:
    is_live = codes is not Codes.FIXED and ticket.worth is Standing.GOOD
    notes = [texts["cancelled"]] if occasion.cancelled else []
    notes += [texts["live"]] if is_live else []
    notes += [texts[ticket.notice]]
    where = " · ".join(part for part in (occasion.hall, occasion.venue) if part)
    place = ", ".join(part for part in (occasion.address, occasion.city) if part)
    shown = {
        "lang": texts.locale.replace("_", "-"),
        "title": occasion.title,
        "when": texts.when(occasion),
        "starts_at": occasion.starts_at.isoformat(),
        "where": where,
        "place": place,
        "section": ticket.section,
        "seat": texts.seat(ticket),
        "category": ticket.category,
        "reference": ticket.reference,
        "standing": ticket.worth,
        "live": "live" if is_live else "fixed",
        "note": " ".join(notes),
    }
    shown |= {f"t_{name}": texts[name] for name in LABELS}
    escaped = {name: html.escape(str(text)) for name, text in shown.items()}
    drawn = svg(ticket.code) if ticket.code is not None else ""
    return SHELL.substitute(escaped, style=STYLE, qr=drawn)


SAFE = {
    "Content-Security-Policy": policy(STYLE),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
SCRIPTS = {name: (STATIC / name).read_bytes() for name in ("ticket.js", "worker.js")}
routes = RouteTable(tag="pages", bare=True)


async def _ticket_at(request: Request) -> IssuedTicket:
    """The ticket behind the link in the path."""
    link = request.path_params["link"]
    follow_show(request, await get_tickets(request).show_of_link(link))
    return await get_tickets(request).ticket_at(link)


@routes.get("/tickets/{link}")
async def get_ticket_page(request: Request) -> Response:
    """A ticket for a phone; its address is the key to it."""
    ticket = await _ticket_at(request)
    occasion = await get_tickets(request).occasion(ticket.show_id)
    printed = await load_printed_ticket(request, ticket)
    texts = texts_for(locale_for(request.state.headers))
    text = ticket_html(occasion, printed, ticket.codes, texts)
    return Response(text, 200, {**NO_STORE, **SAFE}, "text/html")


@routes.post("/tickets/{link}/code", body=PhoneBody)
async def post_page_code(request: Request) -> Response:
    """The live code of the ticket on this page, for this phone."""
    body = read(PhoneBody, await request.body())
    ticket = await _ticket_at(request)
    code, secret = await bind_and_sign(request, [ticket], body.phone)
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
