"""What all wires share: who asks, the body, the answer, and the answer that never comes."""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from holdfast.sandbox.behaviour import Reply
from holdfast.sandbox.errors import Refused
from holdfast.sandbox.gateway import Done, Till
from holdfast.sandbox.webhook import api_key

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
ASGI = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Sequence[tuple[bytes, bytes]]

BODY_BYTES_MAX = 65_536
KEY_LENGTH_MAX = 255
JSON: Headers = ((b"content-type", b"application/json"),)
REPLAYED = (b"idempotent-replayed", b"true")


class Shop(Struct, frozen=True):
    """The one merchant there is, and what a wire needs to serve them."""

    till: Till
    name: str  # what payers read
    secrets: tuple[str, ...]
    public_url: str = ""  # where payers reach us; empty: where the merchant does

    @property
    def api_keys(self) -> tuple[bytes, ...]:
        return tuple(api_key(secret).encode() for secret in self.secrets)


def header(scope: Scope, name: bytes) -> bytes:
    for found, value in scope["headers"]:
        if found == name:
            return bytes(value)
    return b""


def check_bearer(scope: Scope, keys: Sequence[bytes]) -> None:
    scheme, _, given = header(scope, b"authorization").partition(b" ")
    if scheme.lower() != b"bearer" or not any(hmac.compare_digest(given, key) for key in keys):
        raise Refused(401, "unauthorized", "This needs the sandbox's API key as a bearer token.")


def key_of(scope: Scope) -> str | None:
    """The idempotency key of a request."""
    key = header(scope, b"idempotency-key").decode("latin-1")
    if len(key) > KEY_LENGTH_MAX:
        raise Refused(400, "key_too_long", f"An idempotency key has at most {KEY_LENGTH_MAX} characters.")
    return key or None


def own_url(scope: Scope, public_url: str) -> str:
    if public_url:
        return public_url
    return f"{scope['scheme']}://{header(scope, b'host').decode('latin-1')}"


async def read_body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        part = await receive()
        if part["type"] == "http.disconnect":
            raise Refused(400, "gone", "The request was not finished.")
        body += part.get("body", b"")
        if len(body) > BODY_BYTES_MAX:
            raise Refused(413, "body_too_large", f"A body has at most {BODY_BYTES_MAX} bytes.")
        if not part.get("more_body"):
            return bytes(body)


async def reply(send: Send, status: int, body: bytes, headers: Headers = JSON) -> None:
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": (*headers, length)})
    await send({"type": "http.response.body", "body": body})


async def reply_done(done: Done, receive: Receive, send: Send, hold_s: float) -> None:
    """The answer, or the silence, that a request has earned."""
    if done.reply is Reply.LOST:
        await stay_silent(receive, send, hold_s)
    else:
        await reply(send, done.status, done.body, (*JSON, REPLAYED) if done.is_replayed else JSON)


async def stay_silent(receive: Receive, send: Send, hold_s: float) -> None:
    """Until they hang up; if they never do, we do. No byte is sent."""
    with suppress(TimeoutError):
        async with asyncio.timeout(hold_s):
            await _gone(receive)
            return
    # uvicorn would make a 500 of an application that says nothing; a cut connection is what is wanted.
    transport = getattr(getattr(send, "__self__", None), "transport", None)
    if transport is not None:
        transport.abort()
        await _gone(receive)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
