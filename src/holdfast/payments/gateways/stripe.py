"""Stripe, on its own SDK: one PaymentIntent per key. Imported only where Stripe is the gateway.

Errors, and our answers:

    CardError                     NO       the bank refused; the error has a sentence for the payer
    InvalidRequestError           NO       refused before anything was tried: our mistake, or an unknown token
    IdempotencyError              look up  an order that differs had this key: what became of that one?
    409, the key is in use        UNKNOWN  the first try is still under way
    429, too many                 UNKNOWN  this one was not tried, an earlier one with the key may have been
    401, 403, our key is bad      UNKNOWN  the same; an operator has to fix the key: an error in the log
    5xx, not JSON, no connection  UNKNOWN
    time-out, at any byte         UNKNOWN

A charge whose answer was lost is made again with its key: Stripe stores answers for a day and repeats them.
What is repeated may be old ("the payer is at 3-D Secure"), so it is looked up before we pass it on.
"""

import time
from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import aiohttp
import msgspec
import stripe
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
from holdfast.payments.gateways.stripe_objects import (
    FLOW,
    KEY,
    REFUND_KEY,
    Instruments,
    StripeDispute,
    StripeFailure,
    StripeIntent,
    StripeRefund,
    build_charge,
    build_dispute,
    build_listed_payment,
    build_refund_result,
    build_refusal,
)
from holdfast.payments.gateways.stripe_webhooks import StripeWebhooks

log = structlog.get_logger(__name__)
T = TypeVar("T")

PAGE = 100  # the most that Stripe lists at once
SEARCH_LAG_S = 3600  # search is usually seconds behind, and an hour when Stripe has trouble
UNSEARCHABLE_S = 7 * 86_400  # where an account has no search (India), the list has to reach this far back
PAGES_MAX = 10  # of the list, when one payment is looked for: a thousand intents, then we do not know
WHOLE = ["latest_charge"]  # expanded: what has gone back, and the card's fingerprint, are in it


