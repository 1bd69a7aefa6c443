"""/admin/notices: what could not be sent, sent again; what people get to see; under whose name it goes."""

from base64 import b64encode
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import Response

from holdfast.notifications.errors import NoSuchNotice
from holdfast.notifications.every_pod import load_notices
from holdfast.notifications.every_pod import replay_notice as replay_in_pod
from holdfast.notifications.message_data import load_templates, sample_html, sample_message
from holdfast.notifications.notice import (
    NoticeKind,
    NoticeList,
    NoticePage,
    NoticesQuery,
    PodNoticeQuery,
    PreviewQuery,
    SenderBody,
)
from holdfast.notifications.render import render_text
from holdfast.notifications.store import NotificationStore
from holdfast.web.caller import Right, Role
from holdfast.web.responses import answer, query, read
from holdfast.web.routing import RouteTable, get_app, get_scope

NO_STORE = {"Cache-Control": "no-store"}
routes = RouteTable(tag="notifications")


@routes.get("/admin/notices", query=NoticesQuery, answers={200: NoticeList}, role=Role.ADMIN)
async def list_notices(request: Request) -> Response:
    """What people are sent, newest first: the dead, the queued, or all."""
    return answer(200, await load_notices(get_app(request), query(NoticesQuery, request)), NO_STORE)


@routes.post(
    "/admin/notices/{notice:int}/replay",
    query=PodNoticeQuery,
    answers={200: NoticePage},
    refusals=(NoSuchNotice,),
    role=Role.ADMIN,
)
async def replay_notice(request: Request) -> Response:
    """Send a notice again, now.

    One that never arrived is sent as the same mail; one that was sent goes out once more, as a new one.
    """
    pod, notice_id = query(PodNoticeQuery, request).pod, request.path_params["notice"]
    return answer(200, await replay_in_pod(get_app(request), notice_id, pod), NO_STORE)


@routes.get(
    "/admin/notices/preview/{kind}",
    query=PreviewQuery,
    answers={200: bytes},
    refusals=(NoSuchNotice,),
    media_types=("text/html", "text/plain"),
    role=Role.ORGANISER,
    right=Right.MESSAGES,
)
async def preview_notice(request: Request) -> Response:
    """What people get to see, with made-up data: the page of a mail, or with `text=true` the text of it."""
    wanted = query(PreviewQuery, request)
    try:
        kind = NoticeKind(request.path_params["kind"])
    except ValueError:
        raise NoSuchNotice(kinds=list(NoticeKind)) from None
    message = sample_message(kind, wanted.locale, load_templates())
    if wanted.text:
        return Response(render_text(message, load_templates()), 200, {**NO_STORE, **SAFE}, "text/plain")
    page = sample_html(message, load_templates())
    headers = {**NO_STORE, **SAFE, "Content-Security-Policy": policy(load_templates().style)}
    return Response(page, 200, headers, "text/html")


@routes.get(
    "/admin/notices/sender",
    answers={200: SenderBody},
    refusals=(NoSuchNotice,),
    role=Role.ORGANISER,
    right=Right.MESSAGES,
)
async def get_notice_sender(request: Request) -> Response:
    """Under which name your messages go out."""
    sender = await _notices(request).sender(get_scope(request).owner_id)
    if sender is None:
        raise NoSuchNotice
    return answer(200, sender, NO_STORE)


@routes.put(
    "/admin/notices/sender",
    body=SenderBody,
    answers={200: SenderBody},
    role=Role.ORGANISER,
    right=Right.MESSAGES,
)
async def set_notice_sender(request: Request) -> Response:
    """Say under which name messages about your shows go out, and where answers to them go.

    The address they come from stays the box office's: mail servers believe no other.
    """
    body = read(SenderBody, await request.body())
    await _notices(request).set_sender(get_scope(request).owner_id, body)
    return answer(200, body, NO_STORE)


SAFE = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}


def policy(*styles: str) -> str:
    """These styles, pictures that are in the page, and nothing else."""
    hashes = (b64encode(sha256(style.encode()).digest()).decode() for style in styles)
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    return (
        f"default-src 'none'; style-src {allowed}; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _notices(request: Request) -> NotificationStore:
    store: NotificationStore = get_app(request).notifications
    return store


ROUTES = routes.all
