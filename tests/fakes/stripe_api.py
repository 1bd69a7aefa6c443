"""Stripe's API under /stripe, as Stripe's own SDK calls it.

    POST /v1/payment_intents                create, and with confirm=true charge     Idempotency-Key
    GET  /v1/payment_intents                newest first: created[gte], starting_after, limit
    GET  /v1/payment_intents/search         query=metadata['holdfast_key']:'…'
    GET  /v1/payment_intents/{id}
    POST /v1/payment_intents/{id}/confirm   with a payment_method, as the payer's browser does
    POST /v1/payment_intents/{id}/cancel
    POST /v1/refunds                        payment_intent, amount                   Idempotency-Key
    GET  /v1/refunds                        payment_intent
    GET  /v1/refunds/{id}
    GET  /v1/disputes                       payment_intent
    GET  /v1/payment_methods/{token}        the card behind it

Requests are forms and answers JSON, both as Stripe writes them; the tokens are the sandbox's.
"""

import hashlib
from typing import Any

import msgspec

from holdfast.sandbox.behaviour import card_fingerprint
from holdfast.sandbox.gateway import ApiCall, CallResult
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
from holdfast.sandbox.payment import SandboxPayment, SandboxRefusal, SandboxState
from tests.fakes.stripe_objects import (
    QUERY,
    Form,
    dispute_json,
    intent_json,
    list_json,
    parse_charge,
    parse_form,
    payment_id,
    refund_json,
    render_error,
    render_stripe,
)

PAGE_MAX = 100
MISSING = SandboxRefusal(404, "resource_missing", "No such thing.")

_encode = msgspec.json.Encoder().encode


def stripe_api(merchant: Merchant) -> ASGI:
    api = _StripeApi(merchant)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            check_bearer(scope, merchant.api_keys)
            await api.answer(scope, receive, send)
        except SandboxRefusal as refused:
            await send_reply(send, *render_error(refused))

    return answer


class _StripeApi:
    def __init__(self, merchant: Merchant) -> None:
        self._merchant = merchant
        self._core = merchant.core

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].removeprefix("/v1/").split("/")
        if scope["method"] == "GET":
            form = parse_form(scope["query_string"].decode("latin-1"))
            await send_reply(
                send, 200, _encode(self._read(path, form, own_url(scope, self._merchant.public_url)))
            )
            return
        form = parse_form(await read_body(receive))
        done = await self._write(path, form, self._call(scope, form))
        await send_result(done, receive, send, self._core.settings.hold_s)

    def _call(self, scope: Scope, form: Form) -> ApiCall:
        url = own_url(scope, self._merchant.public_url)
        content = _encode([scope["path"], sorted(form.items(), key=lambda item: item[0])])
        mark = hashlib.blake2b(content, digest_size=16).digest()
        return ApiCall(idempotency_key(scope), mark, lambda made: render_stripe(made, url, form))

    async def _write(self, path: list[str], form: Form, call: ApiCall) -> CallResult:
        match path:
            case ["payment_intents"]:
                return await self._core.create(parse_charge(form), call)
            case ["payment_intents", intent, "confirm"]:
                return await self._core.confirm(payment_id(intent), form.get("payment_method", ""), call)
            case ["payment_intents", intent, "cancel"]:
                return await self._cancel(self._payment(intent), call)
            case ["refunds"]:
                payment = self._payment(form.get("payment_intent", ""))
                amount = int(form["amount"]) if form.get("amount", "").isdigit() else None
                return await self._core.refund(payment.id, amount, call)
        raise MISSING

    async def _cancel(self, payment: SandboxPayment, call: ApiCall) -> CallResult:
        if payment.state != SandboxState.DECLINED:
            return await self._core.cancel(payment.id, call)
        # At Stripe it stays open for another card until it is cancelled; here it has ended already.
        cancelled = msgspec.structs.replace(payment, state=SandboxState.CANCELLED)
        return CallResult(*call.render(cancelled))

    def _read(self, path: list[str], form: Form, url: str) -> dict[str, Any]:
        expands = "latest_charge" in form.get("expand", [])
        match path:
            case ["payment_intents"]:
                return self._list(form, url)
            case ["payment_intents", "search"]:
                if (wanted := QUERY.fullmatch(form.get("query", ""))) is None:
                    raise SandboxRefusal(
                        400, "query_invalid", "Only metadata['holdfast_key'] is searched here."
                    )
                found = self._core.find_by_reference(wanted[1].replace("\\'", "'").replace("\\\\", "\\"))
                intents = [intent_json(payment, url, expands=expands) for payment in found]
                return list_json(intents, is_more=False, kind="search_result")
            case ["payment_intents", intent]:
                return intent_json(self._payment(intent), url, expands=expands)
            case ["refunds"]:
                payment = self._payment(form.get("payment_intent", ""))
                refunds = [refund_json(refund, {}) for refund in self._core.refunds(payment.id)]
                return list_json(refunds, is_more=False)
            case ["refunds", refund_id] if refund := self._core.find_refund(refund_id):
                return refund_json(refund, {})
            case ["disputes"]:
                payment = self._payment(form.get("payment_intent", ""))
                found_dispute = self._core.find_dispute(payment.id)
                disputes = [dispute_json(found_dispute, payment.currency)] if found_dispute else []
                return list_json(disputes, is_more=False)
            case ["payment_methods", token] if card := card_fingerprint(token):
                return {
                    "id": token,
                    "object": "payment_method",
                    "type": "card",
                    "card": {"fingerprint": card},
                }
        raise MISSING

    def _list(self, form: Form, url: str) -> dict[str, Any]:
        """Newest first. The core lists the oldest first, so this reads all of them: fine for tests."""
        since = float(form.get("created", {}).get("gte", 0))
        limit = min(int(form.get("limit", 10)), PAGE_MAX)
        found: list[SandboxPayment] = []
        while page := self._core.list(since, found[-1].id if found else None, PAGE_MAX):
            found += page
        found.reverse()
        if "starting_after" in form:
            last = payment_id(form["starting_after"])
            found = found[[payment.id for payment in found].index(last) + 1 :]
        expands = "data.latest_charge" in form.get("expand", [])
        intents = [intent_json(payment, url, expands=expands) for payment in found[:limit]]
        return list_json(intents, is_more=len(found) > limit)

    def _payment(self, intent: str) -> SandboxPayment:
        if (payment := self._core.find(payment_id(intent))) is None:
            raise SandboxRefusal(404, "resource_missing", "No such payment_intent.")
        return payment
