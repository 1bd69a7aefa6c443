"""Webhooks of Razorpay: a valid one names the payment to query; no other field is trusted (R23)."""

import hashlib
import hmac
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.payments.gateway import BadWebhook, Webhook
from holdfast.payments.gateways.razorpay_webhooks import RETRIED_S, RazorpayWebhooks

NOW = 1_800_000_000
SECRET, NEXT_SECRET, OF_TEST_MODE = "ours and ours alone", "the next one", "of the test mode"
NOTICES = RazorpayWebhooks((SECRET,), "live", "acc_1", 10_000)

PAYMENT = {"id": "pay_1", "entity": "payment", "amount": 4500, "currency": "INR", "status": "captured"}
PAYMENT |= {"order_id": "order_1", "captured": True, "notes": {"holdfast_key": "from-the-browser"}}
ORDER = {"id": "order_1", "entity": "order", "amount": 4500, "currency": "INR", "status": "paid"}
ORDER |= {"created_at": NOW, "notes": {"holdfast_key": "pay-7"}}


def event(kind: str = "order.paid", at: int = NOW, **changes: Any) -> bytes:
    whole: dict[str, Any] = {
        "entity": "event",
        "account_id": "acc_1",
        "event": kind,
        "contains": ["payment", "order"],
    }
    whole |= {"payload": {"payment": {"entity": PAYMENT}, "order": {"entity": ORDER}}, "created_at": at}
    return json.dumps(whole | changes).encode()


GOOD = event()


def signed(raw: bytes, *, secret: str = SECRET, name: bytes = b"evt-1") -> dict[bytes, bytes]:
    mark = hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest().encode()
    return {b"x-razorpay-signature": mark, b"x-razorpay-event-id": name}


STALE, FUTURE, ELSEWHERE = event(at=NOW - RETRIED_S - 1), event(at=NOW + 301), event(account_id="acc_2")
LARGE = event(pad="x" * 10_000)
# name: the body, its headers, and the word that is counted
FORGERIES: dict[str, tuple[bytes, dict[bytes, bytes], str]] = {
    "no signature": (GOOD, {b"x-razorpay-event-id": b"evt-1"}, "signature"),
    "bad signature": (GOOD, {b"x-razorpay-signature": b"0" * 64}, "signature"),
    "another secret": (GOOD, signed(GOOD, secret="another secret"), "signature"),
    "an empty secret": (GOOD, signed(GOOD, secret=""), "signature"),
    # The body does not contain the mode: each mode has its own secret.
    "test mode": (GOOD, signed(GOOD, secret=OF_TEST_MODE), "signature"),
    "stale": (STALE, signed(STALE), "stale"),
    "future": (FUTURE, signed(FUTURE), "future"),
    "altered amount": (GOOD.replace(b"4500", b"4501"), signed(GOOD), "signature"),
    "altered currency": (GOOD.replace(b"INR", b"JPY"), signed(GOOD), "signature"),
    "encoded again": (json.dumps(json.loads(GOOD), indent=1).encode(), signed(GOOD), "signature"),
    "another account": (ELSEWHERE, signed(ELSEWHERE), "account"),
    "oversize": (LARGE, signed(LARGE), "oversize"),
    "not JSON": (b"{", signed(b"{"), "malformed"),
    "not UTF-8": (b'{"event":"\xff"}', signed(b'{"event":"\xff"}'), "malformed"),
    "bottomless": (b'{"x":' + b"[" * 5000, signed(b'{"x":' + b"[" * 5000), "malformed"),
    "no event": (event(entity="payment"), signed(event(entity="payment")), "malformed"),
    "no account": (event(account_id=None), signed(event(account_id=None)), "malformed"),
}


def test_a_good_notice_says_which_payment_to_look_at() -> None:
    notice = NOTICES.read(GOOD, signed(GOOD), NOW)

    assert notice == Webhook(
        event_id=notice.event_id,
        kind="order.paid",
        key="pay-7",
        reference="order_1",
        amount_minor=4500,
        currency="INR",
        mode="live",
    )


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_refused(name: str) -> None:
    raw, headers, why = FORGERIES[name]

    with pytest.raises(BadWebhook) as refused:
        NOTICES.read(raw, headers, NOW)

    assert refused.value.why == why


def test_a_replay_is_known_again_even_under_another_event_id() -> None:
    # The header is not signed: an attacker can replay a webhook with any value.
    first = NOTICES.read(GOOD, signed(GOOD, name=b"evt-1"), NOW)
    replayed = NOTICES.read(GOOD, signed(GOOD, name=b"evt-2"), NOW)

    assert first == replayed
    assert NOTICES.read(event(at=NOW - 1), signed(event(at=NOW - 1)), NOW).event_id != first.event_id


@pytest.mark.parametrize("late_s", [-300, 0, RETRIED_S])
def test_a_webhook_is_valid_during_the_day_of_its_retries(late_s: int) -> None:
    raw = event(at=NOW - late_s)

    assert NOTICES.read(raw, signed(raw), NOW).key == "pay-7"


def test_the_key_comes_from_the_order_and_never_from_the_browser() -> None:
    raw = event("payment.captured", payload={"payment": {"entity": PAYMENT}})

    notice = NOTICES.read(raw, signed(raw), NOW)

    assert (notice.key, notice.reference, notice.amount_minor) == (None, "order_1", 4500)


def test_while_secrets_change_either_is_good() -> None:
    both = RazorpayWebhooks((NEXT_SECRET, SECRET), "live", "acc_1", 10_000)

    assert both.read(GOOD, signed(GOOD), NOW).key == "pay-7"
    assert both.read(GOOD, signed(GOOD, secret=NEXT_SECRET), NOW).key == "pay-7"


def test_without_a_secret_every_webhook_is_refused() -> None:
    with pytest.raises(BadWebhook):
        RazorpayWebhooks((), "live", "acc_1", 10_000).read(GOOD, signed(GOOD, secret=""), NOW)


def test_no_repr_contains_a_secret() -> None:
    assert SECRET not in repr(NOTICES)


@pytest.mark.parametrize("payload", [{}, {"order": {"entity": {**ORDER, "notes": []}}}, {"settlement": {}}])
def test_a_foreign_payment_has_no_key(payload: dict[str, Any]) -> None:
    raw = event("some.kind", payload=payload)

    assert NOTICES.read(raw, signed(raw), NOW).key is None


@given(st.binary(max_size=300), st.binary(max_size=200))
def test_any_bytes_are_refused_and_nothing_breaks(raw: bytes, signature: bytes) -> None:
    with pytest.raises(BadWebhook):
        NOTICES.read(raw, {b"x-razorpay-signature": signature}, NOW)


@given(st.binary(max_size=300))
def test_any_signed_bytes_are_refused_and_nothing_breaks(raw: bytes) -> None:
    with pytest.raises(BadWebhook):
        NOTICES.read(raw, signed(raw), NOW)
