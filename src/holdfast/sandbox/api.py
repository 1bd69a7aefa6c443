"""The sandbox's API under /v1, and the dispatch to the payment page and to added APIs.

    POST /v1/payments                create, and with a method charge      Idempotency-Key
    GET  /v1/payments                ?reference= · ?since=&after=&limit=
    GET  /v1/payments/{id}
    POST /v1/payments/{id}/confirm   with a method
    POST /v1/payments/{id}/cancel
    POST /v1/payments/{id}/refunds   amount_minor, or all that is left     Idempotency-Key
    GET  /v1/payments/{id}/refunds
    GET  /v1/refunds/{id}
    POST /v1/refunds/{id}/fail       the payer's bank returns it
    POST /v1/payments/{id}/dispute   state: open, won or lost
    GET  /v1/payments/{id}/dispute
    GET  /v1/methods/{token}         the card behind it
    GET  /v1/webhooks                 ?after=&limit=
    GET  /v1/control                 settings, counters, totals
    POST /v1/control                 change some settings

No framework: a charge costs little more than its commit.
"""

import hashlib
import re
import resource
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
import structlog
from msgspec import Struct

from holdfast.errors import Busy
from holdfast.sandbox.aftermath import fail_refund, set_dispute
from holdfast.sandbox.behaviour import SandboxSettings, card_fingerprint
from holdfast.sandbox.database import SandboxDatabase
from holdfast.sandbox.gateway import ApiCall
from holdfast.sandbox.http import (
    ASGI,
    Merchant,
    Receive,
    Scope,
    Send,
    check_bearer,
    idempotency_key,
    own_url,
    read_body,
    send_reply,
    send_result,
)
from holdfast.sandbox.payment import (
    NewCharge,
    SandboxPayment,
    SandboxRefund,
    SandboxRefusal,
    SandboxState,
    SandboxWebhook,
    dispute_json,
    payment_json,
    refund_json,
)
from holdfast.sandbox.webhooks import WebhookSender

AMOUNT_MINOR_MAX = 99_999_999_999
TEXT_MAX = 500
URL_MAX = 2048
CURRENCY = re.compile(r"[A-Z]{3}")
# No blanks, no control characters, no backslash: what browsers and libraries read differently.
URL = re.compile(r"[!-\[\]-~]+")

_encode = msgspec.json.Encoder().encode


class NewPayment(Struct, frozen=True, forbid_unknown_fields=True):
    amount_minor: int
    currency: str
    reference: str
    method: str = ""
    description: str = ""
    return_url: str = ""

    def order(self) -> NewCharge:
        check(0 < self.amount_minor <= AMOUNT_MINOR_MAX, "amount_minor is at least 1")
        check(bool(CURRENCY.fullmatch(self.currency)), "currency has three letters, as EUR")
        check(0 < len(self.reference) <= TEXT_MAX, "reference is your own key for this payment")
        check(max(len(self.method), len(self.description)) <= TEXT_MAX, "a text is too long")
        if self.return_url:
            check_return_url(self.return_url)
        return NewCharge(
            amount_minor=self.amount_minor,
            currency=self.currency,
            reference=self.reference,
            method=self.method,
            description=self.description,
            return_url=self.return_url,
        )


class Confirmation(Struct, frozen=True, forbid_unknown_fields=True):
    method: str


class NewRefund(Struct, frozen=True, forbid_unknown_fields=True):
    amount_minor: int | None = None


class DisputeForm(Struct, frozen=True, forbid_unknown_fields=True):
    state: str


def check(is_so: bool, problem: str) -> None:
    if not is_so:
        raise SandboxRefusal(400, "invalid_request", problem)


def check_return_url(url: str) -> None:
    """Only where a browser goes without harm."""
    problem = "return_url is an http or https address"
    check(len(url) <= URL_MAX and bool(URL.fullmatch(url)), problem)
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    check(is_address, problem)


def render_native(made: SandboxPayment | SandboxRefund | SandboxRefusal, url: str) -> tuple[int, bytes]:
    """Status and body. A decline is a 402 with the payment, so that no client takes it for a success."""
    match made:
        case SandboxRefusal():
            return made.status, error_body(made)
        case SandboxRefund() if made.state == "refused":
            return 402, error_body(
                SandboxRefusal(402, "refund_refused", made.reason or ""), refund=refund_json(made)
            )
        case SandboxRefund():
            return 200, _encode(refund_json(made))
        case SandboxPayment() if made.state == SandboxState.DECLINED:
            refused = SandboxRefusal(402, made.code or "declined", made.reason or "")
            return 402, error_body(refused, payment=payment_json(made, url))
        case SandboxPayment():
            return 200, _encode(payment_json(made, url))


