"""Refundable amounts: never more than was paid, never growing with time, exact to the instant."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise, permutations

from hypothesis import given
from hypothesis import strategies as some

from holdfast.pricing.terms import (
    DEFAULT_REFUND_POLICY,
    PolicyQuote,
    PriceLines,
    RefundPolicy,
    RefundStep,
    Terms,
    promises,
    quote_refund,
)

STARTS_AT = datetime(2031, 5, 1, 19, 30, tzinfo=UTC)
TICK = timedelta(microseconds=1)
NOTHING = PolicyQuote(amount_minor=0, percent=0, until=None)

steps = some.builds(RefundStep, hours_before=some.integers(0, 24 * 366), percent=some.integers(0, 100))
policies = some.builds(RefundPolicy, steps=some.lists(steps, max_size=6).map(tuple), keep_fee=some.booleans())
lines = some.builds(
    lambda price, fee, tax: Terms(fee_minor=fee, tax_bp=tax).lines(price),
    some.integers(0, 1_000_000_000),
    some.integers(0, 10_000),
    some.integers(0, 10_000),
)
seats = some.lists(lines, min_size=1, max_size=5)
moments = some.timedeltas(timedelta(days=-400), timedelta(days=3)).map(lambda away: STARTS_AT + away)


def policy(*steps: tuple[int, int], keep_fee: bool = False) -> RefundPolicy:
    return RefundPolicy(
        steps=tuple(RefundStep(hours_before=hours, percent=percent) for hours, percent in steps),
        keep_fee=keep_fee,
    )


def at(
    hours_before: float, of: RefundPolicy, *seats: PriceLines, away: timedelta = timedelta(0)
) -> PolicyQuote:
    now = STARTS_AT - timedelta(hours=hours_before) + away
    return quote_refund(of, seats or (PriceLines(1000, 800, 100, 100),), starts_at=STARTS_AT, now=now)


@given(policies, seats, moments)
def test_a_refund_is_never_more_than_the_price(
    of: RefundPolicy, paid: list[PriceLines], now: datetime
) -> None:
    back = quote_refund(of, paid, starts_at=STARTS_AT, now=now)

    most = sum(each.price_minor - (each.fee_minor if of.keep_fee else 0) for each in paid)
    assert 0 <= back.amount_minor <= most
    assert 0 <= back.percent <= 100


@given(policies, seats, moments, moments)
def test_the_refundable_amount_never_grows(
    of: RefundPolicy, paid: list[PriceLines], one: datetime, other: datetime
) -> None:
    sooner = quote_refund(of, paid, starts_at=STARTS_AT, now=min(one, other))
    later = quote_refund(of, paid, starts_at=STARTS_AT, now=max(one, other))

    assert sooner.amount_minor >= later.amount_minor
    assert sooner.percent >= later.percent


@given(some.lists(steps, max_size=4), some.booleans(), moments)
def test_the_order_of_the_steps_does_not_matter(
    steps: list[RefundStep], keep_fee: bool, now: datetime
) -> None:
    paid = [PriceLines(999, 800, 100, 99)]
    quoted = {
        repr(quote_refund(RefundPolicy(steps=order, keep_fee=keep_fee), paid, starts_at=STARTS_AT, now=now))
        for order in permutations(steps)
    }

    assert len(quoted) == 1


@given(policies, seats, moments)
def test_a_quote_holds_exactly_until_its_stated_instant(
    of: RefundPolicy, paid: list[PriceLines], now: datetime
) -> None:
    quoted = quote_refund(of, paid, starts_at=STARTS_AT, now=now)

    if quoted.until is None:
        assert quoted == NOTHING
        return
    assert now < quoted.until <= STARTS_AT
    last = quote_refund(of, paid, starts_at=STARTS_AT, now=quoted.until - TICK)
    after = quote_refund(of, paid, starts_at=STARTS_AT, now=quoted.until)
    assert (last.amount_minor, last.percent) == (quoted.amount_minor, quoted.percent)
    assert (after.amount_minor, after.percent) == (quoted.next_amount_minor, quoted.next_percent)
    assert after.percent < quoted.percent


@given(policies, seats, moments)
def test_seats_given_back_one_by_one_come_to_the_same(
    of: RefundPolicy, paid: list[PriceLines], now: datetime
) -> None:
    together = quote_refund(of, paid, starts_at=STARTS_AT, now=now)
    alone = [quote_refund(of, [each], starts_at=STARTS_AT, now=now) for each in paid]

    assert sum(each.amount_minor for each in alone) == together.amount_minor


@given(policies, seats, moments)
def test_a_cancelled_show_refunds_everything_at_any_time(
    of: RefundPolicy, paid: list[PriceLines], now: datetime
) -> None:
    back = quote_refund(of, paid, starts_at=STARTS_AT, now=now, cancelled=True)

    assert back == PolicyQuote(amount_minor=sum(each.price_minor for each in paid), percent=100, until=None)


@given(policies)
def test_promises_are_listed_in_order_and_each_refunds_less(of: RefundPolicy) -> None:
    quoted = promises(of, STARTS_AT)

    assert all(one.until < other.until and one.percent > other.percent for one, other in pairwise(quoted))
    assert all(each.percent > 0 for each in quoted)


def test_after_the_last_step_nothing_is_refunded() -> None:
    two = policy((48, 100), (2, 50))

    assert at(48, two, away=-TICK) == PolicyQuote(
        amount_minor=1000,
        percent=100,
        until=STARTS_AT - timedelta(hours=48),
        next_percent=50,
        next_amount_minor=500,
    )
    assert at(48, two) == PolicyQuote(
        amount_minor=500,
        percent=50,
        until=STARTS_AT - timedelta(hours=2),
        next_percent=0,
        next_amount_minor=0,
    )
    assert at(2, two, away=-TICK).percent == 50
    assert at(2, two) == NOTHING
    assert at(-1, two) == NOTHING


def test_by_default_everything_is_refunded_until_a_day_before() -> None:
    assert at(24, DEFAULT_REFUND_POLICY, away=-TICK).amount_minor == 1000
    assert at(24, DEFAULT_REFUND_POLICY) == NOTHING


def test_a_withheld_fee_is_not_refunded() -> None:
    withheld = policy((24, 100), (1, 50), keep_fee=True)

    assert at(30, withheld).amount_minor == 900
    assert at(3, withheld).amount_minor == 450


def test_half_of_an_odd_amount_is_rounded_up_for_each_seat() -> None:
    half = policy((1, 50))

    assert at(3, half, PriceLines(999, 999, 0, 0), PriceLines(999, 999, 0, 0)).amount_minor == 1000


def test_a_step_that_promises_less_for_longer_notice_is_not_listed() -> None:
    """With 80 % until the last hour, 50 % until the day before means nothing."""
    quoted = promises(policy((48, 50), (1, 80), (1, 20), (72, 0)), STARTS_AT)

    assert [(each.percent, each.hours_before) for each in quoted] == [(80, 1)]


def test_a_policy_without_steps_refunds_nothing() -> None:
    assert at(1000, RefundPolicy()) == NOTHING
    assert at(1000, policy((24, 0))) == NOTHING
