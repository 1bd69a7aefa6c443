"""Our own sandbox as a gateway, over HTTP like any other.

Whatever does not carry the sandbox's own words (a proxy's 404, a cut connection, half a body) is UNKNOWN:
only the gateway can say no.
"""

import hmac
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from holdfast.config import Config
from holdfast.payments.gateway import (
    BadWebhook,
    Charge,
    ChargeOrder,
    Dispute,
    DisputeState,
    GatewayAnswer,
    GatewayDown,
    ListedPayment,
    RefundResult,
    Webhook,
)

if TYPE_CHECKING:
    from aiohttp import ClientSession

TOLERANCE_S = 300  # a notice that is older, or from further in the future, is not believed
SIGNATURES_MAX = 16
PAGE_SIZE = 100
ACCOUNT = "acct_sandbox"
MODE = "test"


class ErrorJson(Struct):
    code: str
    reason: str = ""
    payment: "PaymentJson | None" = None


class PaymentJson(Struct):
    id: str
    reference: str
    amount_minor: int
    currency: str
    state: str
    refunded_minor: int = 0
    card: str | None = None
    code: str | None = None
    reason: str | None = None
    created_at: float = 0.0
    action_url: str | None = None


class RefundJson(Struct):
    id: str
    state: str
    reason: str | None = None


class DisputeJson(Struct):
    id: str
    state: str
    amount_minor: int
    currency: str
    reason: str


class PaymentListJson(Struct):
    payments: list[PaymentJson]
    next: str | None = None


class CardJson(Struct):
    card: str


class ErrorBody(Struct):
    error: ErrorJson


class WebhookJson(Struct):
    """The body of a notice."""

    id: str
    kind: str
    mode: str
    account: str
    payment: PaymentJson | None = None


class SandboxResponse(Struct, frozen=True):
    """An answer of the sandbox itself; `error` if it is not a success."""

    body: bytes
    error: ErrorJson | None = None
    is_replayed: bool = False


_payment = msgspec.json.Decoder(PaymentJson).decode
_payments = msgspec.json.Decoder(PaymentListJson).decode
_refund = msgspec.json.Decoder(RefundJson).decode
_dispute = msgspec.json.Decoder(DisputeJson).decode
_card = msgspec.json.Decoder(CardJson).decode
_error = msgspec.json.Decoder(ErrorBody).decode
_webhook = msgspec.json.Decoder(WebhookJson).decode
_encode = msgspec.json.Encoder().encode

UNKNOWN = Charge(answer=GatewayAnswer.UNKNOWN)
# Codes about this request only: an earlier one with the same key may have been made.
UNDECIDED = {"unauthorized", "method_not_allowed", "gone"}