def error_body(refused: SandboxRefusal, **more: Any) -> bytes:
    return _encode({"error": {"code": refused.code, "reason": refused.reason, **more}})


log = structlog.get_logger(__name__)

PAGE_MAX = 100
MISSING = SandboxRefusal(404, "resource_missing", "There is no such thing here.")

Form = TypeVar("Form")

_new_payment = msgspec.json.Decoder(NewPayment)


class SandboxApplication:
    """The whole sandbox as an ASGI application."""

    def __init__(
        self,
        merchant: Merchant,
        database: SandboxDatabase,
        sender: WebhookSender | None,
        apis: dict[str, ASGI],
    ) -> None:
        self._merchant = merchant
        self._core = merchant.core
        self._database = database
        self._sender = sender
        self._apis = apis
        self._keys = merchant.api_keys
        self._began = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["path"] == "/v1/payments" and scope["method"] == "POST":
                await self._create(scope, receive, send)
            else:
                await self._route(scope, receive, send)
        except SandboxRefusal as refused:
            await send_reply(send, refused.status, error_body(refused))
        except Busy:
            await send_reply(
                send, 503, error_body(SandboxRefusal(503, "busy", "Too much at once. Try again."))
            )
        except Exception:
            log.exception("request failed", path=scope["path"])
            await send_reply(
                send,
                500,
                error_body(SandboxRefusal(500, "sandbox_broken", "This is a fault of the sandbox.")),
            )

    async def _create(self, scope: Scope, receive: Receive, send: Send) -> None:
        check_bearer(scope, self._keys)
        form = _decoded(_new_payment.decode, await read_body(receive))
        call = self._call(scope, b"create", form)
        done = await self._core.create(form.order(), call)
        await send_result(done, receive, send, self._core.settings.hold_s)

    def _call(self, scope: Scope, act: bytes, form: Any) -> ApiCall:
        url = own_url(scope, self._merchant.public_url)
        mark = hashlib.blake2b(act + b" " + _encode(form), digest_size=16).digest()
        return ApiCall(idempotency_key(scope), mark, lambda made: render_native(made, url))

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        _, first, *rest = scope["raw_path"].decode("latin-1").split("/")
        if (api := self._apis.get(first)) is not None:
            await api({**scope, "path": scope["path"].removeprefix(f"/{first}")}, receive, send)
        elif first == "healthz":
            await send_reply(send, 200, b'{"status":"ok"}')
        elif first != "v1":
            raise MISSING
        else:
            check_bearer(scope, self._keys)
            await self._native_api(rest, scope, receive, send)

    async def _native_api(self, path: list[str], scope: Scope, receive: Receive, send: Send) -> None:
        path = [unquote(part) for part in path]
        match scope["method"], path:
            case "POST", ["payments", payment_id, "confirm"]:
                form = _decoded(msgspec.json.Decoder(Confirmation).decode, await read_body(receive))
                call = self._call(scope, f"confirm {payment_id}".encode(), form)
                done = await self._core.confirm(payment_id, form.method, call)
            case "POST", ["payments", payment_id, "cancel"]:
                done = await self._core.cancel(
                    payment_id, self._call(scope, f"cancel {payment_id}".encode(), {})
                )
            case "POST", ["payments", payment_id, "refunds"]:
                refund_form = _decoded(msgspec.json.Decoder(NewRefund).decode, await read_body(receive))
                check(
                    refund_form.amount_minor is None or refund_form.amount_minor > 0,
                    "amount_minor is at least 1",
                )
                call = self._call(scope, f"refund {payment_id}".encode(), refund_form)
                done = await self._core.refund(payment_id, refund_form.amount_minor, call)
            case "POST", ["refunds", refund_id, "fail"]:
                failed = await fail_refund(self._database, refund_id)
                await send_reply(send, 200, _encode(refund_json(failed)))
                return
            case "POST", ["payments", payment_id, "dispute"]:
                wanted = _decoded(msgspec.json.Decoder(DisputeForm).decode, await read_body(receive))
                await set_dispute(self._database, payment_id, wanted.state)
                await send_reply(send, 200, _encode(self._dispute(payment_id)))
                return
            case "POST", ["control"]:
                await self._set(await read_body(receive))
                await send_reply(send, 200, _encode(self._control()))
                return
            case "GET", _:
                await send_reply(send, 200, _encode(self._read(path, scope)))
                return
            case _:
                raise MISSING
        await send_result(done, receive, send, self._core.settings.hold_s)

    # ── reading ───────────────────────────────────────────────────────────────────────

    def _read(self, path: list[str], scope: Scope) -> Any:
        query = {
            name: values[-1] for name, values in parse_qs(scope["query_string"].decode("latin-1")).items()
        }
        url = own_url(scope, self._merchant.public_url)
        match path:
            case ["payments"] if "reference" in query:
                found = self._core.find_by_reference(query["reference"])
                return {"payments": [payment_json(one, url) for one in found], "next": None}
            case ["payments"]:
                return self._payments(query, url)
            case ["payments", payment_id] if payment := self._core.find(payment_id):
                return payment_json(payment, url)
            case ["payments", payment_id, "refunds"] if self._core.find(payment_id):
                return {"refunds": [refund_json(one) for one in self._core.refunds(payment_id)]}
            case ["payments", payment_id, "dispute"]:
                return self._dispute(payment_id)
            case ["refunds", refund_id] if refund := self._core.find_refund(refund_id):
                return refund_json(refund)
            case ["methods", token] if card := card_fingerprint(token):
                return {"method": token, "card": card}
            case ["webhooks"]:
                return self._webhooks(query)
            case ["control"]:
                return self._control()
        raise MISSING

    def _dispute(self, payment_id: str) -> dict[str, Any]:
        payment, dispute = self._core.find(payment_id), self._database.dispute(payment_id)
        if payment is None or dispute is None:
            raise MISSING
        return dispute_json(dispute, payment.currency)

    def _payments(self, query: dict[str, str], url: str) -> dict[str, Any]:
        limit = _number(query, "limit", PAGE_MAX)
        check(1 <= limit <= PAGE_MAX, f"limit is between 1 and {PAGE_MAX}")
        found = self._core.list(_number(query, "since", 0.0), query.get("after"), limit)
        more = found[-1].id if len(found) == limit else None
        return {"payments": [payment_json(one, url) for one in found], "next": more}

    def _webhooks(self, query: dict[str, str]) -> dict[str, Any]:
        limit = _number(query, "limit", PAGE_MAX)
        check(1 <= limit <= PAGE_MAX, f"limit is between 1 and {PAGE_MAX}")
        found = self._core.webhooks(_number(query, "after", 0), limit)
        more = found[-1].seq if len(found) == limit else None
        return {"webhooks": [_webhook_page(one) for one in found], "next": more}

    # ── control ───────────────────────────────────────────────────────────────────────

    async def _set(self, body: bytes) -> None:
        changes = _decoded(msgspec.json.Decoder(dict[str, Any]).decode, body)
        wanted = {**msgspec.to_builtins(self._core.settings), **changes}
        settings = _decoded(lambda given: msgspec.convert(given, SandboxSettings), wanted)
        check(not (problem := settings.problem()), problem or "")
        await self._core.set(settings)

    def _control(self) -> dict[str, Any]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        sender = self._sender
        return {
            "settings": msgspec.to_builtins(self._core.settings),
            "counts": dict(self._core.counts),
            "webhooks": {**(sender.counts if sender else {}), "waiting": sender.waiting if sender else 0},
            "database": {"writes": self._database.writes, "commits": self._database.commits},
            "totals": [
                dict(zip(("state", "currency", "count", "amount_minor", "refunded_minor"), row, strict=True))
                for row in self._database.totals()
            ],
            "cpu_s": used.ru_utime + used.ru_stime,
            "up_s": time.monotonic() - self._began,
        }


def _webhook_page(webhook: SandboxWebhook) -> dict[str, Any]:
    return {
        "seq": webhook.seq,
        "body": msgspec.Raw(webhook.body),
        "is_waiting": webhook.due_at is not None,
        "attempts": webhook.attempts,
        "delivered_at": webhook.delivered_at,
    }


def _decoded(decode: Callable[[Any], Form], given: Any) -> Form:
    try:
        return decode(given)
    except msgspec.DecodeError as error:  # a ValidationError is one, too
        raise SandboxRefusal(400, "invalid_request", str(error)) from None


Number = TypeVar("Number", int, float)


def _number(query: dict[str, str], name: str, default: Number) -> Number:
    try:
        return type(default)(query.get(name, default))
    except ValueError:
        raise SandboxRefusal(400, "invalid_request", f"{name} is a number") from None
