"""GET /demo/mail: mail that a demo stores instead of sending it.

Served only if `mail_page` is set and no mail server is configured. A mail is shown in a sandboxed frame.
"""

from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from holdfast.errors import NoSuchRoute
from holdfast.notifications.api import SAFE, policy
from holdfast.notifications.errors import NoSuchNotice
from holdfast.notifications.every_pod import load_stored_mail, load_stored_mails
from holdfast.notifications.message_data import load_templates, picture_url
from holdfast.notifications.render import leaf_parts
from holdfast.web.responses import PAGE_TOKENS
from holdfast.web.routing import RouteTable, get_app

if TYPE_CHECKING:
    from jinja2 import Template

    from holdfast.app import App

HEADERS = ("From", "Reply-To", "To", "Subject", "Date", "Message-ID")


@dataclass(frozen=True, slots=True)
class MailFile:
    name: str
    url: str


@dataclass(frozen=True, slots=True)
class StoredMail:
    sender: str
    reader: str
    headers: list[tuple[str, str]]
    html: str  # its pictures are in it
    text: str
    text_url: str
    files: list[MailFile]


def parse_mail(raw: bytes, address: str) -> StoredMail:
    """`address`: of its page."""
    message = _read(raw)
    html, text = message.get_body(("html",)), message.get_body(("plain",))
    assert html is not None, "every message has a page"
    assert text is not None, "and a text"
    page = str(html.get_content())
    for part in leaf_parts(message):
        if part["Content-ID"] is not None:
            name = str(part["Content-ID"]).strip("<>")
            page = page.replace(f"cid:{name}", picture_url(part.get_content()))
    # In its frame, a link opens in a window of its own: the frame itself goes nowhere.
    page = page.replace("<a href=", '<a target="_blank" rel="noopener noreferrer" href=')
    files = [
        MailFile(part.get_filename() or "file", f"{address}/files/{number}")
        for number, part in enumerate(leaf_parts(message))
        if part.is_attachment()
    ]
    headers = [(name, str(message[name])) for name in HEADERS if message[name] is not None]
    sender, reader = message["From"].addresses[0], message["To"].addresses[0]
    return StoredMail(
        sender.display_name or sender.addr_spec,
        str(reader),
        headers,
        page,
        str(text.get_content()),
        f"{address}/text",
        files,
    )


def find_file(raw: bytes, number: int) -> tuple[str, str, bytes] | None:
    """Name, media type and bytes of an attachment; None: it has none of this number."""
    for place, part in enumerate(leaf_parts(_read(raw))):
        if place == number and part.is_attachment():
            content = part.get_payload(decode=True)
            assert isinstance(content, bytes)
            return part.get_filename() or "file", part.get_content_type(), content
    return None


def _read(raw: bytes) -> EmailMessage:
    message = message_from_bytes(raw, policy=default)
    assert isinstance(message, EmailMessage)
    return message


FOLDER = resources.files("holdfast.notifications") / "templates"
PAGE = "/demo/mail"
HTML = "text/html"
routes = RouteTable(tag="pages", bare=True)


@routes.get(PAGE)
async def get_mail_list(request: Request) -> Response:
    """Mails that would have been sent, newest first."""
    rows, away = await load_stored_mails(_app(request))
    messages = [{**row, "at": f"{row['stored_at']:%H:%M:%S} UTC"} for row in rows]
    return _page(request, title="Mail", messages=messages, away=away, message=None)


@routes.get(PAGE + "/{mail}")
async def get_mail(request: Request) -> Response:
    """One of them."""
    raw, address = await _message(request), f"{PAGE}/{request.path_params['mail']}"
    message = parse_mail(raw, address)
    title = dict(message.headers)["Subject"]
    return _page(request, title=title, messages=[], away=[], message=message)


@routes.get(PAGE + "/{mail}/text")
async def get_mail_text(request: Request) -> Response:
    """The text of it."""
    message = parse_mail(await _message(request), "")
    return Response(message.text, 200, _headers(), "text/plain")


@routes.get(PAGE + "/{mail}/files/{file:int}")
async def get_mail_file(request: Request) -> Response:
    """An attachment of it."""
    found = find_file(await _message(request), int(request.path_params["file"]))
    if found is None:
        raise NoSuchNotice
    name, media_type, content = found
    headers = {**_headers(), "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, 200, headers, media_type)


def _app(request: Request) -> "App":
    app: App = get_app(request)
    if not app.config.mail_page or app.config.mail_url:
        raise NoSuchRoute
    return app


async def _message(request: Request) -> bytes:
    return await load_stored_mail(_app(request), request.path_params["mail"])


def _page(request: Request, **shown: object) -> Response:
    template, style = _files()
    keep_h = get_app(request).config.mail_keep_h
    text = template.render(style=style, keep_h=keep_h, **shown)
    return Response(text, 200, _headers(), HTML)


def _headers() -> dict[str, str]:
    # The frame's page has no address of its own and keeps to this policy, too.
    return {
        **SAFE,
        "Cache-Control": "no-store",
        "Content-Security-Policy": policy(_files()[1], load_templates().style),
        "X-Robots-Tag": "noindex",
    }


@cache
def _files() -> tuple["Template", str]:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    style = PAGE_TOKENS + (FOLDER / "demo_mailbox.css").read_text(encoding="utf-8").strip()
    return environment.from_string((FOLDER / "demo_mailbox.html").read_text(encoding="utf-8")), style


ROUTES = routes.all
