"""The Stripe adapter, on its SDK, against an independent implementation of Stripe (R20–R24)."""

import secrets
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.config import Config
from holdfast.payments.gateway import Charge, ChargeOrder, GatewayAnswer
from holdfast.payments.gateways import open_gateway
from holdfast.payments.gateways.stripe import StripeGateway
from tests.fakes.localstripe import KEY, LocalStripe, local_stripe
from tests.support.wait import until

GOOD, FAILS = "pm_card_visa", "pm_card_chargeCustomerFail"
WEBHOOK_SECRET = "whsec_of_this_test"


@pytest.fixture(scope="module")
async def there() -> AsyncIterator[LocalStripe]:
    async with local_stripe() as it:
        yield it


@pytest.fixture
async def stripe(there: LocalStripe) -> AsyncIterator[StripeGateway]:
    config = Config(
        gateway="stripe",
        stripe_secret_key=KEY,
        stripe_api_url=there.url,
        stripe_webhook_secrets=WEBHOOK_SECRET,
    )
    gateway = open_gateway(config)
    assert isinstance(gateway, StripeGateway)
    yield gateway
    await gateway.close()


def order(method: str = GOOD, key: str | None = None) -> ChargeOrder:
    return ChargeOrder(
        key=key or f"pay-{secrets.token_hex(6)}",
        amount_minor=4500,
        currency="EUR",
        method=method,
        description="2 seats, Hamlet",
    )


async def made(stripe: StripeGateway, key: str) -> list[Charge]:
    since = datetime.now(UTC) - timedelta(minutes=5)
    seen, _ = await stripe.list_recent(since=since)
    return [one.charge for one in seen if one.key == key]


async def test_a_good_card_is_charged(stripe: StripeGateway) -> None:
    charge = await stripe.charge(order())

    assert (charge.answer, charge.amount_minor, charge.currency) == (GatewayAnswer.YES, 4500, "EUR")
    assert charge.reference is not None
    assert charge.reference.startswith("pi_")


async def test_a_payment_is_found_by_its_reference_and_by_its_key_alone(stripe: StripeGateway) -> None:
    request = order()
    charge = await stripe.charge(request)

    assert await stripe.look_up(key=request.key, reference=charge.reference) == charge
    assert await stripe.look_up(key=request.key, reference=None) == charge


async def test_an_unused_key_is_absent(stripe: StripeGateway) -> None:
    assert await stripe.look_up(key="pay-none", reference=None) == Charge(answer=GatewayAnswer.ABSENT)
    assert await stripe.look_up(key="pay-none", reference="pi_none") == Charge(answer=GatewayAnswer.ABSENT)
    assert await stripe.call_off(key="pay-none", reference=None) == Charge(answer=GatewayAnswer.ABSENT)


async def test_the_reference_of_another_key_proves_nothing(stripe: StripeGateway) -> None:
    charge = await stripe.charge(order())

    assert (await stripe.look_up(key="pay-mine", reference=charge.reference)).answer is GatewayAnswer.UNKNOWN


async def test_a_refused_card_is_a_no_and_its_intent_cannot_be_tried_again(stripe: StripeGateway) -> None:
    request = order(FAILS)

    charge = await stripe.charge(request)
    after = await stripe.look_up(key=request.key, reference=None)

    assert (charge.answer, charge.code) == (GatewayAnswer.NO, "card_declined")
    assert charge.reason == "Your card was declined."
    assert (after.answer, after.code) == (GatewayAnswer.NO, "card_declined")
    assert (await stripe.look_up(key=request.key, reference=None)).code == "cancelled"


async def test_an_unknown_token_is_refused(stripe: StripeGateway) -> None:
    charge = await stripe.charge(order("pm_unknown"))

    assert (charge.answer, charge.code) == (GatewayAnswer.NO, "request_refused")


async def test_without_a_token_the_payers_browser_gets_a_secret(stripe: StripeGateway) -> None:
    request = order("")
    charge = await stripe.charge(request)

    assert charge.answer is GatewayAnswer.UNKNOWN
    assert charge.client_secret is not None
    assert charge.client_secret.startswith(f"{charge.reference}_secret_")
    assert (await stripe.look_up(key=request.key, reference=None)).client_secret == charge.client_secret


async def test_a_cancelled_payment_is_never_paid(stripe: StripeGateway) -> None:
    request = order("")
    charge = await stripe.charge(request)

    off = await stripe.call_off(key=request.key, reference=charge.reference)

    assert off == Charge(answer=GatewayAnswer.YES, reference=charge.reference)
    assert await stripe.call_off(key=request.key, reference=None) == off
    assert (await stripe.look_up(key=request.key, reference=None)).answer is GatewayAnswer.NO


async def test_a_paid_payment_cannot_be_cancelled(stripe: StripeGateway) -> None:
    request = order()
    charge = await stripe.charge(request)

    off = await stripe.call_off(key=request.key, reference=charge.reference)

    assert (off.answer, off.code) == (GatewayAnswer.NO, "already_taken")


async def test_a_refund_is_made_once_a_key_though_stripe_has_forgotten_the_key(stripe: StripeGateway) -> None:
    # localstripe never remembers keys: this is Stripe a day later.
    request = order()
    charge = await stripe.charge(request)
    assert charge.reference is not None

    given = [
        await stripe.refund(key=key, reference=charge.reference, amount_minor=1000, currency="EUR")
        for key in ("back-1", "back-1", "back-2")
    ]

    assert [one.answer for one in given] == [GatewayAnswer.YES] * 3
    assert given[0] == given[1] != given[2]
    assert (await stripe.look_up(key=request.key, reference=charge.reference)).refunded_minor == 2000


async def test_the_card_behind_a_token_has_a_fingerprint(stripe: StripeGateway) -> None:
    card = await stripe.card_fingerprint(GOOD)

    assert card is not None
    assert card == await stripe.card_fingerprint(GOOD) != await stripe.card_fingerprint(FAILS)
    assert await stripe.card_fingerprint("pm_unknown") is None


async def test_payments_are_listed_with_their_keys(stripe: StripeGateway) -> None:
    request = order()
    charge = await stripe.charge(request)

    assert await made(stripe, request.key) == [charge]


async def test_a_correctly_signed_webhook_is_trusted(stripe: StripeGateway, there: LocalStripe) -> None:
    await there.post("/_config/webhooks/ours", url=f"{there.url}/hook", secret=WEBHOOK_SECRET)
    request = order()
    charge = await stripe.charge(request)

    def matching() -> list[tuple[bytes, dict[bytes, bytes]]]:
        return [hook for hook in there.hooks if request.key.encode() in hook[0]]

    async def is_there() -> bool:
        return bool(matching())

    await until(is_there)
    notice = stripe.parse_webhook(*matching()[0], time.time())

    assert (notice.kind, notice.key) == ("payment_intent.succeeded", request.key)
    assert (notice.reference, notice.amount_minor, notice.currency) == (charge.reference, 4500, "EUR")
