"""What the Razorpay adapter makes of every way in which Razorpay can fail, and of its page (R20–R24)."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog

from holdfast.payments.gateway import GatewayAnswer
from holdfast.payments.gateways.razorpay import RazorpayGateway
from holdfast.payments.gateways.razorpay_objects import (
    RazorpayOrder,
    RazorpayPayment,
    build_charge,
    build_receipt,
    refund_token,
)
from tests.fakes.scripted_server import DRIP, SILENCE, Oracle, an_oracle
from tests.support.gateway_setups import Counter, a_counter, a_sandbox
from tests.support.wait import until

SECRET = "never to be shown"
BAD_REQUEST = {"error": {"code": "BAD_REQUEST_ERROR", "description": "The amount must be at least INR 1.00"}}
TABLE: dict[str, tuple[int, Any, GatewayAnswer]] = {
    "a parameter is wrong": (400, BAD_REQUEST, GatewayAnswer.NO),
    "our key is not theirs": (401, BAD_REQUEST, GatewayAnswer.UNKNOWN),
    "our key may not do that": (403, BAD_REQUEST, GatewayAnswer.UNKNOWN),
    "the key is in use": (409, BAD_REQUEST, GatewayAnswer.UNKNOWN),
    "too many requests": (429, BAD_REQUEST, GatewayAnswer.UNKNOWN),
    "their fault": (500, {"error": {"code": "SERVER_ERROR"}}, GatewayAnswer.UNKNOWN),
    "a bank's fault": (502, {"error": {"code": "GATEWAY_ERROR"}}, GatewayAnswer.UNKNOWN),
    "a proxy's fault": (502, "<html>Bad Gateway</html>", GatewayAnswer.UNKNOWN),
    "a proxy that knows no such page": (404, "<html>Not Found</html>", GatewayAnswer.UNKNOWN),
    "a proxy that speaks JSON": (404, {"message": "no route"}, GatewayAnswer.UNKNOWN),
    "not JSON": (200, "OK", GatewayAnswer.UNKNOWN),
    "a list": (200, [], GatewayAnswer.UNKNOWN),
    "an answer without a status": (200, {"id": "order_1"}, GatewayAnswer.UNKNOWN),
    "a body that does not end": (200, DRIP, GatewayAnswer.UNKNOWN),
}


@pytest.fixture
async def oracle() -> AsyncIterator[Oracle]:
    async with an_oracle() as there:
        yield there


@pytest.fixture
async def counter(oracle: Oracle) -> AsyncIterator[Counter]:
    changes = {"razorpay_key_secret": SECRET, "razorpay_api_url": oracle.url, "gateway_timeout_ms": 700}
    async with a_counter("razorpay", oracle.url, **changes) as opened:
        yield opened


@pytest.fixture(scope="module")
async def sandbox_url(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    async with a_sandbox(tmp_path_factory.mktemp("razorpay")) as url:
        yield url


@pytest.fixture
async def shop(sandbox_url: str) -> AsyncIterator[Counter]:
    async with a_counter("razorpay", sandbox_url) as opened:
        yield opened


def order(**changes: Any) -> dict[str, Any]:
    whole = {"id": "order_1", "entity": "order", "status": "attempted", "amount": 4500, "currency": "INR"}
    return whole | {"created_at": 1, "notes": {"holdfast_key": "pay-7"}} | changes


def payment(**changes: Any) -> dict[str, Any]:
    whole = {"id": "pay_1", "entity": "payment", "status": "authorized", "amount": 4500, "currency": "INR"}
    return whole | {"order_id": "order_1", "captured": False} | changes


@pytest.mark.parametrize("name", TABLE)
async def test_every_failure_has_its_answer_and_nothing_reveals_our_secret(
    name: str, oracle: Oracle, counter: Counter, capfd: pytest.CaptureFixture[str]
) -> None:
    status, content, answer = TABLE[name]
    # An empty list of orders first: it is making the order that fails.
    oracle.says = lambda method, path: (200, {"items": []}) if method == "GET" else (status, content)

    with structlog.testing.capture_logs() as lines:
        charge = await counter.gateway.charge(counter.order())

    assert charge.answer is answer
    assert [method for method, _, _ in oracle.requests] == ["GET", "POST"]
    assert lines
    assert SECRET not in f"{lines} {charge} {counter.gateway!r}"
    assert capfd.readouterr().out == "", "the SDK prints what went wrong"


async def test_a_token_is_refused_without_a_request_to_the_gateway(oracle: Oracle, counter: Counter) -> None:
    charge = await counter.gateway.charge(counter.order("token_1"))

    assert (charge.answer, charge.code) == (GatewayAnswer.NO, "method_unsupported")
    assert not oracle.requests


async def test_a_payment_made_after_cancellation_is_never_captured(shop: Counter) -> None:
    order = shop.order()
    charge = await shop.gateway.charge(order)
    off = await shop.gateway.call_off(key=order.key, reference=charge.reference)

    await shop.choose(charge, "pay")

    after = await shop.gateway.look_up(key=order.key, reference=charge.reference)
    assert (off.answer, after.answer, after.code) == (GatewayAnswer.YES, GatewayAnswer.NO, "cancelled")
    # Now it is authorised, and still not captured.
    assert (
        await shop.gateway.call_off(key=order.key, reference=charge.reference)
    ).answer is GatewayAnswer.YES


async def test_the_reference_of_another_key_proves_nothing(shop: Counter) -> None:
    charge = await shop.paid(shop.order())

    assert (
        await shop.gateway.look_up(key="pay-mine", reference=charge.reference)
    ).answer is GatewayAnswer.UNKNOWN
    assert (
        await shop.gateway.call_off(key="pay-mine", reference=charge.reference)
    ).answer is GatewayAnswer.UNKNOWN


async def test_a_payer_who_was_refused_may_try_again(shop: Counter) -> None:
    order = shop.order()
    charge = await shop.gateway.charge(order)

    await shop.choose(charge, "decline")

    after = await shop.gateway.look_up(key=order.key, reference=charge.reference)
    assert (after.answer, after.client_secret) == (GatewayAnswer.UNKNOWN, charge.client_secret)


@pytest.mark.parametrize("change", [{"amount": 4400}, {"currency": "USD"}])
async def test_only_the_whole_amount_is_captured(
    oracle: Oracle, counter: Counter, change: dict[str, Any]
) -> None:
    def says(method: str, path: str) -> tuple[int, Any]:
        return 200, {"items": [payment(**change)]} if path.endswith("payments") else order()

    oracle.says = says

    assert (await counter.gateway.look_up(key="pay-7", reference="order_1")).answer is GatewayAnswer.UNKNOWN
    assert {method for method, _, _ in oracle.requests} == {"GET"}


async def test_a_capture_with_a_lost_answer_is_unknown_until_it_is_looked_up(
    oracle: Oracle, counter: Counter
) -> None:
    payments = [payment()]

    def says(method: str, path: str) -> tuple[int, Any]:
        if method == "POST":
            payments[0] = payment(status="captured", captured=True)
            return 200, DRIP
        return 200, {"items": payments} if path.endswith("payments") else order()

    oracle.says = says
    first = await counter.gateway.look_up(key="pay-7", reference="order_1")
    second = await counter.gateway.look_up(key="pay-7", reference="order_1")

    assert (first.answer, second.answer, second.amount_minor) == (
        GatewayAnswer.UNKNOWN,
        GatewayAnswer.YES,
        4500,
    )
    [captured] = [body for method, _, body in oracle.requests if method == "POST"]
    assert json.loads(captured) == {"amount": 4500, "currency": "INR"}


async def test_the_loser_of_a_capture_race_sees_the_captured_payment(
    oracle: Oracle, counter: Counter
) -> None:
    payments = [payment()]

    def says(method: str, path: str) -> tuple[int, Any]:
        if method == "POST":
            payments[0] = payment(status="captured", captured=True)
            description = "This payment has already been captured"
            return 400, {"error": {"code": "BAD_REQUEST_ERROR", "description": description}}
        return 200, {"items": payments} if path.endswith("payments") else order()

    oracle.says = says

    assert (await counter.gateway.look_up(key="pay-7", reference="order_1")).answer is GatewayAnswer.YES


@pytest.mark.parametrize("is_made", [False, True])
async def test_a_refund_carries_its_key_and_is_looked_for_before_it_is_made(
    oracle: Oracle, counter: Counter, is_made: bool
) -> None:
    refund = {"id": "rfnd_1", "status": "processed", "notes": {"holdfast_refund": "back-0123456789"}}

    def says(method: str, path: str) -> tuple[int, Any]:
        if path.endswith("payments"):
            return 200, {"items": [payment(status="captured", captured=True)]}
        return 200, refund if method == "POST" else {"items": [refund] if is_made else []}

    oracle.says = says
    refunded = await counter.gateway.refund(
        key="back-0123456789", reference="order_1", amount_minor=4500, currency="INR"
    )

    sent = [
        headers
        for (_, headers), request in zip(oracle.raw_requests, oracle.requests, strict=True)
        if request[0] == "POST"
    ]
    assert (refunded.answer, refunded.reference) == (GatewayAnswer.YES, "rfnd_1")
    keys = [headers[b"x-refund-idempotency"] for headers in sent]
    assert keys == ([] if is_made else [b"back-0123456789"])


async def test_where_receipts_cannot_be_unique_the_order_is_made_without(
    oracle: Oracle, counter: Counter
) -> None:
    def says(method: str, path: str) -> tuple[int, Any]:
        if method == "GET":
            return 200, {"items": []}
        if b"unique_receipt" not in oracle.requests[-1][2]:
            return 200, order(status="created")
        description = "unique_receipt is/are not required and should not be sent"
        return 400, {"error": {"code": "BAD_REQUEST_ERROR", "description": description}}

    oracle.says = says

    charge = await counter.gateway.charge(counter.order())

    assert (charge.answer, charge.client_secret) == (GatewayAnswer.UNKNOWN, "order_1")


async def test_a_charge_waits_for_a_thread_no_longer_than_for_an_answer(oracle: Oracle) -> None:
    oracle.says = lambda method, path: (200, DRIP)
    changes = {"razorpay_api_url": oracle.url, "gateway_timeout_ms": 150, "gateway_links_max": 1}
    async with a_counter("razorpay", oracle.url, **changes) as narrow:
        charges = await asyncio.gather(*(narrow.gateway.charge(narrow.order()) for _ in range(4)))

    assert {charge.answer for charge in charges} == {GatewayAnswer.UNKNOWN}


async def test_a_thread_that_waited_in_vain_is_there_for_the_next(oracle: Oracle) -> None:
    oracle.says = lambda method, path: (200, SILENCE if len(oracle.requests) == 1 else {"items": []})
    changes = {"razorpay_api_url": oracle.url, "gateway_timeout_ms": 300, "gateway_links_max": 1}
    async with a_counter("razorpay", oracle.url, **changes) as narrow:
        first = await narrow.gateway.look_up(key="pay-7", reference=None)

        async def is_answered() -> bool:
            return (await narrow.gateway.look_up(key="pay-7", reference=None)).answer is GatewayAnswer.ABSENT

        await until(is_answered)

    assert first.answer is GatewayAnswer.UNKNOWN


async def test_a_result_from_the_page_is_trusted_only_if_signed(counter: Counter) -> None:
    assert isinstance(counter.gateway, RazorpayGateway)
    is_return = counter.gateway.is_return
    mark = hmac.new(SECRET.encode(), b"order_1|pay_1", hashlib.sha256).hexdigest()

    assert is_return(order_id="order_1", payment_id="pay_1", signature=mark)
    assert not is_return(order_id="order_1", payment_id="pay_2", signature=mark)
    assert not is_return(order_id="order_1", payment_id="pay_1", signature="ä" * 64)
    assert not is_return(order_id="order_1", payment_id="pay_1", signature="")


@pytest.mark.parametrize("key", ["short", "with:colons:of-some-length", "k" * 65, "pay-0123456789"])
def test_any_key_fits_razorpays_fields(key: str) -> None:
    assert len(build_receipt(key)) <= 40
    assert len(refund_token(key)) >= 10
    assert refund_token(key).replace("-", "").replace("_", "").isalnum()


def test_a_upi_address_counts_as_a_card_and_is_not_stored_itself() -> None:
    order = RazorpayOrder("order_1", "paid", 4500, "INR", 1_700_000_000)
    paid = [
        RazorpayPayment(f"pay_{vpa}", "captured", 4500, "INR", captured=True, vpa=vpa)
        for vpa in ("asha@okbank", "Asha@OkBank", "ravi@okbank", None)
    ]

    first, same, other, card = (build_charge(order, [payment]).card for payment in paid)

    assert first == same != other
    assert first is not None
    assert "asha" not in first
    assert card is None
