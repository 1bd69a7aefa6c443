"""A small HTTP/1.1 client for load generators: one connection at a time, cookies, nothing else.

It costs a fraction of the CPU time of a general client. That matters because the client shares the machine
with the server it measures. A server that closes the connection after each response, as the synchronous
workers of gunicorn do, gets a new connection for the next request.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlencode, urlsplit

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
REDIRECTS = (301, 302, 303)
REDIRECTS_MAX = 5


class UnexpectedResponse(Exception):
    """The server did not answer as the journey expects: the run has no figure."""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: tuple[tuple[str, str], ...]  # names in lower case
    body: bytes

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key == name), "")


class _Exchange(asyncio.Protocol):
    """Collects the bytes of one response after the other."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._waiting: asyncio.Future[Response] | None = None
        self.is_open = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's class does not inherit from it

    def send(self, request: bytes) -> "asyncio.Future[Response]":
        self._buffer.clear()
        self._waiting = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._waiting

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._answer(parse_response(bytes(self._buffer)))

    def connection_lost(self, _: Exception | None) -> None:
        self.is_open = False
        self._answer(parse_response(bytes(self._buffer), is_over=True))
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(ConnectionResetError("closed before the response was complete"))

    def _answer(self, response: Response | None) -> None:
        if response is not None and self._waiting is not None and not self._waiting.done():
            if response.header("connection").lower() == "close":
                self.is_open = False
                self.transport.close()
            self._waiting.set_result(response)


def parse_response(data: bytes, *, is_over: bool = False) -> Response | None:
    """The response in these bytes; None while it is incomplete. `is_over`: no more bytes will come."""
    head, end, body = data.partition(b"\r\n\r\n")
    if not end:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    headers = tuple((name.lower(), value.strip()) for name, _, value in pairs)
    response = Response(int(first.split(" ", 2)[1]), headers, body)
    if response.status in (204, 304):
        return response
    if response.header("transfer-encoding") == "chunked":
        whole = join_chunks(body)
        return None if whole is None else Response(response.status, headers, whole)
    if length := response.header("content-length"):
        return response if len(body) >= int(length) else None
    return response if is_over else None


def join_chunks(body: bytes) -> bytes | None:
    """The content of a chunked body; None while it is incomplete."""
    whole, rest = b"", body
    while True:
        size, end, rest = rest.partition(b"\r\n")
        if not end:
            return None
        count = int(size.split(b";")[0], 16)
        if len(rest) < count + 2:
            return None
        if count == 0:
            return whole
        whole, rest = whole + rest[:count], rest[count + 2 :]


@dataclass
class Client:
    """One buyer's connection and cookies."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)
    timeout_s: float = 60.0
    _exchange: _Exchange | None = None

    def __post_init__(self) -> None:
        address = urlsplit(self.url)
        self._host, self._port, self._name = address.hostname or "", address.port or 80, address.netloc

    async def get(self, path: str) -> Response:
        return await self._request("GET", path, b"", "")

    async def post_json(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> Response:
        return await self._request("POST", path, body, JSON, headers)

    async def post_form(self, path: str, form: Mapping[str, str | list[str]]) -> Response:
        return await self._request("POST", path, urlencode(form, doseq=True).encode(), FORM)

    async def follow(self, response: Response) -> Response:
        """The page that a response leads to, as a browser loads it."""
        for _ in range(REDIRECTS_MAX):
            if response.status not in REDIRECTS:
                return response
            response = await self.get(path_in(response.header("location")))
        raise UnexpectedResponse(f"more than {REDIRECTS_MAX} redirects")

    def close(self) -> None:
        if self._exchange is not None:
            self._exchange.transport.close()

    async def _request(
        self, method: str, path: str, body: bytes, kind: str, more: Mapping[str, str] | None = None
    ) -> Response:
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self._name}"]
        lines += [f"{name}: {value}" for name, value in {**self.headers, **(more or {})}.items()]
        if self.cookies:
            lines.append("Cookie: " + "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        if method == "POST":
            lines += [f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
        async with asyncio.timeout(self.timeout_s):
            exchange = await self._connect()
            response = await exchange.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        for name, value in response.headers:
            if name == "set-cookie":
                self._store_cookie(value)
        return response

    async def _connect(self) -> _Exchange:
        if self._exchange is None or not self._exchange.is_open:
            loop = asyncio.get_running_loop()
            _, self._exchange = await loop.create_connection(_Exchange, self._host, self._port)
        return self._exchange

    def _store_cookie(self, line: str) -> None:
        name, _, value = line.partition(";")[0].partition("=")
        self.cookies[name.strip()] = value.strip()


def path_in(location: str) -> str:
    """Path and query of an address, absolute or not."""
    address = urlsplit(location)
    return address.path + (f"?{address.query}" if address.query else "")


def expect(response: Response, *statuses: int) -> Response:
    if response.status not in statuses:
        text = response.body[:300].decode(errors="replace")
        raise UnexpectedResponse(f"status {response.status}, expected {statuses}: {text}")
    return response
