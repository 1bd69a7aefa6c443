"""GET shows the page of a payment, POST takes what the payer chose, and then they go back to the shop.

The address of a page is known to the merchant and the payer alone, and everything a form does is in its path:
who can post it has been shown it. The way back is the one the merchant gave when the payment was made.
"""

from html import escape
from importlib import resources
from string import Template
from urllib.parse import parse_qs

from holdfast.sandbox.errors import Refused
from holdfast.sandbox.http import ASGI, Headers, Receive, Scope, Send, Shop, read_body, reply
from holdfast.sandbox.page import METHOD, missing_page, offered, page_of, policy
from holdfast.sandbox.payment import Payment, State

FILES = resources.files("holdfast.sandbox") / "static"
CSS = (FILES / "page.css").read_bytes()
SHELL = Template((FILES / "page.html").read_text())
HTML = "text/html; charset=utf-8"


def pages(shop: Shop) -> ASGI:
    till, merchant = shop.till, escape(shop.name)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path"].removeprefix("/")
        if name == "page.css":
            await reply(send, 200, CSS, _headers("text/css; charset=utf-8", None, "max-age=3600"))
            return
        payment = till.find_by_page(name)
        if payment is None:
            text = SHELL.substitute(missing_page(), merchant=merchant)
            await reply(send, 404, text.encode(), _headers(HTML, None))
        elif scope["method"] == "POST":
            chosen = parse_qs((await read_body(receive)).decode("latin-1")).get("choice", [""])[-1]
            await _see_other(send, await _after(payment, chosen))
        elif scope["method"] in ("GET", "HEAD"):
            text = SHELL.substitute(page_of(payment, till.settings), merchant=merchant)
            await reply(send, 200, text.encode(), _headers(HTML, payment))
        else:
            raise Refused(405, "method_not_allowed", "A page is shown by GET and answered by POST.")

    async def _after(payment: Payment, chosen: str) -> str:
        """Where the payer goes when they have chosen."""
        here = f"/pay/{payment.page}"
        choice = next((one for one in offered(payment, till.settings) if one.name == chosen), None)
        if choice is None:
            return here
        if choice.plan is not None:
            method = METHOD if payment.state == State.REQUIRES_PAYER else ""
            try:
                payment = await till.decide(payment.page, choice.plan, method)
            except Refused:  # it was decided meanwhile, in another tab or by the merchant: the page says how
                return here
        return here if payment.state == State.REQUIRES_ACTION else payment.return_url or here

    return serve


async def _see_other(send: Send, url: str) -> None:
    await reply(send, 303, b"", ((b"location", url.encode()), (b"cache-control", b"no-store")))


def _headers(kind: str, payment: Payment | None, cache: str = "no-store") -> Headers:
    return (
        (b"content-type", kind.encode()),
        (b"content-security-policy", policy(payment).encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cache-control", cache.encode()),
    )
