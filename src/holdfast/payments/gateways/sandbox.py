"""Our own sandbox as a gateway, over HTTP like any other.

Whatever does not carry the sandbox's own words (a proxy's 404, a cut connection, half a body) is UNKNOWN:
only the gateway can say no.
"""

import hmac
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec
from msgspec import Struct

from holdfast.config import Config
from holdfast.payments.gateway import Answer, BadNotice, Charge, GatewayDown, Notice, Order, Refunded, Seen

TOLERANCE_S = 300  # a notice that is older, or from further in the future, is not believed
SIGNATURES_MAX = 16
PAGE_SIZE = 100
ACCOUNT = "acct_sandbox"
MODE = "test"


class Error(Struct):
    code: str
    reason: str = ""
    payment: "Payment | None" = None


class Payment(Struct):
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


class Refund(Struct):
    id: str
    state: str
    reason: str | None = None


class Payments(Struct):
    payments: list[Payment]
    next: str | None = None


class Card(Struct):
    card: str


class ErrorPage(Struct):
    error: Error


class Told(Struct):
    """The body of a notice."""

    id: str
    kind: str
    mode: str
    account: str
    payment: Payment | None = None


class Said(Struct, frozen=True):
    """An answer in the sandbox's own words; `error` for one that is no success."""

    body: bytes
    error: Error | None = None
    is_replayed: bool = False


_payment = msgspec.json.Decoder(Payment).decode
_payments = msgspec.json.Decoder(Payments).decode
_refund = msgspec.json.Decoder(Refund).decode
_card = msgspec.json.Decoder(Card).decode
_error = msgspec.json.Decoder(ErrorPage).decode
_told = msgspec.json.Decoder(Told).decode
_encode = msgspec.json.Encoder().encode

UNKNOWN = Charge(answer=Answer.UNKNOWN)
# Codes that say something of this request, and nothing of an earlier one with the same key.
UNDECIDED = {"unauthorized", "method_not_allowed", "gone"}