class StripeGateway:
    name = "stripe"

    def __init__(self, config: Config) -> None:
        key = config.stripe_secret_key
        self.mode = "live" if key.startswith(("sk_live_", "rk_live_")) else "test"
        secrets = tuple(one.strip() for one in config.stripe_webhook_secrets.split(",") if one.strip())
        self._webhooks = StripeWebhooks(secrets, self.mode, config.webhook_bytes_max)
        timeout = aiohttp.ClientTimeout(total=config.gateway_timeout_ms / 1000)
        self._http = stripe.AIOHTTPClient(timeout=timeout)
        self._client = stripe.StripeClient(
            key,
            base_addresses={"api": config.stripe_api_url} if config.stripe_api_url else {},
            max_network_retries=0,  # the saga decides about retries: it has stored that the charge was tried
            http_client=self._http,
        )
        self._intents = self._client.v1.payment_intents
        self._refunds = self._client.v1.refunds

    async def close(self) -> None:
        await self._http.close_async()  # type: ignore[no-untyped-call]

    async def charge(self, order: ChargeOrder) -> Charge:
        call = self._intents.create_async(_intent_parameters(order), {"idempotency_key": order.key})
        try:
            made = await self._call("charge", call)
            intent = _read(made, StripeIntent)
        except stripe.CardError as refused:
            return _refused(refused)
        except stripe.IdempotencyError:
            log.error("another order has this key", gateway=self.name, key=order.key)
            found = await self.look_up(key=order.key, reference=None)
            return found if found.answer is not GatewayAnswer.ABSENT else Charge(answer=GatewayAnswer.UNKNOWN)
        except stripe.InvalidRequestError as refused:
            return _invalid(refused)
        except NoDecision:
            return Charge(answer=GatewayAnswer.UNKNOWN)
        if _is_repeated(made):
            return await self.look_up(key=order.key, reference=intent.id)
        return build_charge(intent)

    async def look_up(self, *, key: str, reference: str | None) -> Charge:
        try:
            intent = await self._find(key, reference)
            if intent is None:
                return Charge(answer=GatewayAnswer.ABSENT)
            if intent.is_refused and intent.last_payment_error is not None:
                # The payer's browser may still try another card: a NO is final only when it cannot.
                if (after := await self._cancel(intent)).answer is GatewayAnswer.YES:
                    return build_refusal(intent.last_payment_error, intent.id)
                return Charge(answer=GatewayAnswer.UNKNOWN, reference=after.reference)
            return build_charge(intent)
        except NoDecision:
            return Charge(answer=GatewayAnswer.UNKNOWN, reference=reference)

    async def call_off(self, *, key: str, reference: str | None) -> Charge:
        try:
            intent = await self._find(key, reference)
            return Charge(answer=GatewayAnswer.ABSENT) if intent is None else await self._cancel(intent)
        except NoDecision:
            return Charge(answer=GatewayAnswer.UNKNOWN, reference=reference)

    async def refund(self, *, key: str, reference: str, amount_minor: int, currency: str) -> RefundResult:
        try:
            # Stripe forgets keys after a day; a refund made last week must not be made again.
            if (earlier := await self._refund_made(key, reference)) is not None:
                return build_refund_result(earlier)
            made = await self._call(
                "refund",
                self._refunds.create_async(
                    {"payment_intent": reference, "amount": amount_minor, "metadata": {REFUND_KEY: key}},
                    {"idempotency_key": key},
                ),
            )
            return build_refund_result(_read(made, StripeRefund))
        except (stripe.CardError, stripe.InvalidRequestError, stripe.IdempotencyError) as refused:
            log.error("refund refused", gateway=self.name, key=key, reference=reference, **_traits(refused))
            reason = refused.user_message or "The gateway refused the refund."
            return RefundResult(answer=GatewayAnswer.NO, reason=reason)
        except NoDecision:
            return RefundResult(answer=GatewayAnswer.UNKNOWN)

    async def look_up_refund(self, *, reference: str) -> RefundResult:
        try:
            found = await self._call("refund", self._refunds.retrieve_async(reference))
            return build_refund_result(_read(found, StripeRefund))
        except (stripe.CardError, stripe.InvalidRequestError, stripe.IdempotencyError, NoDecision):
            return RefundResult(answer=GatewayAnswer.UNKNOWN)

    async def find_dispute(self, *, reference: str) -> Dispute | None:
        try:
            parameters: Any = {"payment_intent": reference, "limit": PAGE}
            page = await self._call("disputes", self._client.v1.disputes.list_async(parameters))
            return build_dispute([_read(one, StripeDispute) for one in page.data])
        except (stripe.CardError, stripe.InvalidRequestError, stripe.IdempotencyError, NoDecision) as silent:
            raise GatewayDown("stripe lists no disputes") from silent

    async def card_fingerprint(self, method: str) -> str | None:
        try:
            found = await self._call("card", self._client.v1.payment_methods.retrieve_async(method))
            return _read(found, Instruments).fingerprint
        except (stripe.CardError, stripe.InvalidRequestError, stripe.IdempotencyError, NoDecision):
            return None

    async def list_recent(
        self, *, since: datetime, after: str | None = None
    ) -> tuple[Sequence[ListedPayment], str | None]:
        try:
            intents, is_more = await self._list(int(since.timestamp()), after)
        except (stripe.CardError, stripe.InvalidRequestError, stripe.IdempotencyError, NoDecision) as silent:
            raise GatewayDown("stripe lists nothing") from silent
        return [build_listed_payment(intent) for intent in intents], intents[-1].id if is_more else None

    def parse_webhook(self, raw: bytes, headers: Mapping[bytes, bytes], now: float) -> Webhook:
        return self._webhooks.read(raw, headers, now)

    async def _find(self, key: str, reference: str | None) -> StripeIntent | None:
        """The intent of a key. None: there is none, as certainly as Stripe can answer."""
        try:
            if reference is not None:
                return await self._retrieve(key, reference)
            if (found := await self._search(key)) is not None:
                return found
            since = int(time.time()) - SEARCH_LAG_S
        except stripe.InvalidRequestError as refused:
            if reference is not None:
                if refused.http_status == 404:
                    return None
                raise NoDecision from refused
            since = int(time.time()) - UNSEARCHABLE_S
        # Search has what is older than its lag, the list what is younger: what is in neither, is not.
        return await self._find_in_list(key, since)

    async def _retrieve(self, key: str, reference: str) -> StripeIntent:
        found = await self._call("look up", self._intents.retrieve_async(reference, {"expand": WHOLE}))
        intent = _read(found, StripeIntent)
        if intent.key != key:
            log.error("a payment with another key", gateway=self.name, key=key, reference=reference)
            raise NoDecision
        return intent

    async def _search(self, key: str) -> StripeIntent | None:
        quoted = key.replace("\\", "\\\\").replace("'", "\\'")
        query = f"metadata['{KEY}']:'{quoted}'"
        found = await self._call("search", self._intents.search_async({"query": query, "limit": 1}))
        # What search has may be an hour old: it tells the id, and the intent itself tells the rest.
        return await self._retrieve(key, found.data[0].id) if found.data else None

    async def _find_in_list(self, key: str, since: int) -> StripeIntent | None:
        after: str | None = None
        for _ in range(PAGES_MAX):
            try:
                intents, is_more = await self._list(since, after)
            except stripe.InvalidRequestError as refused:
                raise NoDecision from refused
            if found := next((intent for intent in intents if intent.key == key), None):
                return found
            if not is_more:
                return None
            after = intents[-1].id
        raise NoDecision

    async def _list(self, since: int, after: str | None) -> tuple[list[StripeIntent], bool]:
        """Newest first."""
        parameters: Any = {
            "created": {"gte": since},
            "limit": PAGE,
            "expand": [f"data.{part}" for part in WHOLE],
        }
        if after is not None:
            parameters["starting_after"] = after
        page = await self._call("list", self._intents.list_async(parameters))
        return [_read(one, StripeIntent) for one in page.data], page.has_more

    async def _cancel(self, intent: StripeIntent) -> Charge:
        """YES: cancelled, now or before. NO: the money was taken."""
        if intent.status not in {"succeeded", "canceled"}:
            try:
                cancelled = await self._call("call off", self._intents.cancel_async(intent.id))
                intent = _read(cancelled, StripeIntent)
            except stripe.InvalidRequestError:  # it has moved on since we looked
                intent = await self._retrieve(intent.key or "", intent.id)
        match intent.status:
            case "canceled":
                return Charge(answer=GatewayAnswer.YES, reference=intent.id)
            case "succeeded":
                return Charge(
                    answer=GatewayAnswer.NO,
                    reference=intent.id,
                    code="already_taken",
                    reason="The payment has been taken already.",
                )
            case _:  # a bank debit under way can be neither stopped nor promised
                return Charge(answer=GatewayAnswer.UNKNOWN, reference=intent.id)

    async def _refund_made(self, key: str, reference: str) -> StripeRefund | None:
        call = self._refunds.list_async({"payment_intent": reference, "limit": PAGE})
        made = [_read(one, StripeRefund) for one in (await self._call("refunds", call)).data]
        return next((one for one in made if one.metadata.get(REFUND_KEY) == key), None)

    async def _call(self, what: str, call: Awaitable[T]) -> T:
        """Passes refusals through; raises NoDecision, with a line in the log, for all other errors."""
        try:
            return await call
        except (stripe.CardError, stripe.InvalidRequestError, stripe.IdempotencyError):
            raise
        except (stripe.AuthenticationError, stripe.PermissionError) as refused:
            log.error("the gateway rejects our key", gateway=self.name, what=what, **_traits(refused))
            raise NoDecision from None
        except stripe.StripeError as failed:
            log.warning("no answer of the gateway", gateway=self.name, what=what, **_traits(failed))
            raise NoDecision from None
        except (aiohttp.ClientError, TimeoutError, OSError) as failed:
            # While the body is read, the SDK lets errors of the network through as they are.
            log.warning("no answer of the gateway", gateway=self.name, what=what, error=type(failed).__name__)
            raise NoDecision from None


