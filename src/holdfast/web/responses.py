"""What comes in, checked; what goes out, encoded.

Any input ends in a value of the requested type, or in Malformed (400) or Invalid (422) with the
field. What JSON allows and PostgreSQL does not store (NUL in a text, numbers beyond bigint) ends here too, so
that it never becomes a 500 further down.
"""

import asyncio
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.errors import Invalid, Malformed
from holdfast.web.routing import BIGINT_MAX, get_app

T = TypeVar("T")

# A body without any of these holds nothing that PostgreSQL refuses; the few that have one are looked through.
SUSPECT = re.compile(rb"\\u0000|[0-9]{19}")
WHERE = re.compile(r"^(.*) - at `(?:key in )?\$\.?(.*)`\Z", re.DOTALL)
UNKNOWN = re.compile(r"unknown field `(.*?)`", re.DOTALL)
MISSING = re.compile(r"missing required field `(.*?)`", re.DOTALL)
OFF_LOOP_BYTES = 262_144  # a smaller body is decoded faster than a thread takes it over
QUERY_FIELDS_MAX = 100

JSON = (b"content-type", b"application/json")
HTML = (b"content-type", b"text/html; charset=utf-8")
NO_BODY = frozenset({204, 304})

_decoders: dict[type, msgspec.json.Decoder[Any]] = {}  # one per type, built at its first use
_lists: dict[type, frozenset[str]] = {}  # the same
_encode = msgspec.json.Encoder().encode


_FILE = resources.files("holdfast.web") / "static" / "page_tokens.css"
PAGE_TOKENS = _FILE.read_text(encoding="utf-8")


class Answer(Response):
    """Leaner than its parent, which looks through the headers it is given."""

    def __init__(
        self,
        status: int,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        kind: tuple[bytes, bytes] = JSON,
    ) -> None:
        self.status_code = status
        self.background = None
        self.body = body
        self.raw_headers = []
        if status not in NO_BODY:
            self.raw_headers += (kind, (b"content-length", b"%d" % len(body)))
        if headers:
            self.raw_headers += [
                (k.lower().encode("latin-1"), v.encode("latin-1")) for k, v in headers.items()
            ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body})