class Sandbox:
    name = "sandbox"
    mode = MODE

    def __init__(self, config: Config, *, account: str = ACCOUNT) -> None:
        self._url = config.gateway_url.rstrip("/")
        self._secrets = [one.strip().encode() for one in config.gateway_secret.split(",") if one.strip()]
        self._timeout_s = config.gateway_timeout_ms / 1000
        self._links_max = config.gateway_links_max
        self._notice_bytes_max = config.webhook_bytes_max
        self._account = account
        self._session: aiohttp.ClientSession | None = None

    async def charge(self, order: Order) -> Charge:
        body = {
            "amount_minor": order.amount_minor,
            "currency": order.currency,
            "reference": order.key,
            "method": order.method,
            "description": order.description,
            "return_url": order.return_url,
        }
        said = await self._ask("POST", "/v1/payments", body, key=order.key)
        match said:
            case None:
                return UNKNOWN
            case Said(error=None):
                payment = _read(_payment, said.body)
                charge = UNKNOWN if payment is None else charge_of(payment)
                if said.is_replayed and payment is not None and charge.answer is Answer.UNKNOWN:
                    return await self.look_up(key=order.key, reference=payment.id)  # as it is now
                return charge
            case Said(error=Error(payment=Payment() as payment)):
                return charge_of(payment)
            case Said(error=Error(code="idempotency_error")):
                # There is a charge with this key, made in other words. What became of it is all that counts.
                return await self.look_up(key=order.key, reference=None)
            case Said(error=Error() as error) if error.code not in {*UNDECIDED, "resource_missing"}:
                return Charge(answer=Answer.NO, code=error.code, reason=error.reason)
        return UNKNOWN

    async def look_up(self, *, key: str, reference: str | None) -> Charge:
        payment = await self._find(key, reference)
        match payment:
            case Payment():
                return charge_of(payment)
            case Answer.ABSENT:
                return Charge(answer=Answer.ABSENT)
        return UNKNOWN

    async def call_off(self, *, key: str, reference: str | None) -> Charge:
        if reference is None:
            found = await self._find(key, None)
            if not isinstance(found, Payment):
                return Charge(answer=found)
            reference = found.id
        said = await self._ask("POST", f"/v1/payments/{quote(reference, safe='')}/cancel", {})
        match said:
            case Said(error=None) | Said(error=Error(code="payment_cancelled" | "payment_declined")):
                return Charge(answer=Answer.YES, reference=reference)
            case Said(error=Error(code="payment_captured", reason=reason)):
                return Charge(answer=Answer.NO, reference=reference, code="payment_captured", reason=reason)
            case Said(error=Error(code="resource_missing")):
                return Charge(answer=Answer.ABSENT)
        return Charge(answer=Answer.UNKNOWN, reference=reference)

    async def refund(self, *, key: str, reference: str, amount_minor: int, currency: str) -> Refunded:
        path = f"/v1/payments/{quote(reference, safe='')}/refunds"
        said = await self._ask("POST", path, {"amount_minor": amount_minor}, key=key)
        match said:
            case Said(error=None):
                refund = _read(_refund, said.body)
                if refund is not None and refund.state == "succeeded":
                    return Refunded(answer=Answer.YES, reference=refund.id)
            case Said(error=Error() as error) if error.code not in {*UNDECIDED, "idempotency_error"}:
                return Refunded(answer=Answer.NO, reason=error.reason or error.code)
        return Refunded(answer=Answer.UNKNOWN)

    async def card_of(self, method: str) -> str | None:
        said = await self._ask("GET", f"/v1/methods/{quote(method, safe='')}")
        if said is None or said.error is not None:
            return None
        card = _read(_card, said.body)
        return None if card is None else card.card

    async def recent(self, *, since: datetime, after: str | None = None) -> tuple[Sequence[Seen], str | None]:
        path = f"/v1/payments?since={since.timestamp()}&limit={PAGE_SIZE}"
        said = await self._ask("GET", path + (f"&after={quote(after, safe='')}" if after else ""))
        page = None if said is None or said.error is not None else _read(_payments, said.body)
        if page is None:
            raise GatewayDown
        return [_seen(payment) for payment in page.payments], page.next

    def notice(self, raw: bytes, headers: Mapping[bytes, bytes], now: float) -> Notice:
        if len(raw) > self._notice_bytes_max:
            raise BadNotice("malformed")
        at = self._signed_at(raw, headers.get(b"holdfast-signature", b""))
        if now - at > TOLERANCE_S:
            raise BadNotice("stale")
        if at - now > TOLERANCE_S:
            raise BadNotice("future")
        told = _read(_told, raw)
        if told is None:
            raise BadNotice("malformed")
        if told.mode != self.mode:
            raise BadNotice("mode")
        if told.account != self._account:
            raise BadNotice("account")
        payment = told.payment
        return Notice(
            event_id=told.id,
            kind=told.kind,
            key=payment.reference if payment else None,
            reference=payment.id if payment else None,
            amount_minor=payment.amount_minor if payment else None,
            currency=payment.currency if payment else None,
            mode=told.mode,
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
            raise BadNotice("signature")
        signed = times[0] + b"." + raw
        for secret in self._secrets:
            wanted = hmac.digest(secret, signed, "sha256").hex().encode()
            for mark in marks:
                if hmac.compare_digest(mark, wanted):
                    return int(times[0])
        raise BadNotice("signature")

    async def _find(self, key: str, reference: str | None) -> Payment | Answer:
        """By the gateway's id where we have it; else by our key."""
        if reference is not None:
            said = await self._ask("GET", f"/v1/payments/{quote(reference, safe='')}")
            if said is not None and said.error is None:
                return _read(_payment, said.body) or Answer.UNKNOWN
            is_missing = said is not None and said.error is not None and said.error.code == "resource_missing"
            return Answer.ABSENT if is_missing else Answer.UNKNOWN
        said = await self._ask("GET", f"/v1/payments?reference={quote(key, safe='')}")
        page = None if said is None or said.error is not None else _read(_payments, said.body)
        if page is None:
            return Answer.UNKNOWN
        return page.payments[0] if page.payments else Answer.ABSENT

    async def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, key: str | None = None
    ) -> Said | None:
        """What the sandbox said; None: nothing that can be relied on."""
        if not self._url or not self._secrets:
            return None
        headers = {"Idempotency-Key": key} if key is not None else {}
        try:
            async with self._open().request(
                method,
                self._url + path,
                data=None if body is None else _encode(body),
                headers=headers,
                allow_redirects=False,
            ) as answer:
                content = await answer.read()
                status, is_replayed = answer.status, "Idempotent-Replayed" in answer.headers
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return None
        if status == 200:
            return Said(content, is_replayed=is_replayed)
        page = _read(_error, content) if 400 <= status < 500 and status not in (408, 409, 425, 429) else None
        return None if page is None else Said(content, error=page.error, is_replayed=is_replayed)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._links_max, keepalive_timeout=60),
                timeout=aiohttp.ClientTimeout(total=self._timeout_s),
                headers={
                    "Authorization": f"Bearer {api_key(self._secrets[0])}",
                    "Content-Type": "application/json",
                    "User-Agent": "holdfast",
                },
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


def charge_of(payment: Payment) -> Charge:
    match payment.state:
        case "captured":
            return Charge(
                answer=Answer.YES,
                reference=payment.id,
                amount_minor=payment.amount_minor,
                currency=payment.currency,
                refunded_minor=payment.refunded_minor,
                card=payment.card,
            )
        case "declined" | "cancelled":
            return Charge(
                answer=Answer.NO,
                reference=payment.id,
                code=payment.code or payment.state,
                reason=payment.reason,
                card=payment.card,
            )
    return Charge(
        answer=Answer.UNKNOWN, reference=payment.id, action_url=payment.action_url, card=payment.card
    )


def api_key(secret: bytes) -> str:
    """Made from the secret, as the sandbox does, so that the secret itself never travels."""
    return f"sk_test_{hmac.digest(secret, b'holdfast sandbox api', 'sha256').hex()[:40]}"


def _seen(payment: Payment) -> Seen:
    at = datetime.fromtimestamp(payment.created_at, UTC)
    return Seen(key=payment.reference or None, reference=payment.id, charge=charge_of(payment), at=at)


def _read(decode: Any, content: bytes) -> Any:
    """None for what is not what it should be."""
    try:
        return decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
