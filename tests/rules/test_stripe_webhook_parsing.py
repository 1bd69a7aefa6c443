"""Webhooks of Stripe: a valid one names the payment to query; no other field is trusted (R23)."""

import hashlib
import hmac
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.payments.gateway import BadWebhook, Webhook
from holdfast.payments.gateways.stripe_webhooks import StripeWebhooks

NOW = 1_800_000_000
SECRET, NEXT_SECRET, STRANGER = "whsec_ours", "whsec_next", "whsec_theirs"
NOTICES = StripeWebhooks((SECRET,), "live", 10_000)


def event(
    kind: str = "payment_intent.succeeded", about: dict[str, Any] | None = None, **changes: Any
) -> bytes:
    intent = {
        "object": "payment_intent",
        "id": "pi_1",
        "amount": 4500,
        "currency": "eur",
        "status": "succeeded",
    }
    intent |= {"metadata": {"holdfast_key": "pay-7"}}
    whole = {"id": "evt_1", "object": "event", "type": kind, "livemode": True, "created": NOW}
    whole |= {"data": {"object": about or intent}}
    return json.dumps(whole | changes).encode()


GOOD = event()


def signed(raw: bytes, *, at: int = NOW, secret: str = SECRET) -> dict[bytes, bytes]:
    mark = hmac.new(secret.encode(), b"%d." % at + raw, hashlib.sha256).hexdigest()
    return {b"stripe-signature": f"t={at},v1={mark}".encode()}


def header(text: str) -> dict[bytes, bytes]:
    return {b"stripe-signature": text.encode()}


MARK = signed(GOOD)[b"stripe-signature"].decode().partition("v1=")[2]
LARGE = event(pad="x" * 10_000)
# name: the body, its headers, and the word that is counted
FORGERIES: dict[str, tuple[bytes, dict[bytes, bytes], str]] = {
    "no signature": (GOOD, {}, "signature"),
    "bad signature": (GOOD, header(f"t={NOW},v1={'0' * 64}"), "signature"),
    "another secret": (GOOD, signed(GOOD, secret=STRANGER), "signature"),
    "an empty secret": (GOOD, signed(GOOD, secret=""), "signature"),
    "test mode": (event(livemode=False), signed(event(livemode=False)), "mode"),
    "stale": (GOOD, signed(GOOD, at=NOW - 301), "stale"),
    "future": (GOOD, signed(GOOD, at=NOW + 301), "future"),
    "stale, with its time made young": (
        GOOD,
        header(signed(GOOD, at=NOW - 301)[b"stripe-signature"].decode().replace(str(NOW - 301), str(NOW))),
        "signature",
    ),
    "altered amount": (GOOD.replace(b"4500", b"4501"), signed(GOOD), "signature"),
    "altered currency": (GOOD.replace(b"eur", b"jpy"), signed(GOOD), "signature"),
    "encoded again": (json.dumps(json.loads(GOOD), indent=1).encode(), signed(GOOD), "signature"),
    "another account": (event(account="acct_2"), signed(event(account="acct_2")), "account"),
    "oversize": (LARGE, signed(LARGE), "oversize"),
    "an older scheme": (GOOD, header(f"t={NOW},v0={MARK}"), "signature"),
    "no time": (GOOD, header(f"v1={MARK}"), "signature"),
    "two times": (GOOD, header(f"t={NOW},t={NOW + 1},v1={MARK}"), "signature"),
    "a time that is not a number": (GOOD, header(f"t=now,v1={MARK}"), "signature"),
    "not JSON": (b"{", signed(b"{"), "malformed"),
    "not UTF-8": (b'{"id":"\xff"}', signed(b'{"id":"\xff"}'), "malformed"),
    "bottomless": (b'{"x":' + b"[" * 5000, signed(b'{"x":' + b"[" * 5000), "malformed"),
    "no event": (event(object="charge"), signed(event(object="charge")), "malformed"),
    "no mode": (b'{"id":"evt_1","object":"event"}', signed(b'{"id":"evt_1","object":"event"}'), "malformed"),
}


