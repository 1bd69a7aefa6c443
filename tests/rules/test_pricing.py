"""A price is explained to the last minor unit: base, fee and tax sum to it, and none is negative."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from holdfast.pricing.errors import FeeTooHigh
from holdfast.pricing.terms import WHOLE_BP, PriceLines, Terms, break_down_price, net_minor

PRICE_MAX = 1_000_000_000
prices = some.integers(0, PRICE_MAX) | some.integers(0, 300)
fees = some.integers(0, PRICE_MAX) | some.integers(0, 300)
shares = some.integers(0, WHOLE_BP)
terms = some.builds(Terms, fee_minor=fees, fee_bp=shares, tax_bp=shares)

FREE = PriceLines(0, 0, 0, 0)


@given(prices, terms)
@example(PRICE_MAX, Terms(tax_bp=WHOLE_BP, fee_bp=WHOLE_BP))
@example(1, Terms(tax_bp=WHOLE_BP, fee_bp=WHOLE_BP, fee_minor=PRICE_MAX))
def test_the_lines_sum_to_the_price_and_none_is_negative(price: int, on: Terms) -> None:
    lines = on.lines(price)

    assert lines.price_minor == price
    assert lines.base_minor + lines.fee_minor + lines.tax_minor == price
    assert min(lines.base_minor, lines.fee_minor, lines.tax_minor) >= 0


@given(prices, prices, terms)
def test_a_higher_price_lowers_no_line(one: int, other: int, on: Terms) -> None:
    low, high = on.lines(min(one, other)), on.lines(max(one, other))

    assert low.base_minor <= high.base_minor
    assert low.fee_minor <= high.fee_minor
    assert low.tax_minor <= high.tax_minor


@given(prices, terms)
def test_tax_and_fee_are_right_to_half_a_minor_unit(price: int, on: Terms) -> None:
    lines = on.lines(price)
    net = price - lines.tax_minor

    assert abs(lines.tax_minor * (WHOLE_BP + on.tax_bp) - price * on.tax_bp) * 2 <= WHOLE_BP + on.tax_bp
    if net >= on.fee_minor:
        # The share is taken of a rounded base: half a unit of base is at most one unit of base and fee.
        share = (lines.fee_minor - on.fee_minor) * WHOLE_BP - lines.base_minor * on.fee_bp
        assert abs(share) <= WHOLE_BP
    else:
        assert (lines.base_minor, lines.fee_minor) == (0, net)


@given(terms)
def test_a_free_seat_has_no_fee_and_no_tax(on: Terms) -> None:
    assert on.lines(0) == FREE


@pytest.mark.parametrize(
    ("price", "on", "lines"),
    [
        # 10.50 € with 7 % and a fee of 1.50: 10.50 / 1.07 = 9.813…, tax 0.687 → 0.69, base 9.81 − 1.50.
        (1050, Terms(fee_minor=150, tax_bp=700), PriceLines(1050, 831, 150, 69)),
        # ₹320 with GST 18 % and a fee of 5 %: net 271.19, base 258.28.
        (32_000, Terms(fee_bp=500, tax_bp=1800), PriceLines(32_000, 25_828, 1_291, 4_881)),
        (1900, Terms(fee_minor=110, tax_bp=1000), PriceLines(1900, 1617, 110, 173)),
        (1000, Terms(), PriceLines(1000, 1000, 0, 0)),
        (1000, Terms(tax_bp=WHOLE_BP), PriceLines(1000, 500, 0, 500)),
        (1000, Terms(fee_bp=WHOLE_BP), PriceLines(1000, 500, 500, 0)),
        (1, Terms(tax_bp=WHOLE_BP), PriceLines(1, 0, 0, 1)),  # half a unit goes up
        (PRICE_MAX, Terms(fee_minor=PRICE_MAX), PriceLines(PRICE_MAX, 0, PRICE_MAX, 0)),
    ],
)
def test_prices_that_were_worked_out_by_hand(price: int, on: Terms, lines: PriceLines) -> None:
    assert on.lines(price) == lines


@given(some.lists(prices, min_size=1, max_size=5), terms)
def test_terms_that_are_taken_leave_every_seat_its_whole_fee(several: list[int], on: Terms) -> None:
    paid = [price for price in several if price > 0]
    if any(on.fee_minor > net_minor(price, on.tax_bp) for price in paid):
        with pytest.raises(FeeTooHigh) as refused:
            on.check(several)
        assert refused.value.details["price_minor"] == min(paid)
        return

    on.check(several)
    assert all(on.lines(price).fee_minor >= on.fee_minor for price in paid)


def test_a_fee_may_equal_the_price_but_not_exceed_it() -> None:
    Terms(fee_minor=1000).check([1000, 5000, 0])

    with pytest.raises(FeeTooHigh):
        Terms(fee_minor=1001).check([1000, 5000, 0])
    with pytest.raises(FeeTooHigh):  # the tax is in the price: 10.00 without 7 % is 9.35
        Terms(fee_minor=936, tax_bp=700).check([1000])
    Terms(fee_minor=935, tax_bp=700).check([1000])
    Terms(fee_minor=1001).check([0, 0])


def test_the_same_price_is_always_explained_the_same_way() -> None:
    assert len({repr(break_down_price(999, fee_minor=10, fee_bp=333, tax_bp=777)) for _ in range(3)}) == 1
