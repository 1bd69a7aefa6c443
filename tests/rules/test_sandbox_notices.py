"""A notice of the sandbox is believed by its signature, byte for byte, and by its time (R22)."""

import hmac
import json

import pytest

from holdfast.config import Config
from holdfast.payments.gateway import BadWebhook
from holdfast.payments.gateways.sandbox import SandboxGateway, api_key
from holdfast.sandbox import webhook as sandbox_side

NOW = 1_800_000_000
SECRET = "whsec_now"
PAYMENT = {"id": "pay_1", "reference": "key-1", "amount_minor": 4500, "currency": "EUR", "state": "captured"}


def gateway(secret: str = SECRET) -> SandboxGateway:
    return SandboxGateway(Config(gateway_secret=secret))


def a_body(**changes: object) -> bytes:
    fields = {"id": "evt_1", "kind": "payment.captured", "mode": "test", "account": "acct_sandbox"}
    return json.dumps({**fields, "at": NOW, "payment": PAYMENT, **changes}).encode()


def signed(body: bytes, *secrets: str, at: int = NOW) -> dict[bytes, bytes]:
    made = sandbox_side.signature([secret.encode() for secret in secrets or (SECRET,)], body, at)
    return {b"holdfast-signature": made.encode()}


def why_not(raw: bytes, headers: dict[bytes, bytes], *, secret: str = SECRET) -> str:
    with pytest.raises(BadWebhook) as bad:
        gateway(secret).parse_webhook(raw, headers, NOW)
    return bad.value.why


def test_a_valid_webhook_is_parsed() -> None:
    body = a_body()

    webhook = gateway().parse_webhook(body, signed(body), NOW)

    assert (webhook.event_id, webhook.kind, webhook.mode) == ("evt_1", "payment.captured", "test")
    assert (webhook.key, webhook.reference) == ("key-1", "pay_1")
    assert (webhook.amount_minor, webhook.currency) == (4500, "EUR")


def test_a_webhook_that_is_not_about_a_payment_has_no_key() -> None:
    body = a_body(payment=None, kind="account.updated")

    assert gateway().parse_webhook(body, signed(body), NOW).key is None


@pytest.mark.parametrize("at", [NOW - 300, NOW, NOW + 300])
def test_a_clock_difference_of_five_minutes_is_accepted(at: int) -> None:
    body = a_body()

    assert gateway().parse_webhook(body, signed(body, at=at), NOW).event_id == "evt_1"


def test_older_and_younger_notices_are_not_believed() -> None:
    body = a_body()

    assert why_not(body, signed(body, at=NOW - 301)) == "stale"
    assert why_not(body, signed(body, at=NOW + 301)) == "future"


def test_during_a_rotation_either_side_may_have_the_new_secret_first() -> None:
    body = a_body()

    assert gateway("whsec_new, whsec_now").parse_webhook(body, signed(body, "whsec_now"), NOW)
    assert gateway("whsec_now").parse_webhook(body, signed(body, "whsec_new", "whsec_now"), NOW)
    assert why_not(body, signed(body, "whsec_old"), secret="whsec_new,whsec_now") == "signature"


def with_mark(mark: str) -> dict[bytes, bytes]:
    return {b"holdfast-signature": f"t={NOW},v1={mark}".encode()}


def test_a_webhook_with_a_wrong_signature_is_refused() -> None:
    body = a_body()
    good = signed(body)[b"holdfast-signature"]
    mark = good.partition(b"v1=")[2].decode()

    assert why_not(body, {}) == "signature"
    assert why_not(body, {b"stripe-signature": good}) == "signature"
    assert why_not(body, {b"holdfast-signature": b""}) == "signature"
    assert why_not(body, {b"holdfast-signature": f"t={NOW}".encode()}) == "signature"
    assert why_not(body, {b"holdfast-signature": f"v1={mark}".encode()}) == "signature"
    assert why_not(body, {b"holdfast-signature": f"t={NOW},v0={mark}".encode()}) == "signature"
    assert why_not(body, {b"holdfast-signature": f"t={NOW + 1},v1={mark}".encode()}) == "signature"
    assert why_not(body, {b"holdfast-signature": f"t={NOW},t={NOW},v1={mark}".encode()}) == "signature"
    assert why_not(body, {b"holdfast-signature": f"t=-{NOW},v1={mark}".encode()}) == "signature"
    assert why_not(body, {b"holdfast-signature": f"t={'9' * 5000},v1={mark}".encode()}) == "signature"
    assert why_not(body, with_mark(mark[:-1] + ("0" if mark[-1] != "0" else "1"))) == "signature"
    assert why_not(body, with_mark(mark.upper())) == "signature"
    assert why_not(body, with_mark("é")) == "signature"
    assert why_not(body, {b"holdfast-signature": b"\xff\xfe"}) == "signature"


def test_the_signature_covers_the_raw_bytes() -> None:
    body = a_body()

    assert why_not(body.replace(b": ", b":"), signed(body)) == "signature"
    assert why_not(body.replace(b"4500", b"4501"), signed(body)) == "signature"


def test_a_signature_without_a_secret_proves_nothing() -> None:
    body = a_body()
    nothing = hmac.digest(b"", b"%d." % NOW + body, "sha256").hex()

    assert why_not(body, with_mark(nothing), secret="") == "signature"
    assert why_not(body, with_mark(nothing), secret=" , ") == "signature"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"id": 7}', b"\xff", b'{"id": "evt_1"}'])
def test_signed_nonsense_is_malformed(body: bytes) -> None:
    assert why_not(body, signed(body)) == "malformed"


def test_a_notice_that_is_too_long_is_not_read() -> None:
    body = a_body(more="x" * 70_000)

    assert why_not(body, signed(body)) == "malformed"


def test_webhooks_of_another_mode_or_account_are_foreign() -> None:
    live, other = a_body(mode="live"), a_body(account="acct_2")

    assert why_not(live, signed(live)) == "mode"
    assert why_not(other, signed(other)) == "account"


def test_both_sides_derive_the_same_api_key_and_it_hides_the_secret() -> None:
    key = sandbox_side.api_key(SECRET)

    assert key == api_key(SECRET.encode())
    assert SECRET not in key