def test_a_good_notice_says_which_payment_to_look_at() -> None:
    assert NOTICES.read(GOOD, signed(GOOD), NOW) == Webhook(
        event_id="evt_1",
        kind="payment_intent.succeeded",
        key="pay-7",
        reference="pi_1",
        amount_minor=4500,
        currency="EUR",
        mode="live",
    )


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_refused(name: str) -> None:
    raw, headers, why = FORGERIES[name]

    with pytest.raises(BadWebhook) as refused:
        NOTICES.read(raw, headers, NOW)

    assert refused.value.why == why


@pytest.mark.parametrize("late_s", [-300, 0, 300])
def test_clocks_may_differ_by_five_minutes(late_s: int) -> None:
    assert NOTICES.read(GOOD, signed(GOOD, at=NOW - late_s), NOW).event_id == "evt_1"


def test_a_copy_has_the_same_id_however_often_it_is_signed() -> None:
    again = NOTICES.read(GOOD, signed(GOOD, at=NOW + 60), NOW + 60)

    assert again == NOTICES.read(GOOD, signed(GOOD), NOW)


def test_while_secrets_change_either_is_good_and_both_may_sign() -> None:
    both = StripeWebhooks((NEXT_SECRET, SECRET), "live", 10_000)
    twice = signed(GOOD, secret=STRANGER)[b"stripe-signature"] + b",v1=" + MARK.encode()

    assert both.read(GOOD, signed(GOOD), NOW).event_id == "evt_1"
    assert both.read(GOOD, signed(GOOD, secret=NEXT_SECRET), NOW).event_id == "evt_1"
    assert both.read(GOOD, {b"stripe-signature": twice}, NOW).event_id == "evt_1"


def test_without_a_secret_every_webhook_is_refused() -> None:
    with pytest.raises(BadWebhook):
        StripeWebhooks((), "live", 10_000).read(GOOD, signed(GOOD, secret=""), NOW)


def test_no_repr_contains_a_secret() -> None:
    assert SECRET not in repr(NOTICES)


def test_a_charge_names_its_intent_and_has_its_key() -> None:
    about = {"object": "charge", "id": "ch_1", "payment_intent": "pi_1", "amount": 4500, "currency": "eur"}
    about |= {"metadata": {"holdfast_key": "pay-7"}}
    raw = event("charge.refunded", about)

    notice = NOTICES.read(raw, signed(raw), NOW)

    assert (notice.key, notice.reference, notice.amount_minor) == ("pay-7", "pi_1", 4500)


def test_a_refund_names_its_intent_and_its_amount_is_not_the_payments() -> None:
    about = {"object": "refund", "id": "re_1", "payment_intent": "pi_1", "amount": 100, "currency": "eur"}
    about |= {"metadata": {"holdfast_refund": "back-7"}}
    raw = event("refund.failed", about)

    notice = NOTICES.read(raw, signed(raw), NOW)

    assert (notice.key, notice.reference, notice.amount_minor) == (None, "pi_1", None)


@pytest.mark.parametrize(
    "about",
    [
        {"object": "payment_intent", "id": "pi_2", "amount": 1, "currency": "eur", "metadata": {}},
        {"object": "customer", "id": "cus_1", "metadata": None},
        {"object": "balance"},
    ],
)
def test_a_foreign_payment_has_no_key(about: dict[str, Any]) -> None:
    raw = event("some.kind", about)

    assert NOTICES.read(raw, signed(raw), NOW).key is None


@given(st.binary(max_size=300), st.binary(max_size=200))
def test_any_bytes_are_refused_and_nothing_breaks(raw: bytes, signature: bytes) -> None:
    with pytest.raises(BadWebhook):
        NOTICES.read(raw, {b"stripe-signature": signature}, NOW)


@given(st.binary(max_size=300))
def test_any_signed_bytes_are_refused_and_nothing_breaks(raw: bytes) -> None:
    with pytest.raises(BadWebhook):
        NOTICES.read(raw, signed(raw), NOW)
