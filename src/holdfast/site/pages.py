"""Renders pages, reads forms and finds the session of a request. Every page module uses this one.

render_page(request, "home.html", …)               a private page, never cached
render_public_page(request, "home.html", key, …)   the same for all of a locale, rendered once per second
read_form(request, Form)                           a posted form, checked
get_session(request)                               the session or None; require_session: or sign-in
redirect(path)                                     303
"""

from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from holdfast.accounts import LANGUAGES, Session, locale_for
from holdfast.errors import Invalid, NoSuchRoute, SecondFactorNeeded
from holdfast.site.cookies import (
    ADMISSION,
    ATTEMPT,
    HOST_ATTEMPT,
    LANGUAGE,
    clear_cookie,
    get_admission,
    get_cookies,
    get_session,
    is_same_origin,
    safe_path,
    set_attempt,
    set_cookie,
    set_name,
    set_session,
)
from holdfast.site.errors import ForeignForm, SignInFirst
from holdfast.site.i18n import Localiser
from holdfast.site.templates_env import (
    assets_version,
    environment_for,
    gzip_quickly,
    localiser_for,
    static_files,
)
from holdfast.waitingroom import PASS_LIFE_MAX_S, PASSES_MAX, SEPARATOR
from holdfast.web.card_number import CardNumber, has_card_number
from holdfast.web.response_cache import CacheablePage, fresh_or_stale
from holdfast.web.responses import HTML, Answer, invalid, takes_packed, unchanged
from holdfast.web.routing import RouteTable, get_app

T = TypeVar("T")
LoadContext = Callable[[], Awaitable[Mapping[str, Any]]]

FORM_FIELDS_MAX = 200
PACK_FROM_BYTES = 700
ATTEMPT_S = 600  # to sign in with a service
ADMISSION_S = PASS_LIFE_MAX_S
STATIC_FOR_A_YEAR = "public, max-age=31536000, immutable"
SECONDS = "public, max-age=1, stale-while-revalidate=2"
NO_STORE = "no-store"
IN_A_PATH = "/?#[]@!$&'()*+,;=:%~"  # what an address keeps as it is
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "manifest-src": "'self'",
    "worker-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(self), microphone=()",
    "Vary": "Accept-Encoding, Accept-Language, Cookie",
}

PRIVATE_HEADERS = {**SECURITY_HEADERS, "Cache-Control": NO_STORE}
routes = RouteTable(tag="site", bare=True)


def content_security_policy(more: Mapping[str, str] | None = None) -> str:
    """What a page may load; `more` adds sources to a directive: a gateway's form, its element."""
    if not more:
        return OWN_POLICY
    directives = dict(POLICY)
    for name, sources in more.items():
        directives[name] = f"{directives.get(name, '')} {sources}".strip()
    return _join_directives(directives)


def _join_directives(directives: Mapping[str, str]) -> str:
    return "; ".join(f"{name} {sources}" for name, sources in directives.items())


OWN_POLICY = _join_directives(POLICY)


def get_locale(request: Request) -> str:
    return locale_for(request.scope["state"]["headers"])


def get_localiser(request: Request) -> Localiser:
    return localiser_for(get_locale(request))


async def require_session(request: Request) -> Session:
    """The session of an account or guest; without one the sign-in page, which leads back here."""
    if (session := await get_session(request)) is None:
        raise SignInFirst(back=current_path(request))
    return session


def current_path(request: Request) -> str:
    query = request.scope["query_string"].decode("latin-1")
    return safe_path(request.scope["path"] + (f"?{query}" if query else ""))


def render_page(
    request: Request,
    template: str,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **context: Any,
) -> Response:
    """A private page. `headers` may replace the security policy: see content_security_policy()."""
    l10n = get_localiser(request)
    body = render(template, l10n, path=request.scope["path"], **shell(request, l10n), **context)
    given = {"Content-Security-Policy": content_security_policy(), **PRIVATE_HEADERS, **(headers or {})}
    if takes_packed(request.scope) and len(body) >= PACK_FROM_BYTES:
        body, given["Content-Encoding"] = gzip_quickly(body), "gzip"
    return Answer(status, body, given, HTML)


