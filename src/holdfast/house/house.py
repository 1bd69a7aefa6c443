"""What a house is: the fields of its form, and which values they can have. No I/O."""

from functools import cache
from typing import Literal, get_args
from zoneinfo import available_timezones

from msgspec import Struct

from holdfast.fields import Currency, Name, Timezone
from holdfast.house.errors import UnknownCurrency, UnknownTimezone

Gateway = Literal["sandbox", "stripe", "razorpay", "none"]
SecondFactorFor = Literal["none", "admins", "staff"]
GATEWAYS: tuple[Gateway, ...] = get_args(Gateway)


class HouseBody(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    name: Name
    currency: Currency
    timezone: Timezone
    gateway: Gateway = "sandbox"  # a note for the desk; HOLDFAST_GATEWAY decides


class HouseSecondFactor(Struct, forbid_unknown_fields=True, frozen=True):
    """Who needs a second factor to work: administrators, or all staff (members of organisations as well)."""

    required_of: SecondFactorFor


class HousePage(Struct, frozen=True, kw_only=True):
    name: str  # empty: not set up
    currency: str
    timezone: str


def check_house(body: HouseBody) -> None:
    if body.currency not in known_currencies():
        raise UnknownCurrency(currency=body.currency)
    if body.timezone not in known_timezones():
        raise UnknownTimezone(timezone=body.timezone)


@cache
def known_currencies() -> frozenset[str]:
    """In use today somewhere."""
    from babel.numbers import get_territory_currencies  # imported lazily, as in money.py

    return frozenset(code for each in _territories() for code in get_territory_currencies(each))


def _territories() -> list[str]:
    from babel.core import get_global

    return list(get_global("territory_currencies"))


@cache
def known_timezones() -> tuple[str, ...]:
    """With a place in their names, and UTC."""
    found = (name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return ("UTC", *sorted(found))