class SandboxGateway:
    name = "sandbox"
    mode = MODE

    def __init__(self, config: Config, *, account: str = ACCOUNT) -> None:
        self._url = config.gateway_url.rstrip("/")
        self._secrets = [one.strip().encode() for one in config.gateway_secret.split(",") if one.strip()]
        self._timeout_s = config.gateway_timeout_ms / 1000
        self._links_max = config.gateway_links_max
        self._webhook_bytes_max = config.webhook_bytes_max
        self._account = account
        self._session: ClientSession | None = None

    async def charge(self, order: ChargeOrder) -> Charge:
        body = {
            "amount_minor": order.amount_minor,
            "currency": order.currency,
            "reference": order.key,
            "method": order.method,
            "description": order.description,
            "return_url": order.return_url,
        }
        response = await self._request("POST", "/v1/payments", body, key=order.key)
        match response:
            case None:
                return UNKNOWN
            case SandboxResponse(error=None):
                payment = _read(_payment, response.body)
                charge = UNKNOWN if payment is None else build_charge(payment)
                if response.is_replayed and payment is not None and charge.answer is GatewayAnswer.UNKNOWN:
                    return await self.look_up(key=order.key, reference=payment.id)  # as it is now
                return charge
            case SandboxResponse(error=ErrorJson(payment=PaymentJson() as payment)):
                return build_charge(payment)
            case SandboxResponse(error=ErrorJson(code="idempotency_error")):
                # A charge with this key and other parameters exists: only its state counts.
                return await self.look_up(key=order.key, reference=None)
            case SandboxResponse(error=ErrorJson() as error) if error.code not in {
                *UNDECIDED,
                "resource_missing",
            }:
                return Charge(answer=GatewayAnswer.NO, code=error.code, reason=error.reason)
        return UNKNOWN

    async def look_up(self, *, key: str, reference: str | None) -> Charge:
        payment = await self._find(key, reference)
        match payment:
            case PaymentJson():
                return build_charge(payment)
            case GatewayAnswer.ABSENT:
                return Charge(answer=GatewayAnswer.ABSENT)
        return UNKNOWN

    async def call_off(self, *, key: str, reference: str | None) -> Charge:
        if reference is None:
            found = await self._find(key, None)
            if not isinstance(found, PaymentJson):
                return Charge(answer=found)
            reference = found.id
        response = await self._request("POST", f"/v1/payments/{quote(reference, safe='')}/cancel", {})
        match response:
            case (
                SandboxResponse(error=None)
                | SandboxResponse(error=ErrorJson(code="payment_cancelled" | "payment_declined"))
            ):
                return Charge(answer=GatewayAnswer.YES, reference=reference)
            case SandboxResponse(error=ErrorJson(code="payment_captured", reason=reason)):
                return Charge(
                    answer=GatewayAnswer.NO, reference=reference, code="payment_captured", reason=reason
                )
            case SandboxResponse(error=ErrorJson(code="resource_missing")):
                return Charge(answer=GatewayAnswer.ABSENT)
        return Charge(answer=GatewayAnswer.UNKNOWN, reference=reference)

    async def refund(self, *, key: str, reference: str, amount_minor: int, currency: str) -> RefundResult:
        path = f"/v1/payments/{quote(reference, safe='')}/refunds"
        response = await self._request("POST", path, {"amount_minor": amount_minor}, key=key)
        match response:
            case SandboxResponse(error=None):
                refund = _read(_refund, response.body)
                if refund is not None and refund.state == "succeeded":
                    return RefundResult(answer=GatewayAnswer.YES, reference=refund.id)
            case SandboxResponse(error=ErrorJson() as error) if error.code not in {
                *UNDECIDED,
                "idempotency_error",
            }:
                return RefundResult(answer=GatewayAnswer.NO, reason=error.reason or error.code)
        return RefundResult(answer=GatewayAnswer.UNKNOWN)

    async def look_up_refund(self, *, reference: str) -> RefundResult:
        response = await self._request("GET", f"/v1/refunds/{quote(reference, safe='')}")
        refund = None if response is None or response.error is not None else _read(_refund, response.body)
        if refund is None:
            return RefundResult(answer=GatewayAnswer.UNKNOWN)
        answer = GatewayAnswer.YES if refund.state == "succeeded" else GatewayAnswer.NO
        return RefundResult(answer=answer, reference=refund.id, reason=refund.reason)

    async def find_dispute(self, *, reference: str) -> Dispute | None:
        response = await self._request("GET", f"/v1/payments/{quote(reference, safe='')}/dispute")
        match response:
            case SandboxResponse(error=ErrorJson(code="resource_missing")):
                return None
            case SandboxResponse(error=None) if found := _read(_dispute, response.body):
                return Dispute(
                    reference=found.id,
                    state=DisputeState(found.state),
                    amount_minor=found.amount_minor,
                    currency=found.currency,
                    reason=found.reason,
                )
        raise GatewayDown

    async def card_fingerprint(self, method: str) -> str | None:
        response = await self._request("GET", f"/v1/methods/{quote(method, safe='')}")
        if response is None or response.error is not None:
            return None
        card = _read(_card, response.body)
        return None if card is None else card.card

    async def list_recent(
        self, *, since: datetime, after: str | None = None
    ) -> tuple[Sequence[ListedPayment], str | None]:
        path = f"/v1/payments?since={since.timestamp()}&limit={PAGE_SIZE}"
        response = await self._request("GET", path + (f"&after={quote(after, safe='')}" if after else ""))
        page = None if response is None or response.error is not None else _read(_payments, response.body)
        if page is None:
            raise GatewayDown
        return [_listed_payment(payment) for payment in page.payments], page.next

    def parse_webhook(self, raw: bytes, headers: Mapping[bytes, bytes], now: float) -> Webhook:
        if len(raw) > self._webhook_bytes_max:
            raise BadWebhook("malformed")
        at = self._signed_at(raw, headers.get(b"holdfast-signature", b""))
        if now - at > TOLERANCE_S:
            raise BadWebhook("stale")
        if at - now > TOLERANCE_S:
            raise BadWebhook("future")
        webhook = _read(_webhook, raw)
        if webhook is None:
            raise BadWebhook("malformed")
        if webhook.mode != self.mode:
            raise BadWebhook("mode")
        if webhook.account != self._account:
            raise BadWebhook("account")
        payment = webhook.payment
        return Webhook(
            event_id=webhook.id,
            kind=webhook.kind,
            key=payment.reference if payment else None,
            reference=payment.id if payment else None,
            amount_minor=payment.amount_minor if payment else None,
            currency=payment.currency if payment else None,
            mode=webhook.mode,
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    # ── beneath ───────────────────────────────────────────────────────────────────────

    def _signed_at(self, raw: bytes, header: bytes) -> int:
        """When it was signed, if one of its signatures is by one of our secrets."""
        parts = [part.strip().partition(b"=") for part in header.split(b",")[: SIGNATURES_MAX + 1]]
        times = [value for name, _, value in parts if name == b"t"]
        marks = [value for name, _, value in parts if name == b"v1"]
        if len(times) != 1 or not (times[0].isdigit() and len(times[0]) <= 12):
            raise BadWebhook("signature")
        signed = times[0] + b"." + raw
        for secret in self._secrets:
            wanted = hmac.digest(secret, signed, "sha256").hex().encode()
            for mark in marks:
                if hmac.compare_digest(mark, wanted):
                    return int(times[0])
        raise BadWebhook("signature")

    async def _find(self, key: str, reference: str | None) -> PaymentJson | GatewayAnswer:
        """By the gateway's id where we have it; else by our key."""
        if reference is not None:
            response = await self._request("GET", f"/v1/payments/{quote(reference, safe='')}")
            if response is not None and response.error is None:
                return _read(_payment, response.body) or GatewayAnswer.UNKNOWN
            error = response.error if response is not None else None
            is_missing = error is not None and error.code == "resource_missing"
            return GatewayAnswer.ABSENT if is_missing else GatewayAnswer.UNKNOWN
        response = await self._request("GET", f"/v1/payments?reference={quote(key, safe='')}")
        page = None if response is None or response.error is not None else _read(_payments, response.body)
        if page is None:
            return GatewayAnswer.UNKNOWN
        return page.payments[0] if page.payments else GatewayAnswer.ABSENT

    async def _request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, key: str | None = None
    ) -> SandboxResponse | None:
        """What the sandbox response; None: nothing that can be relied on."""
        if not self._url or not self._secrets:
            return None
        from aiohttp import ClientError

        headers = {"Idempotency-Key": key} if key is not None else {}
        data = None if body is None else _encode(body)
        try:
            async with self._open().request(
                method, self._url + path, data=data, headers=headers, allow_redirects=False
            ) as answer:
                content = await answer.read()
                status, is_replayed = answer.status, "Idempotent-Replayed" in answer.headers
        except (ClientError, TimeoutError, OSError, ValueError):
            return None
        if status == 200:
            return SandboxResponse(content, is_replayed=is_replayed)
        page = _read(_error, content) if 400 <= status < 500 and status not in (408, 409, 425, 429) else None
        return None if page is None else SandboxResponse(content, error=page.error, is_replayed=is_replayed)

    def _open(self) -> "ClientSession":
        if self._session is None:
            from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

            self._session = ClientSession(
                connector=TCPConnector(limit=self._links_max, keepalive_timeout=60),
                timeout=ClientTimeout(total=self._timeout_s),
                headers={
                    "Authorization": f"Bearer {api_key(self._secrets[0])}",
                    "Content-Type": "application/json",
                    "User-Agent": "holdfast",
                },
                auto_decompress=False,
                cookie_jar=DummyCookieJar(),
            )
        return self._session


