"""Razorpay, on its own SDK: one order per key. Imported only where Razorpay is the gateway.

The payer pays on Razorpay's page, never through us: a token is refused. What is authorised there is captured
by us, exactly, when we look; what we called off is never captured and goes back by itself. An order whose
reply was lost cannot be paid, because no client knows its id: "absent" is always safe.

Errors, and our answers:

    400, refused                  NO       nothing was tried; for an id: it does not exist
    409, the key is in use        UNKNOWN  the first try is still under way
    429, too many                 UNKNOWN
    401, 403, our key is bad      UNKNOWN  an operator has to fix the key: an error in the log
    5xx, not JSON, no connection  UNKNOWN
    time-out, at any byte         UNKNOWN

The SDK waits in `requests`, so each call has a thread, and there are only so many of them.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar

import msgspec
import razorpay  # type: ignore[import-untyped]
import requests
import structlog

from holdfast.config import Config
from holdfast.payments.gateway import (
    Charge,
    ChargeOrder,
    Dispute,
    GatewayAnswer,
    GatewayDown,
    ListedPayment,
    NoDecision,
    RefundResult,
    Webhook,
)
from holdfast.payments.gateways.razorpay_objects import (
    CALLED_OFF,
    KEY,
    REFUND_KEY,
    RazorpayDisputeList,
    RazorpayOrder,
    RazorpayOrderList,
    RazorpayPayment,
    RazorpayPaymentList,
    RazorpayRefund,
    RazorpayRefundList,
    build_charge,
    build_dispute,
    build_listed_payment,
    build_receipt,
    build_refund_result,
    find_capturable,
    find_captured,
    is_signed,
    refund_token,
)
from holdfast.payments.gateways.razorpay_webhooks import RazorpayWebhooks

log = structlog.get_logger(__name__)
R = TypeVar("R", bound=msgspec.Struct)

PAGE = 100  # the most that Razorpay lists at once
DISPUTE_PAGES_MAX = 10
THREADS_MAX = 16
UNDECIDED = {408, 409, 425, 429}
DENIED = {401, 403}


class _Refused(Exception):
    """A refusal from Razorpay itself."""

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        super().__init__(status)
        self.description = str(error.get("description") or "")
        self.traits = {"status": status, "code": error.get("code"), "why": error.get("reason")}
        self.is_absent = status == 404 or "does not exist" in self.description


class _Session(requests.Session):
    """Separates refusals from missing answers by the status, which the SDK's errors omit; has a time-out."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__()
        self._timeout_s = timeout_s

    def request(self, *args: Any, **options: Any) -> requests.Response:
        try:
            response = super().request(*args, **{**options, "timeout": self._timeout_s})
            payload = response.json()
        except (requests.RequestException, ValueError) as failed:
            raise NoDecision(type(failed).__name__) from None
        status = response.status_code
        if status in DENIED:
            log.error("the gateway rejects our key", gateway="razorpay", status=status)
        if status in UNDECIDED | DENIED or status >= 500 or not isinstance(payload, dict):
            raise NoDecision(str(status))
        if status >= 300:
            error = payload.get("error")
            if not isinstance(error, dict) or "code" not in error:
                raise NoDecision(str(status))  # of a proxy, perhaps: only Razorpay can say no
            raise _Refused(status, error)
        return response


