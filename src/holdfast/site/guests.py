"""A visitor without an account gets one without a password: no sign-up to hold seats or to queue."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import Session
from holdfast.site.cookies import get_session
from holdfast.site.pages import get_localiser, set_session_headers
from holdfast.web.routing import get_app


async def current_or_new_guest(request: Request) -> tuple[Session, list[str]]:
    """The session and no cookies; or a new guest and the cookie that identifies it."""
    if (session := await get_session(request)) is not None:
        return session, []
    sessions, client = get_app(request).sessions, request.client
    cookie = await sessions.open_guest(
        get_localiser(request).language, client.host if client is not None else ""
    )
    session = await sessions.load(cookie)
    assert session is not None, "a new cookie has a session"
    return session, set_session_headers(request, cookie)


def with_cookies(response: Response, cookies: Sequence[str]) -> Response:
    """A refused guest gets the cookie too, so that the next try does not create another guest."""
    response.raw_headers += [(b"set-cookie", cookie.encode("latin-1")) for cookie in cookies]
    return response
