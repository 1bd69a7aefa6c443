"""Cookies of a browser's request: the session, the language, the city; and where the request comes from."""

from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from starlette.requests import Request

from holdfast.accounts import LANGUAGE_COOKIE, Session
from holdfast.holds import get_party
from holdfast.site.seat_form import Buyer
from holdfast.web.routing import get_app

SESSION = "holdfast"  # proxies must not cache responses to requests with this cookie
# Under https: a browser takes a cookie of this name only from this very host and only encrypted, so that
# neither a subdomain nor a plain connection can plant one. SESSION is read, too: old sessions continue.
HOST_SESSION = "__Host-holdfast"
NAME = "holdfast_name"  # who is signed in, for scripts of pages that all readers share; proves nothing
LANGUAGE = LANGUAGE_COOKIE
CITY = "holdfast_city"
ATTEMPT = "holdfast_oidc"  # a sign-in with a service that was begun in this browser
HOST_ATTEMPT = "__Host-holdfast_oidc"  # as HOST_SESSION; under https, ATTEMPT is not read
ADMISSION = "holdfast_admission"  # passes of waiting rooms; signed, and each for one account and one show
COOKIE_NAMES = frozenset({SESSION, HOST_SESSION, LANGUAGE, CITY, ATTEMPT, HOST_ATTEMPT, ADMISSION})
YEAR_S = 31_536_000
NAME_LENGTH_MAX = 40
COOKIES_BYTES_MAX = 16_384  # a whole domain may share them


def parse_cookies(header: bytes | None) -> dict[str, str]:
    """Our cookies in a Cookie header. Other sites' cookies are ignored, even malformed ones."""
    if not header or len(header) > COOKIES_BYTES_MAX:
        return {}
    pairs = (part.partition("=") for part in header.decode("latin-1").split(";"))
    return {name: value.strip() for spaced, _, value in pairs if (name := spaced.strip()) in COOKIE_NAMES}


def set_cookie(name: str, value: str, *, is_secure: bool, life_s: int = YEAR_S) -> str:
    """A Set-Cookie that scripts cannot read and other sites cannot send along with a form."""
    parts = [f"{name}={value}", "Path=/", f"Max-Age={life_s}", "HttpOnly", "SameSite=Lax"]
    return "; ".join([*parts, "Secure"] if is_secure else parts)


def set_session(value: str, cookies: Mapping[str, str], *, is_secure: bool) -> list[str]:
    """The Set-Cookie headers of a session; an empty `value` ends it. `cookies` are those of the request."""
    life_s = YEAR_S if value else 0
    name = HOST_SESSION if is_secure else SESSION
    headers = [set_cookie(name, value, is_secure=is_secure, life_s=life_s)]
    if is_secure and SESSION in cookies:  # it would be read again when the other one ends
        headers.append(clear_cookie(SESSION, is_secure=True))
    return headers


def set_attempt(value: str, *, life_s: int, is_secure: bool) -> str:
    """The Set-Cookie header of an attempt to sign in with a service; an empty one ends it."""
    name = HOST_ATTEMPT if is_secure else ATTEMPT
    return set_cookie(name, value, is_secure=is_secure, life_s=life_s if value else 0)


def set_name(name: str, *, is_secure: bool) -> str:
    """The Set-Cookie header of the name that the header shows; an empty one ends it."""
    parts = [f"{NAME}={quote(name[:NAME_LENGTH_MAX])}", "Path=/", f"Max-Age={YEAR_S if name else 0}"]
    return "; ".join([*parts, "SameSite=Lax", "Secure"] if is_secure else [*parts, "SameSite=Lax"])


def clear_cookie(name: str, *, is_secure: bool) -> str:
    return set_cookie(name, "", is_secure=is_secure, life_s=0)


def is_same_origin(headers: Mapping[bytes, bytes], host: str) -> bool:
    """Whether this form was sent by our own page, and not by another site in the same browser.

    Current browsers send Sec-Fetch-Site, older ones at least Origin. A client that sends neither is not a
    browser and has no cookies that another site could abuse.
    """
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        return site in (b"same-origin", b"none")
    origin = headers.get(b"origin")
    return origin is None or urlsplit(origin.decode("latin-1")).netloc == host


def safe_path(path: str, otherwise: str = "/") -> str:
    """A path on this site to return to; anything else is replaced by `otherwise`."""
    fine = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if fine and "\\" not in path and len(path) <= 1000 else otherwise


def get_cookies(request: Request) -> dict[str, str]:
    """Parsed once per request."""
    state = request.scope["state"]
    if "cookies" not in state:
        state["cookies"] = parse_cookies(state["headers"].get(b"cookie"))
    found: dict[str, str] = state["cookies"]
    return found


def get_admission(request: Request) -> str:
    """The passes of this browser; empty: it has none."""
    return get_cookies(request).get(ADMISSION, "")


def get_city(request: Request) -> str | None:
    """The slug of the city from the cookie; the city may no longer exist."""
    return get_cookies(request).get(CITY) or None


def get_buyer(request: Request, session: Session) -> Buyer:
    """Whom seats are held for. Until an address is proved, a buyer counts for the range it comes from."""
    admission = get_admission(request)
    if session.account.is_verified:
        return Buyer(session.account_id, "", is_guest=False, admission=admission)
    return Buyer(session.account_id, get_party(request), session.is_guest, admission)


async def get_session(request: Request) -> Session | None:
    """Loaded once per request; None for a missing, broken or expired cookie."""
    state = request.scope["state"]
    if "session" not in state:
        cookies = get_cookies(request)
        cookie = cookies.get(HOST_SESSION) or cookies.get(SESSION)
        state["session"] = await get_app(request).sessions.load(cookie) if cookie else None
    session: Session | None = state["session"]
    return session
