"""The specification's own library accepts our signatures."""

import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from holdfast.engines.row_lease import pause_after
from holdfast.webhooks_out.delivery import PAUSES_S, build_headers, format_secret, sign

SECRETS = st.binary(min_size=24, max_size=64)


@given(SECRETS, st.integers(1, 2**63), st.dictionaries(st.text(), st.text()))
def test_their_library_accepts_it(secret: bytes, fact_id: int, body: dict[str, str]) -> None:
    raw = msgspec.json.encode(body)
    sent = build_headers([secret], str(fact_id), int(time.time()), raw)

    assert Webhook(format_secret(secret)).verify(raw, sent) == body


def test_while_one_secret_follows_another_either_is_accepted_and_no_third() -> None:
    old, new, other = b"o" * 32, b"n" * 32, b"x" * 32
    sent = build_headers([new, old], "7", int(time.time()), b"{}")

    for secret in (old, new):
        assert Webhook(format_secret(secret)).verify(b"{}", sent) == {}
    with pytest.raises(WebhookVerificationError):
        Webhook(format_secret(other)).verify(b"{}", sent)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp"])
def test_the_id_and_the_time_are_signed(name: str) -> None:
    sent = build_headers([b"s" * 32], "7", int(time.time()), b"{}")
    sent[name] = str(int(sent[name]) + 1)

    with pytest.raises(WebhookVerificationError):
        Webhook(format_secret(b"s" * 32)).verify(b"{}", sent)


def test_the_signature_matches_the_example_of_the_specification() -> None:
    secret = bytes.fromhex("31f290f6bf06298aab4f08d43c3f082cf648a362da2da4b0")

    signature = sign([secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')

    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_pauses_grow_and_end() -> None:
    pauses = [pause_after(tries, PAUSES_S) for tries in range(1, len(PAUSES_S) + 2)]

    assert pauses[:6] == [5, 30, 120, 600, 3600, 21_600]
    assert pauses[:-1] == sorted(PAUSES_S)
    assert pauses[-1] is None
