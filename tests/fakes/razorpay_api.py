"""Razorpay's API under /razorpay, as Razorpay's own SDK calls it.

    POST  /v1/orders                   receipt; with unique_receipt the same one twice is the same order
    GET   /v1/orders                   newest first: receipt, from, to, skip, count, expand[]=payments
    GET   /v1/orders/{id}
    PATCH /v1/orders/{id}              notes
    GET   /v1/orders/{id}/payments
    POST  /v1/payments/{id}/capture    amount, exactly
    POST  /v1/payments/{id}/refund     amount                                  X-Refund-Idempotency
    GET   /v1/payments/{id}/refunds
    GET   /v1/refunds/{id}
    GET   /v1/disputes

The payer pays on the sandbox's own page, whose address is in the order. Captures and notes are in memory
only: after a restart, the fake has the orders and their payments, and nothing else.
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

from holdfast.sandbox.gateway import ApiCall, CallObject, CallResult
from holdfast.sandbox.http import (
    ASGI,
    Merchant,
    Receive,
    Scope,
    Send,
    header,
    own_url,
    read_body,
    send_reply,
    send_result,
)
from holdfast.sandbox.payment import SandboxPayment, SandboxRefund, SandboxRefusal, SandboxState
from tests.fakes.razorpay_objects import (
    Body,
    collection,
    dispute_json,
    order_json,
    parse_order,
    payments_json,
    refund_json,
    render_error,
    row_id,
)

PAGE_MAX = 100
MISSING = SandboxRefusal(404, "resource_missing", "The id provided does not exist")

_encode = msgspec.json.Encoder().encode


def razorpay_api(merchant: Merchant) -> ASGI:
    api = _RazorpayApi(merchant)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            _check_basic(scope, merchant)
            await api.answer(scope, receive, send)
        except SandboxRefusal as refused:
            await send_reply(send, *render_error(refused))

    return answer


def _check_basic(scope: Scope, merchant: Merchant) -> None:
    """rzp_test_… and the sandbox's API key."""
    try:
        pair = base64.b64decode(header(scope, b"authorization").removeprefix(b"Basic "))
    except ValueError:
        pair = b""
    name, _, given = pair.partition(b":")
    is_ours = any(hmac.compare_digest(given, key) for key in merchant.api_keys)
    if not name.startswith(b"rzp_test_") or not is_ours:
        raise SandboxRefusal(401, "unauthorized", "Authentication failed")


