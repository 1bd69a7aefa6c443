"""What comes back: never more than was paid, never more later than sooner, to the very instant."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise, permutations

from hypothesis import given
from hypothesis import strategies as some

from holdfast.pricing.breakdown import PriceLines
from holdfast.pricing.refund_policy import (
    DEFAULT_REFUND_POLICY,
    PolicyQuote,
    RefundPolicy,
    RefundStep,
    promises,
    quote_refund,
)
from holdfast.pricing.terms import Terms

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


def policy(*said: tuple[int, int], keep_fee: bool = False) -> RefundPolicy:
    return RefundPolicy(
        steps=tuple(RefundStep(hours_before=hours, percent=percent) for hours, percent in said),
        keep_fee=keep_fee,
    )


def at(
    hours_before: float, of: RefundPolicy, *seats: PriceLines, away: timedelta = timedelta(0)
) -> PolicyQuote:
    now = STARTS_AT - timedelta(hours=hours_before) + away
    return quote_refund(of, seats or (PriceLines(1000, 800, 100, 100),), starts_at=STARTS_AT, now=now)


@given(policies, seats, moments)
def test_nobody_gets_back_more_than_they_paid(
    of: RefundPolicy, paid: list[PriceLines], now: datetime
) -> None:
    back = quote_refund(of, paid, starts_at=STARTS_AT, now=now)

    most = sum(each.price_minor - (each.fee_minor if of.keep_fee else 0) for each in paid)
    assert 0 <= back.amount_minor <= most
    assert 0 <= back.percent <= 100


@given(policies, seats, moments, moments)
def test_what_comes_back_never_grows(
    of: RefundPolicy, paid: list[PriceLines], one: datetime, other: datetime
) -> None:
    sooner = quote_refund(of, paid, starts_at=STARTS_AT, now=min(one, other))
    later = quote_refund(of, paid, starts_at=STARTS_AT, now=max(one, other))

    assert sooner.amount_minor >= later.amount_minor
    assert sooner.percent >= later.percent


@given(some.lists(steps, max_size=4), some.booleans(), moments)
def test_the_order_of_the_steps_says_nothing(said: list[RefundStep], keep_fee: bool, now: datetime) -> None:
    paid = [PriceLines(999, 800, 100, 99)]
    told = {
        repr(quote_refund(RefundPolicy(steps=order, keep_fee=keep_fee), paid, starts_at=STARTS_AT, now=now))
        for order in permutations(said)
    }

    assert len(told) == 1


@given(policies, seats, moments)
def test_a_quote_holds_until_the_instant_it_names_and_not_a_microsecond_longer(
    of: RefundPolicy, paid: list[PriceLines], now: datetime
) -> None:
    told = quote_refund(of, paid, starts_at=STARTS_AT, now=now)

    if told.until is None:
        assert told == NOTHING
        return
    assert now < told.until <= STARTS_AT
    last = quote_refund(of, paid, starts_at=STARTS_AT, now=told.until - TICK)
    after = quote_refund(of, paid, starts_at=STARTS_AT, now=told.until)
    assert (last.amount_minor, last.percent) == (told.amount_minor, told.percent)
    assert (after.amount_minor, after.percent) == (told.next_amount_minor, told.next_percent)
    assert after.percent < told.percent


@given(policies, seats, moments)
def test_seats_given_back_one_by_one_come_to_the_same(
    of: RefundPolicy, paid: list[PriceLines], now: datetime
) -> None:
    together = quote_refund(of, paid, starts_at=STARTS_AT, now=now)
    alone = [quote_refund(of, [each], starts_at=STARTS_AT, now=now) for each in paid]

    assert sum(each.amount_minor for each in alone) == together.amount_minor


@given(policies, seats, moments)
def test_a_cancelled_show_gives_everything_back_whenever_it_is_asked(
    of: RefundPolicy, paid: list[PriceLines], now: datetime
) -> None:
    back = quote_refund(of, paid, starts_at=STARTS_AT, now=now, cancelled=True)

    assert back == PolicyQuote(amount_minor=sum(each.price_minor for each in paid), percent=100, until=None)


@given(policies)
def test_promises_are_told_in_order_and_each_gives_less(of: RefundPolicy) -> None:
    told = promises(of, STARTS_AT)

    assert all(one.until < other.until and one.percent > other.percent for one, other in pairwise(told))
    assert all(each.percent > 0 for each in told)


def test_two_steps_and_then_nothing() -> None:
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


def test_unless_somebody_says_otherwise_all_of_it_comes_back_until_a_day_before() -> None:
    assert at(24, DEFAULT_REFUND_POLICY, away=-TICK).amount_minor == 1000
    assert at(24, DEFAULT_REFUND_POLICY) == NOTHING


def test_a_fee_that_is_kept_does_not_come_back() -> None:
    kept = policy((24, 100), (1, 50), keep_fee=True)

    assert at(30, kept).amount_minor == 900
    assert at(3, kept).amount_minor == 450


def test_half_of_an_odd_amount_is_rounded_up_for_every_seat() -> None:
    half = policy((1, 50))

    assert at(3, half, PriceLines(999, 999, 0, 0), PriceLines(999, 999, 0, 0)).amount_minor == 1000


def test_a_step_that_promises_less_for_longer_notice_is_not_told() -> None:
    """Who is promised 80 % until the last hour is not told of 50 % until yesterday."""
    told = promises(policy((48, 50), (1, 80), (1, 20), (72, 0)), STARTS_AT)

    assert [(each.percent, each.hours_before) for each in told] == [(80, 1)]


def test_no_steps_promise_nothing() -> None:
    assert at(1000, RefundPolicy()) == NOTHING
    assert at(1000, policy((24, 0))) == NOTHING