async def render_public_page(
    request: Request, template: str, key: tuple[Hashable, ...], make: LoadContext
) -> Response:
    """A page that is the same for all readers of a locale. `make` loads the template's context."""
    l10n, path = get_localiser(request), request.scope["path"]

    async def rendered() -> bytes:
        return render(template, l10n, path=path, **shell(request, l10n), **await make())

    pages = get_app(request).pages
    cached = await fresh_or_stale(pages, CacheablePage((template, l10n.locale, path, *key), rendered))
    given = {
        "Content-Security-Policy": content_security_policy(),
        **SECURITY_HEADERS,
        "Cache-Control": SECONDS,
        "ETag": cached.etag,
    }
    if known := unchanged(request, cached.etag):
        return known
    if takes_packed(request.scope):
        return Response(cached.packed, 200, {**given, "Content-Encoding": "gzip"}, "text/html")
    return Response(cached.body, 200, given, "text/html")


def shell(request: Request, l10n: Localiser) -> dict[str, Any]:
    """What the head and the foot of every page show, from memory."""
    return {"house": house_name(request, l10n), "legal": get_app(request).legal.links()}


def house_name(request: Request, l10n: Localiser) -> str:
    """Ours until the house has one."""
    return get_app(request).house.name or l10n.t("shell.name")


def render(template: str, l10n: Localiser, **context: Any) -> bytes:
    text = (
        environment_for(l10n.language)
        .get_template(template)
        .render(l10n=l10n, t=l10n.t, money=l10n.money, price=l10n.price, **context)
    )
    return text.encode()


def redirect(path: str, *more_cookies: str) -> Response:
    """Go and look there: the answer to every form that did something."""
    there = quote(path, safe=IN_A_PATH)  # a header is ASCII, whatever script was searched in
    response = Response(status_code=303, headers={"Location": there, "Cache-Control": NO_STORE})
    for cookie in more_cookies:
        response.raw_headers.append((b"set-cookie", cookie.encode("latin-1")))
    return response


def set_cookie_header(request: Request, name: str, value: str) -> str:
    return set_cookie(name, value, is_secure=_is_secure(request))


def set_session_headers(request: Request, cookie: str, name: str = "") -> list[str]:
    """The cookies of a session; `name` of the account, for the header of pages that all readers share."""
    is_secure = _is_secure(request)
    return [
        *set_session(cookie, get_cookies(request), is_secure=is_secure),
        set_name(name, is_secure=is_secure),
    ]


def get_attempt_cookie(request: Request) -> str:
    """Of a sign-in with a service; empty: this browser has begun none."""
    return get_cookies(request).get(HOST_ATTEMPT if _is_secure(request) else ATTEMPT, "")


def set_attempt_header(request: Request, cookie: str) -> str:
    return set_attempt(cookie, life_s=ATTEMPT_S, is_secure=_is_secure(request))


def set_admission_header(request: Request, admission: str) -> str:
    """Adds a pass to those that the browser has for other shows; the newest come first."""
    known = [text for text in get_admission(request).split(SEPARATOR) if text and text != admission]
    passes = SEPARATOR.join([admission, *known][:PASSES_MAX])
    return set_cookie(ADMISSION, passes, is_secure=_is_secure(request), life_s=ADMISSION_S)


def clear_cookie_header(request: Request, name: str) -> str:
    return clear_cookie(name, is_secure=_is_secure(request))


class EmptyForm(msgspec.Struct):
    """A button alone."""