class _RazorpayApi:
    def __init__(self, merchant: Merchant) -> None:
        self._merchant = merchant
        self._core = merchant.core
        self._one_by_one = asyncio.Lock()  # between looking for a receipt and using it
        self._captured: set[str] = set()
        self._notes: dict[str, Mapping[str, Any]] = {}  # of orders that were changed, and of refunds

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].removeprefix("/v1/").split("/")
        url = own_url(scope, self._merchant.public_url)
        if scope["method"] == "GET":
            query = {name: values[-1] for name, values in parse_qs(scope["query_string"].decode()).items()}
            await send_reply(send, 200, _encode(self._read(path, query, url)))
            return
        raw = await read_body(receive)
        try:
            body: Body = json.loads(raw)
        except ValueError:
            raise SandboxRefusal(400, "input_validation_failed", "The body is not JSON") from None
        match scope["method"], path:
            case "POST", ["orders"]:
                done = await self._create(body, url)
            case "PATCH", ["orders", order_id]:
                payment = self._row(order_id)
                self._notes[payment.id] = body.get("notes", {})
                done = CallResult(200, _encode(self._order(payment, url)))
            case "POST", ["payments", payment_id, "capture"]:
                done = CallResult(200, _encode(self._capture(self._row(payment_id), body)))
            case "POST", ["payments", payment_id, "refund"]:
                token = header(scope, b"x-refund-idempotency").decode("latin-1") or None
                done = await self._refund(self._row(payment_id), body, token)
            case _:
                raise MISSING
        await send_result(done, receive, send, self._core.settings.hold_s)

    async def _create(self, body: Body, url: str) -> CallResult:
        order = parse_order(body)

        def render(made: CallObject) -> tuple[int, bytes]:
            return (200, _encode(self._order(made, url))) if isinstance(made, SandboxPayment) else _no(made)

        async with self._one_by_one:
            if body.get("unique_receipt") and (earlier := self._core.find_by_reference(order.reference)):
                return CallResult(*render(earlier[0]))
            return await self._core.create(order, ApiCall(None, b"", render))

    def _capture(self, payment: SandboxPayment, body: Body) -> Body:
        if payment.state != SandboxState.CAPTURED:
            raise SandboxRefusal(400, "input_validation_failed", "The payment is not authorised")
        if payment.id in self._captured:
            raise SandboxRefusal(400, "input_validation_failed", "This payment has already been captured")
        if (body.get("amount"), body.get("currency")) != (payment.amount_minor, payment.currency):
            raise SandboxRefusal(
                400, "input_validation_failed", "Capture amount must be equal to the amount authorised"
            )
        self._captured.add(payment.id)
        [page] = payments_json(payment, is_captured=True)["items"]
        return dict(page)

    async def _refund(self, payment: SandboxPayment, body: Body, token: str | None) -> CallResult:
        if payment.id not in self._captured:
            raise SandboxRefusal(400, "input_validation_failed", "The payment has not been captured")
        notes = body.get("notes", {})

        def render(made: CallObject) -> tuple[int, bytes]:
            if not isinstance(made, SandboxRefund):
                return _no(made)
            self._notes[made.id] = notes
            return 200, _encode(refund_json(made, notes))

        mark = hashlib.blake2b(_encode([payment.id, body]), digest_size=16).digest()
        return await self._core.refund(payment.id, body.get("amount"), ApiCall(token, mark, render))

    def _read(self, path: list[str], query: dict[str, str], url: str) -> Body:
        match path:
            case ["orders"]:
                return self._orders(query, url)
            case ["orders", order_id]:
                return self._order(self._row(order_id), url)
            case ["orders", order_id, "payments"]:
                payment = self._row(order_id)
                return payments_json(payment, is_captured=payment.id in self._captured)
            case ["payments", payment_id, "refunds"]:
                refunds = self._core.refunds(self._row(payment_id).id)
                return collection([refund_json(one, self._notes.get(one.id, {})) for one in refunds])
            case ["refunds", refund_id] if refund := self._core.find_refund(
                refund_id.replace("rfnd_", "re_", 1)
            ):
                return refund_json(refund, {})
            case ["disputes"]:
                return collection(self._disputes())
        raise MISSING

    def _disputes(self) -> list[Body]:
        payments: list[SandboxPayment] = []
        while page := self._core.list(0, payments[-1].id if payments else None, PAGE_MAX):
            payments += page
        found = [(one, self._core.find_dispute(one.id)) for one in reversed(payments)]
        return [dispute_json(dispute, payment) for payment, dispute in found if dispute]

    def _orders(self, query: dict[str, str], url: str) -> Body:
        found: list[SandboxPayment] = []
        if "receipt" in query:
            found = list(self._core.find_by_reference(query["receipt"]))
        else:
            since, until = float(query.get("from", 0)), float(query.get("to", "inf"))
            while page := self._core.list(since, found[-1].id if found else None, PAGE_MAX):
                found += page
            found = [one for one in reversed(found) if one.created_at < until + 1]
        skip, count = int(query.get("skip", 0)), min(int(query.get("count", 10)), PAGE_MAX)
        orders = [self._order(one, url) for one in found[skip : skip + count]]
        if query.get("expand[]") == "payments":
            for order, one in zip(orders, found[skip : skip + count], strict=True):
                order["payments"] = payments_json(one, is_captured=one.id in self._captured)
        return collection(orders)

    def _order(self, payment: SandboxPayment, url: str) -> Body:
        notes = self._notes.get(payment.id) or json.loads(payment.metadata)
        return order_json(payment, notes, is_captured=payment.id in self._captured, url=url)

    def _row(self, name: str) -> SandboxPayment:
        if (payment := self._core.find(row_id(name))) is None:
            raise MISSING
        return payment


def _no(made: CallObject) -> tuple[int, bytes]:
    assert isinstance(made, SandboxRefusal)
    return render_error(made)
