"""What the sandbox does with a charge is decided by its token, its key and the settings alone (R20)."""

from collections import Counter

import pytest

from holdfast.sandbox.api import check_return_url
from holdfast.sandbox.behaviour import (
    TOKENS,
    RefundPlan,
    ReplyPlan,
    SandboxSettings,
    WebhookPlan,
    card_fingerprint,
    plan_charge,
    plan_refund,
)
from holdfast.sandbox.page import amount_text, origin
from holdfast.sandbox.payment import MOVES, PaymentMove, SandboxRefusal, SandboxState

CALM = SandboxSettings()
KEYS = [f"key-{number}" for number in range(4000)]


def test_in_calm_weather_the_good_token_is_good_whatever_the_key() -> None:
    assert {plan_charge("tok_ok", key, CALM) for key in KEYS[:50]} == {TOKENS["tok_ok"]}


def test_an_unknown_token_is_refused() -> None:
    with pytest.raises(SandboxRefusal, match="no_such_method"):
        plan_charge("tok_unknown", "key", CALM)


def test_a_suffix_is_another_card_and_the_same_behaviour() -> None:
    assert plan_charge("tok_declined:card-7", "key", CALM) == TOKENS["tok_declined"]
    assert card_fingerprint("tok_ok:card-7") == card_fingerprint("tok_slow:card-7")
    assert (
        len({card_fingerprint(method) for method in ("tok_ok", "tok_ok:card-7", "tok_ok:card-8", "tok_slow")})
        == 4
    )
    assert card_fingerprint("tok_unknown:card-7") is None


def test_a_storm_has_the_configured_rates() -> None:
    storm = SandboxSettings(timeout_paid=0.05, timeout_unpaid=0.05, decline=0.10, duplicate_webhook=0.05)

    plans = [plan_charge("tok_ok", key, storm) for key in KEYS]

    counted = Counter((plan.reply, plan.is_made, plan.move) for plan in plans)
    assert counted[ReplyPlan.LOST, True, PaymentMove.CAPTURE] == pytest.approx(200, abs=60)
    assert counted[ReplyPlan.LOST, False, PaymentMove.CAPTURE] == pytest.approx(200, abs=60)
    assert counted[ReplyPlan.NORMAL, True, PaymentMove.DECLINE] == pytest.approx(400, abs=80)
    assert sum(plan.webhooks is WebhookPlan.TWICE for plan in plans) == pytest.approx(200, abs=60)


def test_the_same_seed_is_the_same_storm_and_another_is_not() -> None:
    first, same, other = (SandboxSettings(decline=0.5, seed=seed) for seed in (1, 1, 2))

    storms = [[plan_charge("tok_ok", key, one) for key in KEYS[:100]] for one in (first, same, other)]

    assert storms[0] == storms[1] != storms[2]


def test_a_storm_bends_the_good_token_only() -> None:
    assert plan_charge("tok_slow", "key", SandboxSettings(decline=1.0)) == TOKENS["tok_slow"]
    assert plan_charge("tok_ok:card-7", "key", SandboxSettings(decline=1.0)).move is PaymentMove.DECLINE


def test_a_request_lost_in_a_storm_may_get_through_the_next_time() -> None:
    storm = SandboxSettings(timeout_unpaid=0.5)

    outcomes = [
        (plan_charge("tok_ok", key, storm).is_made, plan_charge("tok_ok", key, storm, lost=1).is_made)
        for key in KEYS[:200]
    ]

    assert {second for first, second in outcomes if not first} == {True, False}


def test_refunds_go_by_the_token_of_the_payment_and_by_the_storm() -> None:
    assert plan_refund("tok_refund_refused:card-7", "key", CALM) is RefundPlan.REFUSED
    assert plan_refund("tok_ok", "key", CALM) is RefundPlan.GIVEN
    assert plan_refund("tok_ok", "key", SandboxSettings(refund_timeout=1.0)) is RefundPlan.LOST_ONCE


@pytest.mark.parametrize(
    "changes",
    [{"decline": 1.1}, {"decline": -0.1}, {"decline": 0.6, "timeout_paid": 0.6}, {"late_s": -1.0}],
)
def test_impossible_settings_are_refused(changes: dict[str, float]) -> None:
    assert SandboxSettings(**changes).problem()  # type: ignore[arg-type]
    assert not CALM.problem()


def test_no_move_leads_out_of_an_end() -> None:
    ends = {SandboxState.CAPTURED, SandboxState.DECLINED, SandboxState.CANCELLED}

    assert not {state for state, _ in MOVES} & ends
    assert set(MOVES.values()) | {SandboxState.REQUIRES_PAYER} == set(SandboxState)


@pytest.mark.parametrize(
    ("amount_minor", "currency", "text"),
    [
        (4500, "EUR", "€ 45.00"),
        (5, "USD", "$ 0.05"),
        (1500, "JPY", "¥ 1 500"),
        (1250, "KWD", "KWD 1.250"),
        (123456789, "INR", "₹ 1 234 567.89"),
    ],
)
def test_amounts_are_written_by_the_currencys_exponent(amount_minor: int, currency: str, text: str) -> None:
    written = amount_text(amount_minor, currency)

    assert written.replace("\N{NO-BREAK SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", " ") == text


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "//shop.example/back",
        "/back",
        "https://",
        "https://shop.example/\r\nSet-Cookie: a=b",
        "https://shop.example\\@evil.example/",
        "https://[half",
        "ftp://shop.example/",
        "https://shop.example/" + "a" * 3000,
    ],
)
def test_a_payer_is_sent_back_to_the_web_only(url: str) -> None:
    with pytest.raises(SandboxRefusal, match="invalid_request"):
        check_return_url(url)


def test_the_return_address_is_shown_without_a_password() -> None:
    check_return_url("https://shop.example:8443/back?booking=7#seats")

    assert origin("https://ann:secret@shop.example:8443/back") == "https://shop.example:8443"