def build_charge(payment: PaymentJson) -> Charge:
    match payment.state:
        case "captured":
            return Charge(
                answer=GatewayAnswer.YES,
                reference=payment.id,
                amount_minor=payment.amount_minor,
                currency=payment.currency,
                refunded_minor=payment.refunded_minor,
                card=payment.card,
            )
        case "declined" | "cancelled":
            return Charge(
                answer=GatewayAnswer.NO,
                reference=payment.id,
                code=payment.code or payment.state,
                reason=payment.reason,
                card=payment.card,
            )
    is_processing = payment.state == "processing"
    return Charge(
        answer=GatewayAnswer.UNKNOWN,
        reference=payment.id,
        action_url=None if is_processing else payment.action_url,
        is_processing=is_processing,
        card=payment.card,
    )


def api_key(secret: bytes) -> str:
    """Made from the secret, as the sandbox does, so that the secret itself never travels."""
    return f"sk_test_{hmac.digest(secret, b'holdfast sandbox api', 'sha256').hex()[:40]}"


def _listed_payment(payment: PaymentJson) -> ListedPayment:
    at = datetime.fromtimestamp(payment.created_at, UTC)
    return ListedPayment(
        key=payment.reference or None, reference=payment.id, charge=build_charge(payment), at=at
    )


def _read(decode: Any, content: bytes) -> Any:
    """None: not the expected JSON."""
    try:
        return decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
