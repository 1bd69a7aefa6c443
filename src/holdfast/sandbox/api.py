"""The native wire, under /v1, and who answers what else: the payment page, other wires.

    POST /v1/payments                create, and with a method charge      Idempotency-Key
    GET  /v1/payments                ?reference= · ?since=&after=&limit=
    GET  /v1/payments/{id}
    POST /v1/payments/{id}/confirm   with a method
    POST /v1/payments/{id}/cancel
    POST /v1/payments/{id}/refunds   amount_minor, or all that is left     Idempotency-Key
    GET  /v1/payments/{id}/refunds
    GET  /v1/refunds/{id}
    GET  /v1/methods/{token}         the card behind it
    GET  /v1/notices                 ?after=&limit=
    GET  /v1/control                 settings, counters, totals
    POST /v1/control                 change some settings

No framework: a charge costs little more than its commit.
"""

import hashlib
import resource
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import parse_qs, unquote

import msgspec
import structlog

from holdfast.errors import Busy
from holdfast.sandbox.api_forms import Confirmation, NewPayment, NewRefund, check, error_body, rendered
from holdfast.sandbox.behaviour import Settings, card_of
from holdfast.sandbox.database import Books
from holdfast.sandbox.errors import Refused
from holdfast.sandbox.gateway import Call
from holdfast.sandbox.http import (
    ASGI,
    Receive,
    Scope,
    Send,
    Shop,
    check_bearer,
    key_of,
    own_url,
    read_body,
    reply,
    reply_done,
)
from holdfast.sandbox.payment import Notice, payment_page, refund_page
from holdfast.sandbox.webhooks import Post

log = structlog.get_logger(__name__)

PAGE_MAX = 100
MISSING = Refused(404, "resource_missing", "There is no such thing here.")

Form = TypeVar("Form")

_encode = msgspec.json.Encoder().encode
_new_payment = msgspec.json.Decoder(NewPayment)


