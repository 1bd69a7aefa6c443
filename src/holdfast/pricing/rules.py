"""Prices that follow rules: by time, and by the share of seats sold (R33). No I/O.

    price  =  base + early + late + demand,   at least the floor, at most the ceiling

    early    until an instant                            of the steps that have not ended, the first to end
    late     from so many hours before the start on      of the steps that have begun, the last to begin
    demand   from so many percent of the seats sold on   of the steps that are reached, the highest

At most one step of each kind applies, so a price depends only on the rule, the instant and the seats sold,
and every process computes the same price. A step applies from its exact instant on, an early one until its
instant.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Protocol

from msgspec import Meta, Struct

from holdfast.fields import AwareDatetime, Currency, Name, PriceMinor
from holdfast.money import exponent, format_plain
from holdfast.pricing.errors import BadPriceRules, UnknownCategory

CATEGORIES_MAX = 32  # as many as a layout has
STEPS_MAX = 12  # of one sort, in one category
PRICE_MAX = 1_000_000_000
THOUSANDTHS = 3  # decimal digits of currencies whose last digit cards cannot pay

Change = Annotated[int, Meta(ge=-PRICE_MAX, le=PRICE_MAX)]
# At least 1: a rule must not make seats free.
Bound = Annotated[int, Meta(ge=1, le=PRICE_MAX)]
HoursBefore = Annotated[int, Meta(ge=1, le=24 * 366)]
SoldPercent = Annotated[int, Meta(ge=1, le=100)]


class SaleTimes(Protocol):
    """The times that rules are checked against; catalogue.Times implements it."""

    @property
    def starts_at(self) -> datetime: ...
    @property
    def opens_at(self) -> datetime: ...
    @property
    def closes_at(self) -> datetime: ...


class NextPrice(Struct, frozen=True, kw_only=True):
    """When time changes a price next, and the price after that if nothing more is sold."""

    until: datetime
    then_minor: int


class EarlyStep(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes the price until this instant."""

    until: AwareDatetime
    change_minor: Change


