"""Prices by rules never leave floor and ceiling, and follow from instant and seats sold alone (R33)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as some
from msgspec.structs import replace

from holdfast.catalogue.event import Times
from holdfast.pricing import UnknownCategory
from holdfast.pricing.errors import BadPriceRules
from holdfast.pricing.preview import PricingSnapshot, list_floors, preview_rules
from holdfast.pricing.rules import (
    PRICE_MAX,
    STEPS_MAX,
    CategorySales,
    DemandStep,
    EarlyStep,
    LateStep,
    PriceRule,
    PriceRules,
    check_price_rules,
    find_next_price,
    list_step_instants,
    price_at,
)
from holdfast.pricing.terms import Terms
from tests.support.shows import a_layout

STARTS = datetime(2031, 5, 20, 19, 0, tzinfo=UTC)
OPENS = STARTS - timedelta(days=60)
TIMES = Times(starts_at=STARTS, ends_at=STARTS + timedelta(hours=2), opens_at=OPENS, closes_at=STARTS)
NONE_SOLD = CategorySales(0, 100)

moments = some.datetimes(datetime(2031, 2, 1), datetime(2031, 6, 1), timezones=some.just(UTC))
changes = some.integers(-PRICE_MAX, PRICE_MAX) | some.integers(-3000, 3000)
bounds = some.integers(1, PRICE_MAX) | some.integers(1, 5000)
sales = some.integers(0, 300).flatmap(
    lambda seats: some.builds(CategorySales, some.integers(0, max(seats, 1)), some.just(seats))
)


@some.composite
def rules(draw: Any) -> PriceRule:
    """Everything the forms accept, sensible or not: `check_price_rules` is not called."""
    low, base, high = sorted(draw(some.tuples(bounds, bounds, bounds)))
    return PriceRule(
        category="Standard",
        base_minor=base,
        floor_minor=low,
        ceiling_minor=high,
        early=tuple(
            draw(some.lists(some.builds(EarlyStep, until=moments, change_minor=changes), max_size=STEPS_MAX))
        ),
        late=tuple(
            draw(
                some.lists(
                    some.builds(LateStep, hours_before=some.integers(1, 24 * 366), change_minor=changes),
                    max_size=STEPS_MAX,
                )
            )
        ),
        demand=tuple(
            draw(
                some.lists(
                    some.builds(DemandStep, sold_percent=some.integers(1, 100), change_minor=changes),
                    max_size=STEPS_MAX,
                )
            )
        ),
    )


def a_rule(**other: Any) -> PriceRule:
    usual = {"category": "Standard", "base_minor": 3000, "floor_minor": 2000, "ceiling_minor": 5000}
    return PriceRule(**{**usual, **other})


def a_set(*several: PriceRule, currency: str = "EUR") -> PriceRules:
    return PriceRules(currency=currency, rules=several)


@given(rules(), moments, sales)
@example(
    a_rule(demand=(DemandStep(sold_percent=1, change_minor=PRICE_MAX),)), STARTS, CategorySales(100, 100)
)
@example(a_rule(early=(EarlyStep(until=STARTS, change_minor=-PRICE_MAX),)), OPENS, CategorySales(0, 0))
def test_no_rule_leaves_its_floor_and_ceiling(rule: PriceRule, at: datetime, sold: CategorySales) -> None:
    assert rule.floor_minor <= price_at(rule, at, STARTS, sold) <= rule.ceiling_minor


@given(rules(), moments, sales, some.randoms())
def test_the_order_of_the_steps_does_not_matter(
    rule: PriceRule, at: datetime, sold: CategorySales, chance: Any
) -> None:
    """Two steps at the same place: `check_price_rules` refuses the rule; here the first one stays."""
    rule = replace(
        rule,
        early=tuple({step.until: step for step in rule.early}.values()),
        late=tuple({step.hours_before: step for step in rule.late}.values()),
        demand=tuple({step.sold_percent: step for step in rule.demand}.values()),
    )
    mixed = replace(
        rule,
        early=tuple(chance.sample(rule.early, len(rule.early))),
        late=tuple(chance.sample(rule.late, len(rule.late))),
        demand=tuple(chance.sample(rule.demand, len(rule.demand))),
    )

    assert price_at(mixed, at, STARTS, sold) == price_at(rule, at, STARTS, sold)


@given(rules(), moments, sales, some.floats(0, 1, exclude_max=True))
def test_an_announced_price_is_valid_until_its_announced_end(
    rule: PriceRule, at: datetime, sold: CategorySales, part: float
) -> None:
    """The promise "until 30 November": at no instant before is the price another, if nothing is sold."""
    now_minor, soon = price_at(rule, at, STARTS, sold), find_next_price(rule, at, STARTS, sold)

    if soon is None:
        assert all(price_at(rule, t, STARTS, sold) == now_minor for t in list_step_instants(rule, STARTS, at))
        return
    # A part near 1 is rounded to the microsecond, and may come out at the instant itself.
    between = min(at + (soon.until - at) * part, soon.until - timedelta(microseconds=1))
    assert price_at(rule, between, STARTS, sold) == now_minor
    assert price_at(rule, soon.until, STARTS, sold) == soon.then_minor != now_minor


@given(rules(), moments)
def test_a_preview_says_what_the_price_will_be(rule: PriceRule, at: datetime) -> None:
    """Every number of the table equals the rule at that instant and share."""
    layout = a_layout(20)
    show = PricingSnapshot(
        show_id=1,
        revision=1,
        at=at,
        starts_at=STARTS,
        layout=layout,
        terms=Terms(),
        prices={"Standard": 3000},
        booked={"Standard": 5},
        blocked={"Standard": 10},
    )

    (preview,) = preview_rules(a_set(rule), show).categories

    assert (preview.seats, preview.sold, preview.blocked, preview.sold_percent) == (20, 5, 10, 50.0)
    assert preview.lines.price_minor == price_at(rule, at, STARTS, CategorySales(5, 10))
    assert preview.curves[0].since == at
    for curve in preview.curves:
        for percent, price in zip(preview.at_percent, curve.prices_minor, strict=True):
            assert price == price_at(rule, curve.since, STARTS, CategorySales(percent, 100))
            assert (
                rule.floor_minor
                <= preview.lowest_minor
                <= price
                <= preview.highest_minor
                <= rule.ceiling_minor
            )


EARLY = (EarlyStep(until=OPENS + timedelta(days=10), change_minor=-500),)
LATE = (LateStep(hours_before=24, change_minor=700), LateStep(hours_before=48, change_minor=300))
DEMAND = (DemandStep(sold_percent=50, change_minor=400), DemandStep(sold_percent=80, change_minor=1500))


@pytest.mark.parametrize(
    ("days_before", "sold", "price"),
    [
        (60, 0, 2500),  # early
        (50.001, 0, 2500),
        (50, 0, 3000),  # its very instant: it is over
        (30, 49, 3000),
        (30, 50, 3400),  # exactly half
        (30, 79, 3400),
        (30, 80, 4500),  # the highest step alone, not both
        (2, 0, 3300),
        (1, 0, 3700),  # the last to begin
        (1, 80, 5000),  # 3000 + 700 + 1500 is over the ceiling
        (55, 80, 4000),
    ],
)
def test_prices_that_were_worked_out_by_hand(days_before: float, sold: int, price: int) -> None:
    rule = a_rule(early=EARLY, late=LATE, demand=DEMAND)

    assert price_at(rule, STARTS - timedelta(days=days_before), STARTS, CategorySales(sold, 100)) == price


def test_a_category_without_seats_has_no_demand() -> None:
    assert price_at(a_rule(demand=DEMAND), OPENS, STARTS, CategorySales(0, 0)) == 3000


def checked(rule: PriceRule, *more: PriceRule, currency: str = "EUR", sold_in: str = "EUR") -> None:
    check_price_rules(
        a_set(rule, *more, currency=currency), currency=sold_in, categories=["Standard"], times=TIMES
    )


def test_consistent_rules_are_accepted() -> None:
    checked(a_rule(early=EARLY, late=LATE, demand=DEMAND))
    checked(a_rule(early=(EarlyStep(until=STARTS, change_minor=0),)))


@pytest.mark.parametrize(
    ("rule", "field", "reason"),
    [
        (a_rule(floor_minor=6000, base_minor=6000), "rules[0].floor_minor", "floor_above_ceiling"),
        (a_rule(base_minor=1999), "rules[0].base_minor", "base_outside"),
        (a_rule(base_minor=5001), "rules[0].base_minor", "base_outside"),
        (a_rule(early=EARLY * 2), "rules[0].early", "steps_overlap"),
        (a_rule(late=LATE + LATE[:1]), "rules[0].late", "steps_overlap"),
        (a_rule(demand=DEMAND + DEMAND[1:]), "rules[0].demand", "steps_overlap"),
        (
            a_rule(early=(EarlyStep(until=STARTS - timedelta(hours=47), change_minor=-1),), late=LATE),
            "rules[0].early",
            "steps_overlap",
        ),
        (
            a_rule(early=(EarlyStep(until=OPENS, change_minor=-1),)),
            "rules[0].early",
            "step_before_the_sale",
        ),
        (
            a_rule(early=(EarlyStep(until=STARTS + timedelta(seconds=1), change_minor=-1),)),
            "rules[0].early",
            "step_after_the_sale",
        ),
        (
            a_rule(late=(LateStep(hours_before=60 * 24, change_minor=1),)),
            "rules[0].late",
            "step_before_the_sale",
        ),
    ],
)
def test_contradictory_rules_are_refused(rule: PriceRule, field: str, reason: str) -> None:
    with pytest.raises(BadPriceRules) as refused:
        checked(rule)

    assert (refused.value.details["field"], refused.value.details["reason"]) == (field, reason)


def test_a_late_step_of_a_sale_that_closes_before_it_is_refused() -> None:
    times = Times(**{**_fields(TIMES), "closes_at": STARTS - timedelta(hours=24)})

    with pytest.raises(BadPriceRules) as refused:
        check_price_rules(a_set(a_rule(late=LATE[:1])), currency="EUR", categories=["Standard"], times=times)

    assert refused.value.details["reason"] == "step_after_the_sale"


def _fields(times: Times) -> dict[str, datetime]:
    return {name: getattr(times, name) for name in ("starts_at", "ends_at", "opens_at", "closes_at")}


def test_another_currency_a_category_twice_and_one_that_is_not_there_are_refused() -> None:
    with pytest.raises(BadPriceRules, match="wrong_currency"):
        checked(a_rule(), currency="JPY")
    with pytest.raises(BadPriceRules, match="category_twice"):
        checked(a_rule(), a_rule())
    with pytest.raises(UnknownCategory):
        checked(a_rule(category="Balcony"))


def test_a_thousandth_of_a_dinar_cannot_be_paid() -> None:
    with pytest.raises(BadPriceRules, match="unpayable_amount"):
        checked(a_rule(base_minor=3001), currency="KWD", sold_in="KWD")
    checked(a_rule(base_minor=3010), currency="KWD", sold_in="KWD")
    checked(a_rule(base_minor=3001), currency="JPY", sold_in="JPY")


def test_the_fee_must_fit_into_the_floor_prices() -> None:
    assert list(list_floors(a_set(a_rule(), a_rule(category="Other", floor_minor=100)))) == [2000, 100]
    assert list(list_floors(None)) == []
