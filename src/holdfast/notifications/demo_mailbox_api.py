"""GET /demo/mail: the list, one mail in a frame that can do nothing, its text, its attachments.

Served where the operator has said so (`mail_page`) and no mail is sent; anywhere else it is not there.
"""

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from holdfast.errors import NoSuchRoute
from holdfast.notifications.api import SAFE, policy
from holdfast.notifications.demo_mailbox import file_in, kept_mail
from holdfast.notifications.errors import NoSuchNotice
from holdfast.notifications.store import NotificationStore
from holdfast.notifications.templating import stationery
from holdfast.web.context import get_app
from holdfast.web.routing import RouteTable

if TYPE_CHECKING:
    from jinja2 import Template

FOLDER = resources.files("holdfast.notifications") / "templates"
PAGE = "/demo/mail"
HTML = "text/html"
routes = RouteTable(tag="pages", bare=True)


@routes.get(PAGE)
async def get_mail_list(request: Request) -> Response:
    """Mails that would have been sent, newest first."""
    rows = await _notices(request).kept_letters()
    letters = [{**row, "at": f"{row['stored_at']:%H:%M:%S} UTC"} for row in rows]
    return _page(request, title="Mail", letters=letters, letter=None)


@routes.get(PAGE + "/{notice:int}")
async def get_mail(request: Request) -> Response:
    """One of them."""
    raw, address = await _letter(request), f"{PAGE}/{request.path_params['notice']}"
    letter = kept_mail(raw, address)
    title = dict(letter.headers)["Subject"]
    return _page(request, title=title, letters=[], letter=letter)


@routes.get(PAGE + "/{notice:int}/text")
async def get_mail_text(request: Request) -> Response:
    """The text of it."""
    letter = kept_mail(await _letter(request), "")
    return Response(letter.text, 200, _headers(), "text/plain")


@routes.get(PAGE + "/{notice:int}/files/{file:int}")
async def get_mail_file(request: Request) -> Response:
    """An attachment of it."""
    found = file_in(await _letter(request), int(request.path_params["file"]))
    if found is None:
        raise NoSuchNotice
    name, media_type, content = found
    headers = {**_headers(), "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, 200, headers, media_type)


def _notices(request: Request) -> NotificationStore:
    config = get_app(request).config
    if not config.mail_page or config.mail_url:
        raise NoSuchRoute
    store: NotificationStore = get_app(request).notifications
    return store


async def _letter(request: Request) -> bytes:
    return await _notices(request).kept_letter(request.path_params["notice"])


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
        "Content-Security-Policy": policy(_files()[1], stationery().style),
        "X-Robots-Tag": "noindex",
    }


@cache
def _files() -> tuple["Template", str]:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    style = (FOLDER / "demo_mailbox.css").read_text(encoding="utf-8").strip()
    return environment.from_string((FOLDER / "demo_mailbox.html").read_text(encoding="utf-8")), style


ROUTES = routes.all
