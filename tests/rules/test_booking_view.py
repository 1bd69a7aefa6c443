"""Where a booking is, as its owner sees it: every state has a page, and a hold without time has lapsed."""

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.bookings import BookingState
from holdfast.payments import Payment, PaymentStep
from holdfast.site.booking_view import (
    DisplayState,
    display_state_of,
    is_late,
    late_money_state,
    view_version_of,
    waits_for,
)

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def a_payment(step: PaymentStep, **other: object) -> Payment:
    known: dict[str, object] = {
        "show_id": 1,
        "number": 1,
        "attempt": 1,
        "owner_id": 1,
        "fence": 1,
        "key": "k",
        "gateway": "sandbox",
        "method": "",
        "return_url": "",
        "step": step,
        "amount_minor": 1500,
        "currency": "EUR",
        "refunds_minor": 0,
        "reference": None,
        "action_url": None,
        "client_secret": None,
        "reason": None,
        "code": None,
        "deadline_at": NOON,
        "ended_at": None,
        "turn": 1,
        "tries": 0,
        "booking_state": BookingState.PAYING,
        "claim_id": "c",
        "seats": (0,),
        "prices_minor": (1500,),
        "revision": 1,
        "left_ms": 1000,
        "hold_left_ms": 1000,
        "read_at_s": 0.0,
    }
    return Payment(**known | other)  # type: ignore[arg-type]


@pytest.mark.parametrize("state", [state for state in BookingState if state is not BookingState.BLOCKED])
def test_every_state_that_an_owner_can_see_has_a_page(state: BookingState) -> None:
    assert display_state_of(state, 1000) in DisplayState


def test_an_expired_hold_shows_as_expired_before_the_sweep() -> None:
    assert display_state_of(BookingState.HELD, 1) is DisplayState.HELD
    assert display_state_of(BookingState.HELD, 0) is DisplayState.LAPSED
    assert display_state_of(BookingState.PAYING, -5) is DisplayState.PAYING, (
        "its payment decides, not the clock"
    )


@pytest.mark.parametrize(
    ("payment", "who"),
    [
        (a_payment(PaymentStep.LOOK_UP, action_url="https://pay.example/1"), "payer"),
        (a_payment(PaymentStep.LOOK_UP, client_secret="secret"), "browser"),
        (a_payment(PaymentStep.LOOK_UP, client_secret="secret", action_url="https://3ds.example"), "payer"),
        (a_payment(PaymentStep.LOOK_UP), "gateway"),
        (a_payment(PaymentStep.CHARGE), "gateway"),
        (a_payment(PaymentStep.CALL_OFF, action_url="https://pay.example/1"), "calling_off"),
        (a_payment(PaymentStep.LATE), "settling"),
        (None, "settling"),
    ],
)
def test_a_payment_under_way_names_the_party_it_waits_for(payment: Payment | None, who: str) -> None:
    assert waits_for(payment) == who


@pytest.mark.parametrize(
    ("step", "money"),
    [
        (PaymentStep.DECLINED, "none"),
        (PaymentStep.EXPIRED, "none"),
        (PaymentStep.WATCH, "watched"),
        (PaymentStep.LATE, "settling"),
        (PaymentStep.LOOK_UP, "settling"),
    ],
)
def test_an_expired_booking_shows_what_happened_to_the_money(step: PaymentStep, money: str) -> None:
    assert late_money_state(a_payment(step)) == money


def test_money_is_late_that_came_after_its_deadline() -> None:
    assert not is_late(a_payment(PaymentStep.PAID, ended_at=NOON))
    assert is_late(a_payment(PaymentStep.PAID, ended_at=NOON + timedelta(seconds=1)))
    assert not is_late(a_payment(PaymentStep.DECLINED, ended_at=NOON + timedelta(seconds=1)))
    assert not is_late(None)


def test_the_view_version_changes_whenever_the_page_would_look_different() -> None:
    waiting = a_payment(PaymentStep.LOOK_UP)
    versions = {
        view_version_of(DisplayState.HELD, None, 1000),
        view_version_of(DisplayState.HELD, None, 90_000),
        view_version_of(DisplayState.PAYING, waiting, 90_000),
        view_version_of(
            DisplayState.PAYING, a_payment(PaymentStep.LOOK_UP, action_url="https://pay.example/1"), 90_000
        ),
        view_version_of(DisplayState.HELD, a_payment(PaymentStep.DECLINED), 90_000),
        view_version_of(DisplayState.CONFIRMED, a_payment(PaymentStep.PAID), 90_000),
    }
    assert len(versions) == 6
    assert view_version_of(DisplayState.PAYING, waiting, 90_000) in versions
