"""Stripe's wire, under /stripe, for who brings Stripe's own SDK.

    POST /v1/payment_intents                create, and with confirm=true charge     Idempotency-Key
    GET  /v1/payment_intents                newest first: created[gte], starting_after, limit
    GET  /v1/payment_intents/search         query=metadata['holdfast_key']:'…'
    GET  /v1/payment_intents/{id}
    POST /v1/payment_intents/{id}/confirm   with a payment_method, as the payer's browser does
    POST /v1/payment_intents/{id}/cancel
    POST /v1/refunds                        payment_intent, amount                   Idempotency-Key
    GET  /v1/refunds                        payment_intent
    GET  /v1/payment_methods/{token}        the card behind it

Requests are forms and answers JSON, both as Stripe writes them; the tokens are the sandbox's.
"""

import hashlib
from typing import Any

import msgspec

from holdfast.sandbox.behaviour import card_of
from holdfast.sandbox.dialects.stripe_intent import (
    QUERY,
    Form,
    error_of,
    form_of,
    intent_of,
    list_of,
    order_of,
    payment_id,
    refund_of,
    rendered,
)
from holdfast.sandbox.errors import Refused
from holdfast.sandbox.gateway import Call, Done
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
from holdfast.sandbox.payment import Payment, State

PAGE_MAX = 100
MISSING = Refused(404, "resource_missing", "No such thing.")

_encode = msgspec.json.Encoder().encode


def stripe_wire(shop: Shop) -> ASGI:
    wire = _Wire(shop)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            check_bearer(scope, shop.api_keys)
            await wire.answer(scope, receive, send)
        except Refused as refused:
            await reply(send, *error_of(refused))

    return answer


class _Wire:
    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._till = shop.till

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].removeprefix("/v1/").split("/")
        if scope["method"] == "GET":
            form = form_of(scope["query_string"].decode("latin-1"))
            await reply(send, 200, _encode(self._read(path, form, own_url(scope, self._shop.public_url))))
            return
        form = form_of(await read_body(receive))
        done = await self._write(path, form, self._call(scope, form))
        await reply_done(done, receive, send, self._till.settings.hold_s)

    def _call(self, scope: Scope, form: Form) -> Call:
        url = own_url(scope, self._shop.public_url)
        asked = _encode([scope["path"], sorted(form.items(), key=lambda item: item[0])])
        mark = hashlib.blake2b(asked, digest_size=16).digest()
        return Call(key_of(scope), mark, lambda made: rendered(made, url, form))

    async def _write(self, path: list[str], form: Form, call: Call) -> Done:
        match path:
            case ["payment_intents"]:
                return await self._till.create(order_of(form), call)
            case ["payment_intents", intent, "confirm"]:
                return await self._till.confirm(payment_id(intent), form.get("payment_method", ""), call)
            case ["payment_intents", intent, "cancel"]:
                return await self._cancel(self._payment(intent), call)
            case ["refunds"]:
                payment = self._payment(form.get("payment_intent", ""))
                amount = int(form["amount"]) if form.get("amount", "").isdigit() else None
                return await self._till.refund(payment.id, amount, call)
        raise MISSING

    async def _cancel(self, payment: Payment, call: Call) -> Done:
        if payment.state != State.DECLINED:
            return await self._till.cancel(payment.id, call)
        # To Stripe it is still open for another card until somebody cancels it; here it has ended already.
        cancelled = msgspec.structs.replace(payment, state=State.CANCELLED)
        return Done(*call.render(cancelled))

    def _read(self, path: list[str], form: Form, url: str) -> dict[str, Any]:
        expands = "latest_charge" in form.get("expand", [])
        match path:
            case ["payment_intents"]:
                return self._list(form, url)
            case ["payment_intents", "search"]:
                if (wanted := QUERY.fullmatch(form.get("query", ""))) is None:
                    raise Refused(400, "query_invalid", "Only metadata['holdfast_key'] is searched here.")
                found = self._till.find_by_reference(wanted[1].replace("\\'", "'").replace("\\\\", "\\"))
                intents = [intent_of(payment, url, expands=expands) for payment in found]
                return list_of(intents, is_more=False, kind="search_result")
            case ["payment_intents", intent]:
                return intent_of(self._payment(intent), url, expands=expands)
            case ["refunds"]:
                payment = self._payment(form.get("payment_intent", ""))
                refunds = [refund_of(refund, {}) for refund in self._till.refunds(payment.id)]
                return list_of(refunds, is_more=False)
            case ["payment_methods", token] if card := card_of(token):
                return {
                    "id": token,
                    "object": "payment_method",
                    "type": "card",
                    "card": {"fingerprint": card},
                }
        raise MISSING

    def _list(self, form: Form, url: str) -> dict[str, Any]:
        """Newest first, and the till has them oldest first: this reads them all, which is fine for a try."""
        since = float(form.get("created", {}).get("gte", 0))
        limit = min(int(form.get("limit", 10)), PAGE_MAX)
        found: list[Payment] = []
        while page := self._till.list(since, found[-1].id if found else None, PAGE_MAX):
            found += page
        found.reverse()
        if "starting_after" in form:
            last = payment_id(form["starting_after"])
            found = found[[payment.id for payment in found].index(last) + 1 :]
        expands = "data.latest_charge" in form.get("expand", [])
        intents = [intent_of(payment, url, expands=expands) for payment in found[:limit]]
        return list_of(intents, is_more=len(found) > limit)

    def _payment(self, intent: str) -> Payment:
        if (payment := self._till.find(payment_id(intent))) is None:
            raise Refused(404, "resource_missing", "No such payment_intent.")
        return payment
