"""Previews price rules: the prices they would produce, now and later (R33). No I/O."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from holdfast.layouts import Layout
from holdfast.money import format_plain
from holdfast.pricing.rules import (
    CategorySales,
    PriceRule,
    PriceRules,
    find_next_price,
    list_step_instants,
    price_at,
)
from holdfast.pricing.terms import PriceLines, Terms

SHARES = range(0, 101, 10)  # percent sold in a preview, in addition to those of the steps


class PriceCurve(Struct, frozen=True, kw_only=True):
    """Prices from this instant on, one for each share sold in `at_percent`."""

    since: datetime
    prices_minor: list[int]


class CategoryPreview(Struct, frozen=True, kw_only=True):
    """One category under its rule. Free seats would cost the new price."""

    category: str
    sections: list[str]  # where its seats are
    seats: int
    sold: int
    blocked: int
    sold_percent: float  # of the seats that are not blocked
    was_minor: int  # the current price
    lines: PriceLines  # the new price and its parts
    shown: str  # the same as text: 15.00 EUR
    until: datetime | None  # when time changes it next
    then_minor: int | None
    lowest_minor: int  # of the table
    highest_minor: int
    at_percent: list[int]  # shares sold, the columns of `curves`
    curves: list[PriceCurve]  # one row now and for every instant at which a step begins or ends


class RulesPreview(Struct, frozen=True, kw_only=True):
    show_id: int
    currency: str
    at: datetime  # the ledger's now
    revision: int  # of the show
    categories: list[CategoryPreview]


class PricingSnapshot(Struct, frozen=True, kw_only=True):
    """A show at one instant: everything that prices are computed from."""

    show_id: int
    revision: int
    at: datetime
    starts_at: datetime
    layout: Layout
    terms: Terms
    prices: Mapping[str, int]
    booked: Mapping[str, int]  # seats by category
    blocked: Mapping[str, int]

    def sold(self, category: str) -> CategorySales:
        return CategorySales(self.booked[category], self.seats(category) - self.blocked[category])

    def seats(self, category: str) -> int:
        names = [one.name for one in self.layout.categories]
        return self.layout.category_of.count(names.index(category))

    def sections(self, category: str) -> list[str]:
        """Sections and areas that have seats of the category, in the order of the layout."""
        index = [one.name for one in self.layout.categories].index(category)
        of = self.layout.category_of
        runs = zip(self.layout.runs, self.layout.stretches, strict=True)
        sections = [
            self.layout.body.sections[stretch.section].name
            for run, stretch in runs
            if index in of[run.start : run.start + run.length]
        ]
        areas = [area.name for area in self.layout.areas if area.category == index]
        return list(dict.fromkeys(sections + areas))


def preview_rules(rules: PriceRules, show: PricingSnapshot) -> RulesPreview:
    return RulesPreview(
        show_id=show.show_id,
        currency=rules.currency,
        at=show.at,
        revision=show.revision,
        categories=[_category(rule, rules.currency, show) for rule in rules.rules],
    )


def _category(rule: PriceRule, currency: str, show: PricingSnapshot) -> CategoryPreview:
    sold = show.sold(rule.category)
    price = price_at(rule, show.at, show.starts_at, sold)
    at_percent = sorted({*SHARES, *(step.sold_percent for step in rule.demand)})
    since = [show.at, *list_step_instants(rule, show.starts_at, show.at)]
    curves = [
        PriceCurve(since=at, prices_minor=[_at_share(rule, at, show, percent) for percent in at_percent])
        for at in since
    ]
    reached = [price for curve in curves for price in curve.prices_minor]
    then = find_next_price(rule, show.at, show.starts_at, sold)
    return CategoryPreview(
        category=rule.category,
        sections=show.sections(rule.category),
        seats=show.seats(rule.category),
        sold=sold.sold,
        blocked=show.blocked[rule.category],
        sold_percent=round(100 * sold.sold / sold.seats, 1) if sold.seats > 0 else 0.0,
        was_minor=show.prices[rule.category],
        lines=show.terms.lines(price),
        shown=format_plain(price, currency),
        until=then.until if then else None,
        then_minor=then.then_minor if then else None,
        lowest_minor=min(reached),
        highest_minor=max(reached),
        at_percent=at_percent,
        curves=curves,
    )


def _at_share(rule: PriceRule, at: datetime, show: PricingSnapshot, percent: int) -> int:
    return price_at(rule, at, show.starts_at, CategorySales(percent, 100))


def list_floors(rules: PriceRules | None) -> Sequence[int]:
    """The lowest prices the rules allow: the fee must fit into them, too."""
    return [rule.floor_minor for rule in rules.rules] if rules else []
