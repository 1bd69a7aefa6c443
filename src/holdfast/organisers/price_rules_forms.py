"""What an organiser is told of a show's price rules. No I/O."""

from datetime import datetime

from msgspec import Struct

from holdfast.pricing import PriceRules


class PlannedPrice(Struct, frozen=True, kw_only=True):
    """What a seat of the category costs now, and how long as far as time goes."""

    category: str
    price_minor: int
    follows_rules: bool
    until: datetime | None
    then_minor: int | None


class PriceChange(Struct, frozen=True, kw_only=True):
    """From this revision on a category cost another price."""

    revision: int
    category: str
    was_minor: int | None  # null: the category was new
    price_minor: int
    why: str  # organiser: somebody set it; rules: they were set or taken away; step: the rules moved it
    sold: int | None  # seats of the category sold then
    seats: int | None  # of so many for sale
    actor_id: int | None  # null: the rules
    at: datetime


class PricePlan(Struct, frozen=True, kw_only=True):
    show_id: int
    currency: str
    revision: int
    rules: PriceRules | None
    prices: list[PlannedPrice]
    changes: list[PriceChange]  # the newest first