def answer(status: int, content: object = None, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer. `bytes` are taken to be JSON already; 204 and 304 have no body."""
    if status in NO_BODY:
        return Answer(status, b"", headers)
    return Answer(status, content if isinstance(content, bytes) else _encode(content), headers)


def unchanged(request: Request, etag: str) -> Response | None:
    """304 when the asker has this version (If-None-Match), else None. `etag` comes with its quotes."""
    known = request.headers.get("if-none-match")
    return Answer(304, b"", {"ETag": etag}) if known is not None and _has(known, etag) else None


def site_of(request: Request) -> str:
    """Where people find us, without a slash at its end: as configured, or as they did this time."""
    return get_app(request).config.public_url.rstrip("/") or f"{request.url.scheme}://{request.url.netloc}"


def takes_packed(scope: Scope) -> bool:
    """Whether the caller reads gzip."""
    return b"gzip" in scope["state"]["headers"].get(b"accept-encoding", b"")


def _has(known: str, etag: str) -> bool:
    return known.strip() == "*" or etag in (tag.strip().removeprefix("W/") for tag in known.split(","))


class EncodedResponse:
    """A response that is the same for every client, encoded once, and its 304."""

    __slots__ = ("_same", "_whole", "body", "etag")

    def __init__(
        self,
        body: bytes,
        etag: str,
        cache_control: str,
        more: Mapping[str, str] | None = None,
        kind: tuple[bytes, bytes] = JSON,
    ) -> None:
        """`cache_control` and further headers."""
        headers = {"ETag": etag, "Cache-Control": cache_control, **(more or {})}
        self.body = body
        self.etag = etag
        self._whole = Answer(200, body, headers, kind)
        self._same = Answer(304, b"", headers)

    def to(self, headers: Mapping[bytes, bytes]) -> Response:
        """The response for these request headers: 304 if the client has this version (If-None-Match)."""
        known = headers.get(b"if-none-match")
        return self._same if known is not None and _has(known.decode("latin-1"), self.etag) else self._whole


def read(kind: type[T], raw: bytes) -> T:
    """The body as a `kind`, or a refusal that names the field."""
    try:
        value: T = decoder(kind).decode(raw)
    except msgspec.ValidationError as error:
        raise invalid(error) from None
    except UnicodeDecodeError:
        raise Malformed(detail="The body is not UTF-8.") from None
    except msgspec.DecodeError as error:
        raise Malformed(detail=f"{error}.") from None
    except RecursionError:
        raise Malformed(detail="The body is nested too deeply.") from None
    if SUSPECT.search(raw):
        _refuse_unstorable(msgspec.json.decode(raw), "")
    return value


async def read_off_loop(kind: type[T], raw: bytes) -> T:
    """`read` for routes that take large bodies: those are decoded beside the loop."""
    return await asyncio.to_thread(read, kind, raw) if len(raw) >= OFF_LOOP_BYTES else read(kind, raw)


def query(kind: type[T], request: Request) -> T:
    """The query parameters as a `kind`; a list field takes a repeated parameter."""
    raw = request.scope["query_string"]
    if not raw:
        return kind()
    try:
        pairs = parse_qsl(
            raw.decode("latin-1"), keep_blank_values=True, errors="strict", max_num_fields=QUERY_FIELDS_MAX
        )
    except ValueError:  # invalid UTF-8 behind a percent sign, or too many fields
        raise Invalid(field="", detail="The query string cannot be read.") from None
    lists = list_fields(kind)
    given: dict[str, Any] = {}
    for name, text in pairs:
        if name in lists:
            given.setdefault(name, []).append(text)
        elif name in given:  # ambiguous: a cache in front of us may choose the other one
            raise Invalid(field=name, detail="Expected the parameter once.")
        else:
            given[name] = text
    try:
        value = msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise invalid(error) from None
    _refuse_unstorable(msgspec.to_builtins(value), "")
    return value


def decoder(kind: type[T]) -> "msgspec.json.Decoder[T]":
    if kind not in _decoders:
        _decoders[kind] = msgspec.json.Decoder(kind)
    return _decoders[kind]


def list_fields(kind: type) -> frozenset[str]:
    """The parameters that may be repeated."""
    if kind not in _lists:
        _lists[kind] = _list_fields(kind)
    return _lists[kind]


def _list_fields(kind: type) -> frozenset[str]:
    listed = (msgspec.inspect.ListType, msgspec.inspect.VarTupleType, msgspec.inspect.SetType)
    shape = msgspec.inspect.type_info(kind)
    assert isinstance(shape, msgspec.inspect.StructType)
    return frozenset(f.encode_name for f in shape.fields if isinstance(f.type, listed))


def invalid(error: msgspec.ValidationError) -> Invalid:
    """msgspec says `Expected … - at `$.seats[2]``; we say which field, and what was expected, apart."""
    text, path = str(error), ""
    if at := WHERE.match(text):
        text, path = at.groups()
    if name := UNKNOWN.search(text) or MISSING.search(text):
        path = f"{path}.{name[1]}" if path else name[1]
    return Invalid(field=path, detail=f"{text}.")


def _refuse_unstorable(value: Any, path: str) -> None:
    """JSON values that PostgreSQL cannot store. Decoding has bounded the depth."""
    match value:
        case str() if "\0" in value:
            raise Invalid(field=path, detail="Expected text without NUL characters.")
        case int() if not -BIGINT_MAX - 1 <= value <= BIGINT_MAX:
            raise Invalid(field=path, detail="Expected an integer of at most 64 bits.")
        case float() if value != value or value in (float("inf"), float("-inf")):
            raise Invalid(field=path, detail="Expected a finite number.")
        case list():
            for index, item in enumerate(value):
                _refuse_unstorable(item, f"{path}[{index}]")
        case dict():
            for name, item in value.items():
                _refuse_unstorable(name, path)
                _refuse_unstorable(item, f"{path}.{name}" if path else name)


ALLOWED_HEADERS = (
    b"authorization, content-type, holdfast-organisation, idempotency-key, if-none-match, last-event-id, "
    b"x-request-id"
)
EXPOSED_HEADERS = (
    b"etag, idempotency-replayed, location, ratelimit, ratelimit-policy, retry-after, x-request-id"
)

RawHeaders = list[tuple[bytes, bytes]]


class Cors:
    def __init__(self, origins: str) -> None:
        """`origins`: comma-separated, as browsers send them (`https://tickets.example`), or `*`."""
        self._origins = frozenset(part.strip().encode() for part in origins.split(",") if part.strip())

    @property
    def is_on(self) -> bool:
        return bool(self._origins)

    def headers(self, origin: bytes | None) -> RawHeaders:
        """What every answer to this origin carries. No cookies: tokens travel in a header."""
        if origin is None or not (origin in self._origins or b"*" in self._origins):
            return []
        return [
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", EXPOSED_HEADERS),
            (b"vary", b"Origin"),
        ]

    def preflight(self, origin: bytes | None, allow: str) -> RawHeaders:
        allowed = self.headers(origin)
        if not allowed:
            return []
        return [
            *allowed,
            (b"access-control-allow-methods", allow.encode()),
            (b"access-control-allow-headers", ALLOWED_HEADERS),
            (b"access-control-max-age", b"600"),
        ]
