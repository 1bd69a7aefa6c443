"""Rules for two shows of the demo: an early price, and a concert whose price follows demand. No I/O."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec.structs import replace

from holdfast.pricing.rules import DemandStep, EarlyStep, LateStep, PriceRule, PriceRules

FLOOR, CEILING = 60, 160  # percent of the base
EARLY = -15
DEMAND = ((30, 10), (60, 25), (85, 50))  # from so many percent sold on, so many percent more
LAST_HOURS, LAST = 6, -20
EARLY_ENDS = timedelta(days=2)  # before the show


def early_price(prices: Mapping[str, int], currency: str, starts_at: datetime, round_to: int) -> PriceRules:
    """Cheaper until two days before."""
    until = starts_at - EARLY_ENDS
    rules = [
        replace(
            _rule(name, base), early=(EarlyStep(until=until, change_minor=_share(base, EARLY, round_to)),)
        )
        for name, base in prices.items()
    ]
    return PriceRules(currency=currency, rules=tuple(rules))


def by_demand(prices: Mapping[str, int], currency: str, round_to: int) -> PriceRules:
    """Dearer the more is sold, and cheaper in the last hours."""
    rules = [
        replace(
            _rule(name, base),
            late=(LateStep(hours_before=LAST_HOURS, change_minor=_share(base, LAST, round_to)),),
            demand=tuple(
                DemandStep(sold_percent=percent, change_minor=_share(base, more, round_to))
                for percent, more in DEMAND
            ),
        )
        for name, base in prices.items()
    ]
    return PriceRules(currency=currency, rules=tuple(rules))


def _rule(name: str, base: int) -> PriceRule:
    return PriceRule(
        category=name,
        base_minor=base,
        floor_minor=base * FLOOR // 100,
        ceiling_minor=base * CEILING // 100,
    )


def _share(base: int, percent: int, round_to: int) -> int:
    return round(base * percent / 100 / round_to) * round_to