class LateStep(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes the price from so many hours before the start on."""

    hours_before: HoursBefore
    change_minor: Change

    def begins_at(self, starts_at: datetime) -> datetime:
        return starts_at - timedelta(hours=self.hours_before)


class DemandStep(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes the price from so many percent of the category's seats sold on; blocked seats do not count."""

    sold_percent: SoldPercent
    change_minor: Change


class PriceRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the price of one category moves. All amounts are all-in, in minor units."""

    category: Name
    base_minor: PriceMinor
    floor_minor: Bound
    ceiling_minor: Bound
    early: Annotated[tuple[EarlyStep, ...], Meta(max_length=STEPS_MAX)] = ()
    late: Annotated[tuple[LateStep, ...], Meta(max_length=STEPS_MAX)] = ()
    demand: Annotated[tuple[DemandStep, ...], Meta(max_length=STEPS_MAX)] = ()


class PriceRules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules of a show. A category without one keeps the price it has."""

    currency: Currency  # must be that of the show: 1500 is 15.00 EUR but 1500 JPY
    rules: Annotated[tuple[PriceRule, ...], Meta(min_length=1, max_length=CATEGORIES_MAX)]


class CategorySales(Struct, frozen=True):
    """Seats of one category: sold, and for sale in total."""

    sold: int
    seats: int

    def reaches(self, percent: int) -> bool:
        return self.seats > 0 and self.sold * 100 >= percent * self.seats


def price_at(rule: PriceRule, at: datetime, starts_at: datetime, sold: CategorySales) -> int:
    early = min((s for s in rule.early if at < s.until), key=lambda s: s.until, default=None)
    late = min(
        (s for s in rule.late if s.begins_at(starts_at) <= at), key=lambda s: s.hours_before, default=None
    )
    demand = max(
        (s for s in rule.demand if sold.reaches(s.sold_percent)), key=lambda s: s.sold_percent, default=None
    )
    moved = rule.base_minor + sum(step.change_minor for step in (early, late, demand) if step is not None)
    return max(rule.floor_minor, min(rule.ceiling_minor, moved))


def list_step_instants(rule: PriceRule, starts_at: datetime, after: datetime) -> list[datetime]:
    """Instants after `after` at which its steps by time begin or end."""
    all_instants = {step.until for step in rule.early} | {step.begins_at(starts_at) for step in rule.late}
    return sorted(at for at in all_instants if at > after)


def find_next_price(
    rule: PriceRule, at: datetime, starts_at: datetime, sold: CategorySales
) -> NextPrice | None:
    """The next price change by time; None if there is none."""
    now_minor = price_at(rule, at, starts_at, sold)
    for instant in list_step_instants(rule, starts_at, at):
        then_minor = price_at(rule, instant, starts_at, sold)
        if then_minor != now_minor:
            return NextPrice(until=instant, then_minor=then_minor)
    return None


def check_price_rules(
    rules: PriceRules, *, currency: str, categories: Sequence[str], times: SaleTimes
) -> None:
    """Refuse contradictory rules, with the field and the reason."""
    if rules.currency != currency:
        detail = f"The show is sold in {currency}: 1500 is {format_plain(1500, currency)} there."
        raise BadPriceRules(field="currency", reason="wrong_currency", detail=detail)
    if unknown := sorted({rule.category for rule in rules.rules} - set(categories)):
        raise UnknownCategory(categories=unknown, known=list(categories))
    seen: set[str] = set()
    for place, rule in enumerate(rules.rules):
        field = f"rules[{place}]"
        if rule.category in seen:
            raise _bad(field, "category_twice", f"{rule.category} has a rule already.")
        seen.add(rule.category)
        _check_amounts(rule, field, currency)
        _check_overlaps(rule, field, times)
        _check_times(rule, field, times)


def _check_amounts(rule: PriceRule, field: str, currency: str) -> None:
    if rule.floor_minor > rule.ceiling_minor:
        raise _bad(f"{field}.floor_minor", "floor_above_ceiling", "The floor is at most the ceiling.")
    if not rule.floor_minor <= rule.base_minor <= rule.ceiling_minor:
        detail = f"Expected {rule.floor_minor} to {rule.ceiling_minor}."
        raise _bad(f"{field}.base_minor", "base_outside", detail)
    steps: list[EarlyStep | LateStep | DemandStep] = [*rule.early, *rule.late, *rule.demand]
    amounts = (rule.base_minor, rule.floor_minor, rule.ceiling_minor, *(s.change_minor for s in steps))
    if exponent(currency) == THOUSANDTHS and any(amount % 10 for amount in amounts):
        detail = f"No card pays a thousandth: amounts of {currency} end in 0."
        raise _bad(field, "unpayable_amount", detail)


def _check_overlaps(rule: PriceRule, field: str, times: SaleTimes) -> None:
    """One step of a sort counts at a time, so no two may be at the same place."""
    places: Mapping[str, list[object]] = {
        "early": [step.until for step in rule.early],
        "late": [step.hours_before for step in rule.late],
        "demand": [step.sold_percent for step in rule.demand],
    }
    for sort, found in places.items():
        if len(set(found)) < len(found):
            raise _bad(f"{field}.{sort}", "steps_overlap", "Two steps are at the same place.")
    if rule.early and rule.late:
        begins_at = min(step.begins_at(times.starts_at) for step in rule.late)
        if any(step.until > begins_at for step in rule.early):
            detail = f"The last hours begin at {begins_at.isoformat()}: early prices end before."
            raise _bad(f"{field}.early", "steps_overlap", detail)


def _check_times(rule: PriceRule, field: str, times: SaleTimes) -> None:
    for sort, at in _edges(rule, times.starts_at):
        if at <= times.opens_at:
            detail = f"The sale opens at {times.opens_at.isoformat()}: a step at {at.isoformat()} is before."
            raise _bad(f"{field}.{sort}", "step_before_the_sale", detail)
        if at > times.closes_at or (sort == "late" and at == times.closes_at):
            detail = f"The sale closes at {times.closes_at.isoformat()}: a step at {at.isoformat()} is after."
            raise _bad(f"{field}.{sort}", "step_after_the_sale", detail)


def _edges(rule: PriceRule, starts_at: datetime) -> Iterator[tuple[str, datetime]]:
    yield from (("early", step.until) for step in rule.early)
    yield from (("late", step.begins_at(starts_at)) for step in rule.late)


def _bad(field: str, reason: str, detail: str) -> BadPriceRules:
    return BadPriceRules(field=field, reason=reason, detail=detail)