async def read_form(request: Request, kind: type[T]) -> T:
    """A posted form as a `kind`; a list field takes a repeated name. Refuses forms of other origins."""
    refuse_foreign_form(request)
    raw = await request.body()
    try:
        pairs = parse_qsl(
            raw.decode("latin-1"), keep_blank_values=True, errors="strict", max_num_fields=FORM_FIELDS_MAX
        )
    except ValueError:
        raise Invalid(field="", detail="The form cannot be read.") from None
    # In the decoded texts: encoded, a blank is a plus, and the @ after the digits of an address is not seen.
    if any(has_card_number(text) for pair in pairs for text in pair):
        raise CardNumber
    shape = msgspec.inspect.type_info(kind)
    assert isinstance(shape, msgspec.inspect.StructType)
    lists = {f.encode_name for f in shape.fields if isinstance(f.type, msgspec.inspect.ListType)}
    given: dict[str, Any] = {}
    for name, text in pairs:
        if "\0" in text:
            raise Invalid(field=name, detail="Expected text without NUL characters.")
        if name in lists:
            given.setdefault(name, []).append(text)
        else:
            given[name] = text.strip()
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise invalid(error) from None


def refuse_foreign_form(request: Request) -> None:
    if not is_same_origin(request.scope["state"]["headers"], request.url.netloc):
        raise ForeignForm


def wants_json(request: Request) -> bool:
    """Whether a script sent this form; the response is then JSON with the path instead of a redirect."""
    return b"application/json" in request.scope["state"]["headers"].get(b"accept", b"")


def problem_page(scope: Scope, problem: Answer) -> Response | None:
    """A refusal as an HTML page; None for clients that read problem+json."""
    headers = scope["state"]["headers"]
    path: str = scope["path"]
    if path.startswith("/api/") or b"text/html" not in headers.get(b"accept", b""):
        return None
    request, details = Request(scope), msgspec.json.decode(problem.body)
    if details["code"] == SignInFirst.code:
        return redirect(f"/sign-in?{urlencode({'back': details['back'], 'why': 'private'})}")
    if details["code"] == SecondFactorNeeded.code:
        return redirect("/account/security?notice=needed")
    carried = (b"retry-after", b"allow")
    carried_headers = {k.decode(): v.decode() for k, v in problem.raw_headers if k in carried}
    l10n = get_localiser(request)
    known = l10n.has(f"problems.{details['code']}")
    return render_page(
        request,
        "problem.html",
        status=problem.status_code,
        headers=carried_headers,
        problem=details,
        sentence=l10n.t(f"problems.{details['code']}") if known else details["detail"],
        back=_previous_page(request),
    )


def _previous_page(request: Request) -> str:
    """The page of this site that led here, else the home page."""
    sent = request.scope["state"]["headers"].get(b"referer", b"").decode("latin-1")
    return safe_path(sent.removeprefix(str(request.base_url).rstrip("/")))


class LanguageForm(msgspec.Struct):
    language: str
    back: str = "/"


@routes.post("/language")
async def post_language(request: Request) -> Response:
    data = await read_form(request, LanguageForm)
    if data.language not in LANGUAGES:
        raise Invalid(field="language", detail="Expected a language that we speak.")
    return redirect(safe_path(data.back), set_cookie_header(request, LANGUAGE, data.language))


@routes.get("/static/{edition}/{part}/{file}/{inner}")
@routes.get("/static/{edition}/{part}/{file}")
@routes.get("/static/{edition}/{part}")
async def get_file(request: Request) -> Response:
    """A script, a style, a picture. Its address has the edition, so browsers may cache it for a year."""
    params = request.path_params
    name = "/".join(str(params[part]) for part in ("part", "file", "inner") if part in params)
    file = static_files().get(name)
    if file is None:
        raise NoSuchRoute
    is_current = params["edition"] == assets_version()
    headers = {**SECURITY_HEADERS, "Cache-Control": STATIC_FOR_A_YEAR if is_current else "no-cache"}
    if file.packed is not None and takes_packed(request.scope):
        return Response(file.packed, 200, {**headers, "Content-Encoding": "gzip"}, file.media_type)
    return Response(file.content, 200, headers, file.media_type)


def _is_secure(request: Request) -> bool:
    return request.url.scheme == "https" or get_app(request).config.public_url.startswith("https:")


ROUTES = routes.all