def _intent_parameters(order: ChargeOrder) -> Any:
    parameters: dict[str, Any] = {
        "amount": order.amount_minor,
        "currency": order.currency.lower(),
        "description": order.description,
        "metadata": {KEY: order.key, FLOW: "token" if order.method else "page"},
        "automatic_payment_methods": {"enabled": True},
        "expand": WHOLE,
    }
    if order.method:
        parameters |= {"payment_method": order.method, "confirm": True}
        # Without an address to come back to, a method that sends the payer away would strand them.
        parameters["automatic_payment_methods"]["allow_redirects"] = "always" if order.return_url else "never"
        if order.return_url:
            parameters["return_url"] = order.return_url
    return parameters


R = TypeVar("R", bound=msgspec.Struct)


def _read(payload: stripe.StripeObject, kind: type[R]) -> R:
    try:
        return msgspec.convert(payload.to_dict(), kind)
    except msgspec.ValidationError as odd:  # not what their documents say: then we do not know
        log.error("an odd answer of the gateway", gateway="stripe", why=str(odd))
        raise NoDecision from None


def _is_repeated(made: stripe.StripeObject) -> bool:
    answer = made.last_response
    return answer is not None and (answer.headers or {}).get("idempotent-replayed") == "true"


def _refused(refused: stripe.CardError) -> Charge:
    payload = refused.error
    intent = getattr(payload, "payment_intent", None) if payload is not None else None
    failure = StripeFailure(
        code=refused.code,
        decline_code=getattr(payload, "decline_code", None) if payload is not None else None,
        message=refused.user_message,
    )
    return build_refusal(failure, getattr(intent, "id", None))


def _invalid(refused: stripe.InvalidRequestError) -> Charge:
    log.error("the gateway rejected our request", gateway="stripe", **_traits(refused))
    if refused.param == "payment_method":
        reason = "This payment method is not known, or cannot be used again."
        return Charge(answer=GatewayAnswer.NO, code="method_unknown", reason=reason)
    reason = "The payment could not be made. You have not been charged."
    return Charge(answer=GatewayAnswer.NO, code="request_refused", reason=reason)


def _traits(error: stripe.StripeError) -> dict[str, Any]:
    """For the log: never the message or the body, which may repeat what we sent."""
    return {
        "error": type(error).__name__,
        "status": error.http_status,
        "code": error.code,
        "param": getattr(error, "param", None),
        "stripe_request": error.request_id,
    }
