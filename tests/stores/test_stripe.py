"""What the Stripe adapter makes of every way in which Stripe can fail (R20–R24)."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog

from holdfast.payments.gateway import GatewayAnswer
from holdfast.payments.gateways.stripe_objects import StripeFailure, StripeIntent, build_charge, build_refusal
from tests.fakes.scripted_server import DRIP, Oracle, an_oracle
from tests.support.gateway_setups import Counter, a_counter

KEY = "sk_test_never_to_be_shown"
TABLE: dict[str, tuple[int, Any, GatewayAnswer]] = {
    "the bank refuses": (402, {"error": {"type": "card_error", "code": "card_declined"}}, GatewayAnswer.NO),
    "a parameter is wrong": (
        400,
        {"error": {"type": "invalid_request_error", "param": "x"}},
        GatewayAnswer.NO,
    ),
    "the token is unknown": (
        404,
        {"error": {"type": "invalid_request_error", "code": "resource_missing", "param": "payment_method"}},
        GatewayAnswer.NO,
    ),
    "the key is in use": (409, {"error": {"type": "idempotency_error"}}, GatewayAnswer.UNKNOWN),
    "too many requests": (429, {"error": {"type": "invalid_request_error"}}, GatewayAnswer.UNKNOWN),
    "too many requests, in the old format": (400, {"error": {"code": "rate_limit"}}, GatewayAnswer.UNKNOWN),
    "our key is not theirs": (401, {"error": {"type": "invalid_request_error"}}, GatewayAnswer.UNKNOWN),
    "our key may not do that": (403, {"error": {"type": "invalid_request_error"}}, GatewayAnswer.UNKNOWN),
    "their fault": (500, {"error": {"type": "api_error"}}, GatewayAnswer.UNKNOWN),
    "a proxy's fault": (502, "<html>Bad Gateway</html>", GatewayAnswer.UNKNOWN),
    "a proxy that knows no such page": (404, "<html>Not Found</html>", GatewayAnswer.UNKNOWN),
    "a proxy that speaks JSON": (404, {"message": "no route"}, GatewayAnswer.UNKNOWN),
    "not JSON": (200, "OK", GatewayAnswer.UNKNOWN),
    "an answer without a status": (200, {"id": "pi_1", "object": "payment_intent"}, GatewayAnswer.UNKNOWN),
    "a body that does not end": (200, DRIP, GatewayAnswer.UNKNOWN),
}


@pytest.fixture
async def oracle() -> AsyncIterator[Oracle]:
    async with an_oracle() as there:
        yield there


@pytest.fixture
async def counter(oracle: Oracle) -> AsyncIterator[Counter]:
    changes = {"stripe_secret_key": KEY, "stripe_api_url": oracle.url, "gateway_timeout_ms": 700}
    async with a_counter("stripe", oracle.url, **changes) as opened:
        yield opened


@pytest.mark.parametrize("name", TABLE)
async def test_every_failure_has_its_answer_and_no_log_reveals_our_key(
    name: str, oracle: Oracle, counter: Counter
) -> None:
    status, content, answer = TABLE[name]
    oracle.says = lambda method, path: (status, content)

    with structlog.testing.capture_logs() as lines:
        charge = await counter.gateway.charge(counter.order())

    assert charge.answer is answer
    assert len(oracle.requests) == 1, "the SDK must not try again by itself"
    assert lines or answer is GatewayAnswer.NO
    assert KEY not in f"{lines} {charge} {counter.gateway!r}"


def intent(**changes: Any) -> dict[str, Any]:
    whole = {"id": "pi_1", "object": "payment_intent", "status": "succeeded", "amount": 4500, "created": 1}
    whole |= {"currency": "eur", "metadata": {"holdfast_key": "pay-7", "holdfast_flow": "token"}}
    return whole | changes


def page(*intents: dict[str, Any], is_more: bool = False) -> tuple[int, Any]:
    return 200, {"object": "list", "has_more": is_more, "data": list(intents)}


async def test_an_order_that_differs_under_the_same_key_is_looked_up_and_never_a_no(
    oracle: Oracle, counter: Counter
) -> None:
    # The first may have been paid: "no" would have the fan pay again.
    def says(method: str, path: str) -> tuple[int, Any]:
        if method == "POST":
            return 400, {"error": {"type": "idempotency_error", "message": "other parameters"}}
        return page()

    oracle.says = says

    assert (await counter.gateway.charge(counter.order(key="pay-7"))).answer is GatewayAnswer.UNKNOWN
    assert [path for _, path, _ in oracle.requests[1:]] == [
        "/v1/payment_intents/search",
        "/v1/payment_intents",
    ]


async def test_a_payment_not_yet_in_search_is_found_in_the_list(oracle: Oracle, counter: Counter) -> None:
    def says(method: str, path: str) -> tuple[int, Any]:
        return page() if path.endswith("search") else page(intent(id="pi_0", metadata={}), intent())

    oracle.says = says

    found = await counter.gateway.look_up(key="pay-7", reference=None)

    assert (found.answer, found.reference) == (GatewayAnswer.YES, "pi_1")


async def test_a_list_that_does_not_end_proves_nothing(oracle: Oracle, counter: Counter) -> None:
    def says(method: str, path: str) -> tuple[int, Any]:
        return page() if path.endswith("search") else page(intent(metadata={}), is_more=True)

    oracle.says = says

    assert (await counter.gateway.look_up(key="pay-7", reference=None)).answer is GatewayAnswer.UNKNOWN
    assert len(oracle.requests) < 20


async def test_a_search_that_fails_proves_nothing(oracle: Oracle, counter: Counter) -> None:
    oracle.says = lambda method, path: (500, {}) if path.endswith("search") else page()

    assert (await counter.gateway.look_up(key="pay-7", reference=None)).answer is GatewayAnswer.UNKNOWN


async def test_an_unreadable_lookup_is_unknown(oracle: Oracle, counter: Counter) -> None:
    oracle.says = lambda method, path: (400, {"error": {"type": "invalid_request_error"}})
    payment = {"key": "pay-7", "reference": "pi_1"}

    assert (await counter.gateway.look_up(**payment)).answer is GatewayAnswer.UNKNOWN
    assert (await counter.gateway.call_off(**payment)).answer is GatewayAnswer.UNKNOWN


async def test_a_refusal_is_final_only_when_the_intent_cannot_be_retried(
    oracle: Oracle, counter: Counter
) -> None:
    refused = intent(status="requires_payment_method", last_payment_error={"code": "expired_card"})
    states = {"POST": (500, {}), "GET": (200, refused)}
    oracle.says = lambda method, path: states[method]
    payment = {"key": "pay-7", "reference": "pi_1"}

    assert (await counter.gateway.look_up(**payment)).answer is GatewayAnswer.UNKNOWN

    states["POST"] = (200, intent(status="canceled"))
    assert (await counter.gateway.look_up(**payment)).code == "expired_card"


async def test_a_buyer_paying_in_the_browser_may_try_another_card(oracle: Oracle, counter: Counter) -> None:
    metadata = {"holdfast_key": "pay-7", "holdfast_flow": "page"}
    failure = {"code": "card_declined"}
    waiting = intent(status="requires_payment_method", last_payment_error=failure, metadata=metadata)
    oracle.says = lambda method, path: (200, waiting | {"client_secret": "pi_1_secret_2"})

    charge = await counter.gateway.look_up(key="pay-7", reference="pi_1")

    assert (charge.answer, charge.client_secret) == (GatewayAnswer.UNKNOWN, "pi_1_secret_2")
    assert len(oracle.requests) == 1


async def test_a_payment_that_succeeds_during_cancellation_is_returned(
    oracle: Oracle, counter: Counter
) -> None:
    states = iter([intent(status="requires_action"), intent()])

    def says(method: str, path: str) -> tuple[int, Any]:
        if method == "POST":
            code = "payment_intent_unexpected_state"
            return 400, {"error": {"type": "invalid_request_error", "code": code}}
        return 200, next(states)

    oracle.says = says

    assert (await counter.gateway.call_off(key="pay-7", reference="pi_1")).answer is GatewayAnswer.NO


@pytest.mark.parametrize("status", ["processing", "requires_capture", "requires_confirmation", "a_new_word"])
def test_an_undecided_payment_is_unknown(status: str) -> None:
    intent = StripeIntent(id="pi_1", status=status, amount=1, currency="eur", created=1)

    assert build_charge(intent).answer is GatewayAnswer.UNKNOWN


@pytest.mark.parametrize("decline_code", ["stolen_card", "lost_card", "fraudulent", "pickup_card", None])
def test_a_stolen_card_is_reported_only_as_declined(decline_code: str | None) -> None:
    charge = build_refusal(StripeFailure(code="card_declined", decline_code=decline_code), "pi_1")

    assert (charge.answer, charge.code) == (GatewayAnswer.NO, "card_declined")


def test_the_received_amount_counts_and_not_the_requested_one() -> None:
    intent = StripeIntent(
        id="pi_1", status="succeeded", amount=4500, amount_received=4400, currency="eur", created=1
    )

    assert build_charge(intent).amount_minor == 4400
