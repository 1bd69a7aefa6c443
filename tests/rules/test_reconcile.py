"""Ledger and gateway compared: each difference is found, and settling it removes it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.payments.differences import (
    FRESH_S,
    WATCHED_LONG_S,
    DifferenceKind,
    LedgerPayment,
    find_difference,
    parse_duration,
)
from holdfast.payments.gateway import Charge, GatewayAnswer
from holdfast.payments.saga import PaymentStep

KEY = "booking_nonce_1"
PAID = LedgerPayment(
    key=KEY,
    payment_key=(1, 2, 1),
    step=PaymentStep.PAID,
    amount_minor=3000,
    currency="EUR",
    reference="pay_1",
    back_minor=0,
    requested_minor=0,
    age_s=600,
)
TAKEN = Charge(answer=GatewayAnswer.YES, reference="pay_1", amount_minor=3000, currency="EUR")
NOT_TAKEN, ABSENT, SILENT = (
    Charge(answer=answer) for answer in (GatewayAnswer.NO, GatewayAnswer.ABSENT, GatewayAnswer.UNKNOWN)
)
FAILED = (PaymentStep.DECLINED, PaymentStep.CALLED_OFF, PaymentStep.EXPIRED)
UNDER_WAY = (PaymentStep.CHARGE, PaymentStep.LOOK_UP, PaymentStep.CALL_OFF, PaymentStep.LATE)


def kind(ours: LedgerPayment | None, theirs: Charge) -> DifferenceKind | None:
    found = find_difference(KEY, ours, theirs)
    return found.kind if found else None


def test_equal_books_have_no_difference() -> None:
    assert find_difference(KEY, PAID, TAKEN) is None
    assert find_difference(KEY, replace(PAID, back_minor=1000), replace(TAKEN, refunded_minor=1000)) is None


@pytest.mark.parametrize("step", [*FAILED, PaymentStep.WATCH, *UNDER_WAY])
def test_a_capture_missing_in_the_ledger_is_found(step: PaymentStep) -> None:
    assert kind(replace(PAID, step=step), TAKEN) is DifferenceKind.TAKEN


@pytest.mark.parametrize("step", UNDER_WAY)
def test_a_recent_payment_is_left_to_the_payment_job(step: PaymentStep) -> None:
    assert kind(replace(PAID, step=step, age_s=FRESH_S - 1), TAKEN) is None


def test_a_payment_with_our_key_that_the_ledger_lost_is_found() -> None:
    assert kind(None, TAKEN) is DifferenceKind.LOST
    assert kind(None, NOT_TAKEN) is kind(None, ABSENT) is kind(None, SILENT) is None


@pytest.mark.parametrize("theirs", [NOT_TAKEN, ABSENT])
def test_a_paid_booking_without_a_capture_is_found(theirs: Charge) -> None:
    assert kind(PAID, theirs) is DifferenceKind.MISSING
    assert kind(replace(PAID, step=PaymentStep.RETURNED), theirs) is DifferenceKind.MISSING
    assert kind(replace(PAID, step=PaymentStep.DECLINED), theirs) is None


@pytest.mark.parametrize("change", [{"amount_minor": 2999}, {"currency": "USD"}])
@pytest.mark.parametrize("step", [PaymentStep.PAID, PaymentStep.DECLINED, PaymentStep.LOOK_UP])
def test_another_sum_is_found_and_never_settled(step: PaymentStep, change: dict[str, Any]) -> None:
    assert kind(replace(PAID, step=step), replace(TAKEN, **change)) is DifferenceKind.AMOUNT


def test_a_second_payment_with_the_same_key_is_found() -> None:
    assert kind(PAID, replace(TAKEN, reference="pay_2")) is DifferenceKind.TWICE


@pytest.mark.parametrize(
    ("back", "pending", "there", "is_found"),
    [
        (0, 0, 1000, True),
        (1000, 0, 0, True),
        (1000, 0, 1000, False),
        (0, 1000, 0, False),
        (0, 1000, 1000, False),
        (500, 1000, 1500, False),
        (500, 1000, 1501, True),
        (500, 1000, 499, True),
    ],
)
def test_sums_that_went_back_are_compared(back: int, pending: int, there: int, is_found: bool) -> None:
    ours = replace(PAID, back_minor=back, requested_minor=pending)

    assert kind(ours, replace(TAKEN, refunded_minor=there)) is (DifferenceKind.REFUNDED if is_found else None)


def test_a_silent_gateway_is_reported_where_it_matters() -> None:
    watched = replace(PAID, step=PaymentStep.WATCH, age_s=WATCHED_LONG_S + 1)

    assert kind(PAID, SILENT) is DifferenceKind.SILENT
    assert kind(watched, SILENT) is DifferenceKind.WATCHED
    assert kind(replace(watched, age_s=60), SILENT) is None
    assert kind(replace(PAID, step=PaymentStep.LOOK_UP), SILENT) is None


def test_a_difference_describes_both_sides() -> None:
    found = find_difference(KEY, replace(PAID, back_minor=500), replace(TAKEN, refunded_minor=1000))

    assert found is not None
    assert (found.ours, found.theirs) == ("paid 30.00 EUR, 5.00 EUR back", "taken 30.00 EUR, 10.00 EUR back")


ours = st.builds(
    LedgerPayment,
    key=st.just(KEY),
    payment_key=st.just((1, 2, 1)),
    step=st.sampled_from([*FAILED, *UNDER_WAY, PaymentStep.WATCH, PaymentStep.PAID, PaymentStep.RETURNED]),
    amount_minor=st.sampled_from([2999, 3000]),
    currency=st.sampled_from(["EUR", "USD"]),
    reference=st.sampled_from([None, "pay_1", "pay_2"]),
    back_minor=st.integers(0, 3),
    requested_minor=st.integers(0, 3),
    age_s=st.sampled_from([1.0, 100.0, 10_000.0]),
)
theirs = st.builds(
    Charge,
    answer=st.sampled_from(GatewayAnswer),
    reference=st.sampled_from([None, "pay_1", "pay_2"]),
    amount_minor=st.sampled_from([None, 2999, 3000]),
    currency=st.sampled_from([None, "EUR", "USD"]),
    refunded_minor=st.integers(0, 6),
)


def settled(before: LedgerPayment, charge: Charge, is_late: bool) -> LedgerPayment:
    """A payment whose money is found is confirmed or refunded in full."""
    sent_back = before.amount_minor - before.back_minor if is_late else 0
    return replace(
        before,
        step=PaymentStep.RETURNED if is_late else PaymentStep.PAID,
        reference=charge.reference or before.reference,
        requested_minor=sent_back,
        back_minor=0 if not is_late else before.back_minor,
    )


@given(ours | st.none(), theirs, st.booleans())
def test_comparing_again_finds_no_more(before: LedgerPayment | None, charge: Charge, is_late: bool) -> None:
    """A settled difference disappears; an unsettled one stays the same on a second run."""
    charge = replace(charge, refunded_minor=0)
    before = replace(before, back_minor=0) if before else None
    found = find_difference(KEY, before, charge)
    after = before
    if before is not None and found is not None and found.kind is DifferenceKind.TAKEN:
        after = settled(before, charge, is_late)

    again = find_difference(KEY, after, charge)

    assert again is None or (again == found and again.kind is not DifferenceKind.TAKEN)


@pytest.mark.parametrize(
    ("text", "length"),
    [("90m", timedelta(minutes=90)), ("24h", timedelta(hours=24)), ("7d", timedelta(days=7))],
)
def test_lengths_of_time_are_read(text: str, length: timedelta) -> None:
    assert parse_duration(text) == length


@pytest.mark.parametrize("text", ["", "24", "h", "-1h", "1w", "9999999d", "1 h", "٣h"])
def test_an_invalid_duration_is_not_parsed(text: str) -> None:
    assert parse_duration(text) is None
