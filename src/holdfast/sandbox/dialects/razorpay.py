"""Razorpay's wire, under /razorpay, for who brings Razorpay's own SDK.

    POST  /v1/orders                   receipt; with unique_receipt the same one twice is the same order
    GET   /v1/orders                   newest first: receipt, from, to, skip, count, expand[]=payments
    GET   /v1/orders/{id}
    PATCH /v1/orders/{id}              notes
    GET   /v1/orders/{id}/payments
    POST  /v1/payments/{id}/capture    amount, exactly
    POST  /v1/payments/{id}/refund     amount                                  X-Refund-Idempotency
    GET   /v1/payments/{id}/refunds

The payer pays on the sandbox's own page, whose address is in the order. What a shop has captured and noted
down is kept in memory: a sandbox that was started anew has only the orders and what was paid on them.
"""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

import msgspec

from holdfast.sandbox.dialects.razorpay_order import (
    Body,
    collection,
    error_of,
    order_of,
    order_page,
    payments_page,
    refund_page,
    row_id,
)
from holdfast.sandbox.errors import Refused
from holdfast.sandbox.gateway import Call, Done, Made
from holdfast.sandbox.http import (
    ASGI,
    Receive,
    Scope,
    Send,
    Shop,
    header,
    own_url,
    read_body,
    reply,
    reply_done,
)
from holdfast.sandbox.payment import Payment, Refund, State

PAGE_MAX = 100
MISSING = Refused(404, "resource_missing", "The id provided does not exist")

_encode = msgspec.json.Encoder().encode


def razorpay_wire(shop: Shop) -> ASGI:
    wire = _Wire(shop)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            _check_basic(scope, shop)
            await wire.answer(scope, receive, send)
        except Refused as refused:
            await reply(send, *error_of(refused))

    return answer


def _check_basic(scope: Scope, shop: Shop) -> None:
    """rzp_test_… and the sandbox's API key."""
    try:
        pair = base64.b64decode(header(scope, b"authorization").removeprefix(b"Basic "))
    except ValueError:
        pair = b""
    name, _, given = pair.partition(b":")
    is_ours = any(hmac.compare_digest(given, key) for key in shop.api_keys)
    if not name.startswith(b"rzp_test_") or not is_ours:
        raise Refused(401, "unauthorized", "Authentication failed")


class _Wire:
    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._till = shop.till
        self._one_by_one = asyncio.Lock()  # between looking for a receipt and using it
        self._captured: set[str] = set()
        self._notes: dict[str, Mapping[str, Any]] = {}  # of orders that were changed, and of refunds

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].removeprefix("/v1/").split("/")
        url = own_url(scope, self._shop.public_url)
        if scope["method"] == "GET":
            query = {name: values[-1] for name, values in parse_qs(scope["query_string"].decode()).items()}
            await reply(send, 200, _encode(self._read(path, query, url)))
            return
        raw = await read_body(receive)
        try:
            body: Body = json.loads(raw)
        except ValueError:
            raise Refused(400, "input_validation_failed", "The body is not JSON") from None
        match scope["method"], path:
            case "POST", ["orders"]:
                done = await self._create(body, url)
            case "PATCH", ["orders", order_id]:
                payment = self._row(order_id)
                self._notes[payment.id] = body.get("notes", {})
                done = Done(200, _encode(self._order(payment, url)))
            case "POST", ["payments", payment_id, "capture"]:
                done = Done(200, _encode(self._capture(self._row(payment_id), body)))
            case "POST", ["payments", payment_id, "refund"]:
                token = header(scope, b"x-refund-idempotency").decode("latin-1") or None
                done = await self._refund(self._row(payment_id), body, token)
            case _:
                raise MISSING
        await reply_done(done, receive, send, self._till.settings.hold_s)

    async def _create(self, body: Body, url: str) -> Done:
        order = order_of(body)

        def render(made: Made) -> tuple[int, bytes]:
            return (200, _encode(self._order(made, url))) if isinstance(made, Payment) else _no(made)

        async with self._one_by_one:
            if body.get("unique_receipt") and (earlier := self._till.find_by_reference(order.reference)):
                return Done(*render(earlier[0]))
            return await self._till.create(order, Call(None, b"", render))

    def _capture(self, payment: Payment, body: Body) -> Body:
        if payment.state != State.CAPTURED:
            raise Refused(400, "input_validation_failed", "The payment is not authorised")
        if payment.id in self._captured:
            raise Refused(400, "input_validation_failed", "This payment has already been captured")
        if (body.get("amount"), body.get("currency")) != (payment.amount_minor, payment.currency):
            raise Refused(
                400, "input_validation_failed", "Capture amount must be equal to the amount authorised"
            )
        self._captured.add(payment.id)
        [page] = payments_page(payment, is_captured=True)["items"]
        return dict(page)

    async def _refund(self, payment: Payment, body: Body, token: str | None) -> Done:
        if payment.id not in self._captured:
            raise Refused(400, "input_validation_failed", "The payment has not been captured")
        notes = body.get("notes", {})

        def render(made: Made) -> tuple[int, bytes]:
            if not isinstance(made, Refund):
                return _no(made)
            self._notes[made.id] = notes
            return 200, _encode(refund_page(made, notes))

        mark = hashlib.blake2b(_encode([payment.id, body]), digest_size=16).digest()
        return await self._till.refund(payment.id, body.get("amount"), Call(token, mark, render))

    def _read(self, path: list[str], query: dict[str, str], url: str) -> Body:
        match path:
            case ["orders"]:
                return self._orders(query, url)
            case ["orders", order_id]:
                return self._order(self._row(order_id), url)
            case ["orders", order_id, "payments"]:
                payment = self._row(order_id)
                return payments_page(payment, is_captured=payment.id in self._captured)
            case ["payments", payment_id, "refunds"]:
                refunds = self._till.refunds(self._row(payment_id).id)
                return collection([refund_page(one, self._notes.get(one.id, {})) for one in refunds])
        raise MISSING

    def _orders(self, query: dict[str, str], url: str) -> Body:
        found: list[Payment] = []
        if "receipt" in query:
            found = list(self._till.find_by_reference(query["receipt"]))
        else:
            since, until = float(query.get("from", 0)), float(query.get("to", "inf"))
            while page := self._till.list(since, found[-1].id if found else None, PAGE_MAX):
                found += page
            found = [one for one in reversed(found) if one.created_at < until + 1]
        skip, count = int(query.get("skip", 0)), min(int(query.get("count", 10)), PAGE_MAX)
        orders = [self._order(one, url) for one in found[skip : skip + count]]
        if query.get("expand[]") == "payments":
            for order, one in zip(orders, found[skip : skip + count], strict=True):
                order["payments"] = payments_page(one, is_captured=one.id in self._captured)
        return collection(orders)

    def _order(self, payment: Payment, url: str) -> Body:
        notes = self._notes.get(payment.id) or json.loads(payment.metadata)
        return order_page(payment, notes, is_captured=payment.id in self._captured, url=url)

    def _row(self, name: str) -> Payment:
        if (payment := self._till.find(row_id(name))) is None:
            raise MISSING
        return payment


def _no(made: Made) -> tuple[int, bytes]:
    assert isinstance(made, Refused)
    return error_of(made)