class Application:
    """The whole sandbox as an ASGI application."""

    def __init__(self, shop: Shop, books: Books, post: Post | None, wires: dict[str, ASGI]) -> None:
        self._shop = shop
        self._till = shop.till
        self._books = books
        self._post = post
        self._wires = wires
        self._keys = shop.api_keys
        self._began = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["path"] == "/v1/payments" and scope["method"] == "POST":
                await self._create(scope, receive, send)
            else:
                await self._find_way(scope, receive, send)
        except Refused as refused:
            await reply(send, refused.status, error_body(refused))
        except Busy:
            await reply(send, 503, error_body(Refused(503, "busy", "Too much at once. Try again.")))
        except Exception:
            log.exception("request failed", path=scope["path"])
            await reply(
                send, 500, error_body(Refused(500, "sandbox_broken", "This is a fault of the sandbox."))
            )

    async def _create(self, scope: Scope, receive: Receive, send: Send) -> None:
        check_bearer(scope, self._keys)
        form = _decoded(_new_payment.decode, await read_body(receive))
        call = self._call(scope, b"create", form)
        done = await self._till.create(form.order(), call)
        await reply_done(done, receive, send, self._till.settings.hold_s)

    def _call(self, scope: Scope, act: bytes, form: Any) -> Call:
        url = own_url(scope, self._shop.public_url)
        mark = hashlib.blake2b(act + b" " + _encode(form), digest_size=16).digest()
        return Call(key_of(scope), mark, lambda made: rendered(made, url))

    async def _find_way(self, scope: Scope, receive: Receive, send: Send) -> None:
        _, first, *rest = scope["raw_path"].decode("latin-1").split("/")
        if (wire := self._wires.get(first)) is not None:
            await wire({**scope, "path": scope["path"].removeprefix(f"/{first}")}, receive, send)
        elif first == "healthz":
            await reply(send, 200, b'{"status":"ok"}')
        elif first != "v1":
            raise MISSING
        else:
            check_bearer(scope, self._keys)
            await self._native(rest, scope, receive, send)

    async def _native(self, path: list[str], scope: Scope, receive: Receive, send: Send) -> None:
        path = [unquote(part) for part in path]
        match scope["method"], path:
            case "POST", ["payments", payment_id, "confirm"]:
                form = _decoded(msgspec.json.Decoder(Confirmation).decode, await read_body(receive))
                call = self._call(scope, f"confirm {payment_id}".encode(), form)
                done = await self._till.confirm(payment_id, form.method, call)
            case "POST", ["payments", payment_id, "cancel"]:
                done = await self._till.cancel(
                    payment_id, self._call(scope, f"cancel {payment_id}".encode(), {})
                )
            case "POST", ["payments", payment_id, "refunds"]:
                asked = _decoded(msgspec.json.Decoder(NewRefund).decode, await read_body(receive))
                check(asked.amount_minor is None or asked.amount_minor > 0, "amount_minor is at least 1")
                call = self._call(scope, f"refund {payment_id}".encode(), asked)
                done = await self._till.refund(payment_id, asked.amount_minor, call)
            case "POST", ["control"]:
                await self._set(await read_body(receive))
                await reply(send, 200, _encode(self._control()))
                return
            case "GET", _:
                await reply(send, 200, _encode(self._read(path, scope)))
                return
            case _:
                raise MISSING
        await reply_done(done, receive, send, self._till.settings.hold_s)

    # ── reading ───────────────────────────────────────────────────────────────────────

    def _read(self, path: list[str], scope: Scope) -> Any:
        query = {
            name: values[-1] for name, values in parse_qs(scope["query_string"].decode("latin-1")).items()
        }
        url = own_url(scope, self._shop.public_url)
        match path:
            case ["payments"] if "reference" in query:
                found = self._till.find_by_reference(query["reference"])
                return {"payments": [payment_page(one, url) for one in found], "next": None}
            case ["payments"]:
                return self._payments(query, url)
            case ["payments", payment_id] if payment := self._till.find(payment_id):
                return payment_page(payment, url)
            case ["payments", payment_id, "refunds"] if self._till.find(payment_id):
                return {"refunds": [refund_page(one) for one in self._till.refunds(payment_id)]}
            case ["refunds", refund_id] if refund := self._till.find_refund(refund_id):
                return refund_page(refund)
            case ["methods", token] if card := card_of(token):
                return {"method": token, "card": card}
            case ["notices"]:
                return self._notices(query)
            case ["control"]:
                return self._control()
        raise MISSING

    def _payments(self, query: dict[str, str], url: str) -> dict[str, Any]:
        limit = _number(query, "limit", PAGE_MAX)
        check(1 <= limit <= PAGE_MAX, f"limit is between 1 and {PAGE_MAX}")
        found = self._till.list(_number(query, "since", 0.0), query.get("after"), limit)
        more = found[-1].id if len(found) == limit else None
        return {"payments": [payment_page(one, url) for one in found], "next": more}

    def _notices(self, query: dict[str, str]) -> dict[str, Any]:
        limit = _number(query, "limit", PAGE_MAX)
        check(1 <= limit <= PAGE_MAX, f"limit is between 1 and {PAGE_MAX}")
        found = self._till.notices(_number(query, "after", 0), limit)
        more = found[-1].seq if len(found) == limit else None
        return {"notices": [_notice_page(one) for one in found], "next": more}

    # ── control ───────────────────────────────────────────────────────────────────────

    async def _set(self, body: bytes) -> None:
        changes = _decoded(msgspec.json.Decoder(dict[str, Any]).decode, body)
        wanted = {**msgspec.to_builtins(self._till.settings), **changes}
        settings = _decoded(lambda given: msgspec.convert(given, Settings), wanted)
        check(not (problem := settings.problem()), problem or "")
        await self._till.set(settings)

    def _control(self) -> dict[str, Any]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        post = self._post
        return {
            "settings": msgspec.to_builtins(self._till.settings),
            "counts": dict(self._till.counts),
            "notices": {**(post.counts if post else {}), "waiting": post.waiting if post else 0},
            "books": {"writes": self._books.writes, "commits": self._books.commits},
            "totals": [
                dict(zip(("state", "currency", "count", "amount_minor", "refunded_minor"), row, strict=True))
                for row in self._books.totals()
            ],
            "cpu_s": used.ru_utime + used.ru_stime,
            "up_s": time.monotonic() - self._began,
        }


def _notice_page(notice: Notice) -> dict[str, Any]:
    return {
        "seq": notice.seq,
        "body": msgspec.Raw(notice.body),
        "is_waiting": notice.due_at is not None,
        "attempts": notice.attempts,
        "delivered_at": notice.delivered_at,
    }


def _decoded(decode: Callable[[Any], Form], given: Any) -> Form:
    try:
        return decode(given)
    except msgspec.DecodeError as error:  # a ValidationError is one, too
        raise Refused(400, "invalid_request", str(error)) from None


Number = TypeVar("Number", int, float)


def _number(query: dict[str, str], name: str, default: Number) -> Number:
    try:
        return type(default)(query.get(name, default))
    except ValueError:
        raise Refused(400, "invalid_request", f"{name} is a number") from None
