"""An HTTP/1.1 connection that stays open and posts one body after another.

Thin on purpose: notices are sent as often as payments are made, on the cores the shop runs on.
"""

import asyncio
import ssl
from typing import Any, cast
from urllib.parse import urlsplit

import httptools
from msgspec import Struct

from holdfast.engines.errors import OperatorError

CONNECT_WITHIN_S = 3.0
ANSWER_WITHIN_S = 10.0


class Unreachable(Exception):
    """Nobody listens there: nothing was sent."""


class Target(Struct, frozen=True):
    host: str
    port: int
    is_tls: bool
    head: bytes  # of every request, up to its own headers

    @classmethod
    def of(cls, url: str) -> "Target":
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OperatorError(f"notices cannot be sent to {url}: it is no http or https address")
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {parts.netloc.rpartition('@')[2]}\r\n"
            "User-Agent: holdfast-sandbox\r\nContent-Type: application/json\r\n"
        )
        is_tls = parts.scheme == "https"
        return cls(parts.hostname, parts.port or (443 if is_tls else 80), is_tls, head.encode())


class Link(asyncio.Protocol):
    """`post` is awaited before it is called again."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._transport: asyncio.Transport | None = None
        self._parser: Any = None
        self._answer: asyncio.Future[int] | None = None

    async def post(self, headers: bytes, body: bytes) -> int:
        """The status; 0 when the answer did not come. Raises Unreachable."""
        if self._transport is None or self._transport.is_closing():
            await self._connect()
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(
            b"%b%bContent-Length: %d\r\n\r\n%b" % (self._target.head, headers, len(body), body)
        )
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                return await self._answer
        except TimeoutError:
            self.close()
            return 0
        finally:
            self._answer = None

    async def _connect(self) -> None:
        target = self._target
        try:
            async with asyncio.timeout(CONNECT_WITHIN_S):
                await asyncio.get_running_loop().create_connection(
                    lambda: self,
                    target.host,
                    target.port,
                    ssl=ssl.create_default_context() if target.is_tls else None,
                )
        except (OSError, TimeoutError) as error:
            raise Unreachable(str(error)) from None

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # ── the protocol's side ───────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one without saying so
        self._parser = httptools.HttpResponseParser(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.close()

    def eof_received(self) -> None:
        self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._settle(0)

    def on_message_complete(self) -> None:
        is_kept = self._parser.should_keep_alive()
        self._settle(self._parser.get_status_code())
        if not is_kept:
            self.close()

    def _settle(self, status: int) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(status)
