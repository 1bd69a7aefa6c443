"""Shared by all APIs: authentication, reading the body, sending the answer, and withholding it."""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from holdfast.sandbox.behaviour import ReplyPlan
from holdfast.sandbox.gateway import CallResult, GatewayCore
from holdfast.sandbox.payment import SandboxRefusal
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


class Merchant(Struct, frozen=True):
    """The only merchant, with everything that an API needs to serve it."""

    core: GatewayCore
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
        raise SandboxRefusal(401, "unauthorized", "This needs the sandbox's API key as a bearer token.")


def idempotency_key(scope: Scope) -> str | None:
    """The idempotency key of a request."""
    key = header(scope, b"idempotency-key").decode("latin-1")
    if len(key) > KEY_LENGTH_MAX:
        raise SandboxRefusal(
            400, "key_too_long", f"An idempotency key has at most {KEY_LENGTH_MAX} characters."
        )
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
            raise SandboxRefusal(400, "gone", "The request was not finished.")
        body += part.get("body", b"")
        if len(body) > BODY_BYTES_MAX:
            raise SandboxRefusal(413, "body_too_large", f"A body has at most {BODY_BYTES_MAX} bytes.")
        if not part.get("more_body"):
            return bytes(body)


async def send_reply(send: Send, status: int, body: bytes, headers: Headers = JSON) -> None:
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": (*headers, length)})
    await send({"type": "http.response.body", "body": body})


async def send_result(done: CallResult, receive: Receive, send: Send, hold_s: float) -> None:
    """The answer; or none, if the plan is that it gets lost."""
    if done.reply is ReplyPlan.LOST:
        await stay_silent(receive, send, hold_s)
    else:
        await send_reply(send, done.status, done.body, (*JSON, REPLAYED) if done.is_replayed else JSON)


async def stay_silent(receive: Receive, send: Send, hold_s: float) -> None:
    """Sends no byte until the client disconnects, or cuts the connection after `hold_s`."""
    with suppress(TimeoutError):
        async with asyncio.timeout(hold_s):
            await _gone(receive)
            return
    # uvicorn answers 500 for an application that sends nothing; we want a cut connection instead.
    transport = getattr(getattr(send, "__self__", None), "transport", None)
    if transport is not None:
        transport.abort()
        await _gone(receive)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