class RazorpayGateway:
    name = "razorpay"

    def __init__(self, config: Config) -> None:
        self.mode = "live" if config.razorpay_key_id.startswith("rzp_live_") else "test"
        secrets = tuple(one.strip() for one in config.razorpay_webhook_secrets.split(",") if one.strip())
        account, bytes_max = config.razorpay_account, config.webhook_bytes_max
        self._webhooks = RazorpayWebhooks(secrets, self.mode, account, bytes_max)
        self._auth = (config.razorpay_key_id, config.razorpay_key_secret)
        self._url = config.razorpay_api_url
        self._timeout_s = config.gateway_timeout_ms / 1000
        count = min(THREADS_MAX, config.gateway_links_max)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="razorpay")
        self._free = asyncio.Semaphore(count)
        self._own = threading.local()  # a session is for one thread

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)  # their callers have timed out already

    async def charge(self, order: ChargeOrder) -> Charge:
        if order.method:
            reason = "Razorpay takes payments on its own page only: choose how to pay there."
            return Charge(answer=GatewayAnswer.NO, code="method_unsupported", reason=reason)
        try:
            if (earlier := await self._find(order.key, None)) is not None:
                return await self._settle(earlier)
            return build_charge(await self._create_order(order), [])
        except _Refused as refused:
            log.error("the gateway rejected our request", gateway=self.name, **refused.traits)
            reason = "The payment could not be made. You have not been charged."
            return Charge(answer=GatewayAnswer.NO, code="request_refused", reason=reason)
        except NoDecision:
            return Charge(answer=GatewayAnswer.UNKNOWN)

    async def look_up(self, *, key: str, reference: str | None) -> Charge:
        try:
            order = await self._find(key, reference)
            return Charge(answer=GatewayAnswer.ABSENT) if order is None else await self._settle(order)
        except (NoDecision, _Refused):
            return Charge(answer=GatewayAnswer.UNKNOWN, reference=reference)

    async def call_off(self, *, key: str, reference: str | None) -> Charge:
        """An order cannot be cancelled: it is marked, and payments on it are never captured."""
        try:
            if (order := await self._find(key, reference)) is None:
                return Charge(answer=GatewayAnswer.ABSENT)
            if not order.is_called_off:
                notes = {"notes": {KEY: key, CALLED_OFF: "1"}}
                await self._call(RazorpayOrder, lambda client: client.order.edit(order.id, notes))
            if find_captured(await self._payments(order.id)) is None:
                return Charge(answer=GatewayAnswer.YES, reference=order.id)
            reason = "The payment has been find_captured already."
            return Charge(answer=GatewayAnswer.NO, reference=order.id, code="already_taken", reason=reason)
        except (NoDecision, _Refused):
            return Charge(answer=GatewayAnswer.UNKNOWN, reference=reference)

    async def refund(self, *, key: str, reference: str, amount_minor: int, currency: str) -> RefundResult:
        try:
            if (payment := find_captured(await self._payments(reference))) is None:
                return RefundResult(answer=GatewayAnswer.NO, reason="Nothing was paid.")
            if (earlier := await self._refund_made(key, payment)) is not None:
                return build_refund_result(earlier)
            parameters = {"amount": amount_minor, "speed": "normal", "notes": {REFUND_KEY: key}}
            headers = {"X-Refund-Idempotency": refund_token(key)}
            made = await self._call(
                RazorpayRefund, lambda client: client.payment.refund(payment.id, parameters, headers=headers)
            )
            return build_refund_result(made)
        except _Refused as refused:
            log.error("refund refused", gateway=self.name, key=key, reference=reference, **refused.traits)
            reason = refused.description or "The gateway refused the refund."
            return RefundResult(answer=GatewayAnswer.NO, reason=reason)
        except NoDecision:
            return RefundResult(answer=GatewayAnswer.UNKNOWN)

    async def look_up_refund(self, *, reference: str) -> RefundResult:
        try:
            return build_refund_result(
                await self._call(RazorpayRefund, lambda client: client.refund.fetch(reference))
            )
        except (NoDecision, _Refused):
            return RefundResult(answer=GatewayAnswer.UNKNOWN)

    async def find_dispute(self, *, reference: str) -> Dispute | None:
        """Razorpay lists disputes of all payments, newest first."""
        try:
            if (payment := find_captured(await self._payments(reference))) is None:
                return None
            for page in range(DISPUTE_PAGES_MAX):
                found = await self._disputes(page)
                if (dispute := build_dispute(found.items, payment.id)) is not None:
                    return dispute
                if len(found.items) < PAGE:
                    return None
        except (NoDecision, _Refused) as silent:
            raise GatewayDown("razorpay lists no disputes") from silent
        raise GatewayDown("razorpay lists too many disputes")

    async def card_fingerprint(self, method: str) -> str | None:
        return None  # there are no tokens, and cards are seen on Razorpay's page only

    async def list_recent(
        self, *, since: datetime, after: str | None = None
    ) -> tuple[Sequence[ListedPayment], str | None]:
        # Newest first: without an end, orders made while we turn pages would push others past us.
        until, skip = map(int, after.split(":")) if after else (int(time.time()), 0)
        parameters = {
            "from": int(since.timestamp()),
            "to": until,
            "skip": skip,
            "count": PAGE,
            "expand[]": "payments",
        }
        try:
            page = await self._call(RazorpayOrderList, lambda client: client.order.all(parameters))
        except (NoDecision, _Refused) as silent:
            raise GatewayDown("razorpay lists nothing") from silent
        is_more = len(page.items) == PAGE
        return [
            build_listed_payment(order) for order in page.items
        ], f"{until}:{skip + PAGE}" if is_more else None

    def parse_webhook(self, raw: bytes, headers: Mapping[bytes, bytes], now: float) -> Webhook:
        return self._webhooks.read(raw, headers, now)

    def is_return(self, *, order_id: str, payment_id: str, signature: str) -> bool:
        """Whether Razorpay's page has sent the payer back with this. Then look up; it proves no capture."""
        return is_signed(f"{order_id}|{payment_id}".encode(), signature.encode(), self._auth[1:])

    async def _create_order(self, order: ChargeOrder) -> RazorpayOrder:
        parameters: dict[str, Any] = {
            "amount": order.amount_minor,
            "currency": order.currency.upper(),
            "receipt": build_receipt(order.key),
            "notes": {KEY: order.key, "description": order.description[:250]},
            # Ours to capture, whatever the dashboard says: what is called off must not be taken.
            "payment": {"capture": "manual", "capture_options": {"refund_speed": "normal"}},
            "unique_receipt": True,  # a second try is given the first one's order
        }
        try:
            return await self._call(RazorpayOrder, lambda client: client.order.create(parameters))
        except _Refused as refused:
            if "unique_receipt" not in refused.description:
                raise
            parameters.pop("unique_receipt")  # not every country's Razorpay knows it
            return await self._call(RazorpayOrder, lambda client: client.order.create(parameters))

    async def _find(self, key: str, reference: str | None) -> RazorpayOrder | None:
        if reference is None:
            parameters = {"receipt": build_receipt(key), "count": PAGE}
            page = await self._call(RazorpayOrderList, lambda client: client.order.all(parameters))
            ours = [order for order in page.items if order.key == key]
            # Of two for one key: the paid one, or else the one that the payer got last.
            ours.sort(key=lambda order: (order.status != "paid", order.status != "attempted"))
            return ours[0] if ours else None
        try:
            order = await self._call(RazorpayOrder, lambda client: client.order.fetch(reference))
        except _Refused as refused:
            if refused.is_absent:
                return None
            raise
        if order.key != key:
            log.error("a payment with another key", gateway=self.name, key=key, reference=reference)
            raise NoDecision
        return order

    async def _settle(self, order: RazorpayOrder) -> Charge:
        """What became of an order, after taking what waits to be taken."""
        payments = await self._payments(order.id)
        if (waiting := find_capturable(order, payments)) is not None:
            parameters = {"currency": waiting.currency}
            try:
                done = await self._call(
                    RazorpayPayment,
                    lambda client: client.payment.capture(waiting.id, waiting.amount, parameters),
                )
                payments = [done]
            except _Refused as refused:  # another process has just captured it, or it is too late
                log.warning("capture refused", gateway=self.name, reference=order.id, **refused.traits)
                payments = await self._payments(order.id)
        return build_charge(order, payments)

    async def _payments(self, order_id: str) -> list[RazorpayPayment]:
        return (await self._call(RazorpayPaymentList, lambda client: client.order.payments(order_id))).items

    async def _disputes(self, page: int) -> RazorpayDisputeList:
        parameters = {"count": PAGE, "skip": page * PAGE}
        return await self._call(RazorpayDisputeList, lambda client: client.dispute.all(parameters))

    async def _refund_made(self, key: str, payment: RazorpayPayment) -> RazorpayRefund | None:
        parameters = {"count": PAGE}
        made = await self._call(
            RazorpayRefundList, lambda client: client.payment.fetch_multiple_refund(payment.id, parameters)
        )
        ours = (one for one in made.items if isinstance(one.notes, dict) and one.notes.get(REFUND_KEY) == key)
        return next(ours, None)

    async def _call(self, kind: type[R], call: Callable[[Any], Any]) -> R:
        """In a thread of its own, for so long and no longer. Raises _Refused or NoDecision."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._free.acquire()
            working = self._threads.submit(lambda: call(self._client()))
            # The place is free when the thread is, which may be later than we lose patience.
            working.add_done_callback(lambda _: self._release(loop))
            async with asyncio.timeout(self._timeout_s):
                return msgspec.convert(await asyncio.wrap_future(working), kind)
        except TimeoutError:
            log.warning("no answer of the gateway", gateway=self.name, error="TimeoutError")
            raise NoDecision from None
        except NoDecision as silent:
            log.warning("no answer of the gateway", gateway=self.name, error=str(silent))
            raise
        except msgspec.ValidationError as odd:  # not what their documents say: then we do not know
            log.error("an odd answer of the gateway", gateway=self.name, why=str(odd))
            raise NoDecision from None

    def _release(self, loop: asyncio.AbstractEventLoop) -> None:
        """Called from the thread; the loop may be closed by then."""
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._free.release)

    def _client(self) -> Any:
        if not hasattr(self._own, "client"):
            options = {"base_url": self._url} if self._url else {}
            session = _Session(self._timeout_s)
            self._own.client = razorpay.Client(session=session, auth=self._auth, **options)
        return self._own.client
