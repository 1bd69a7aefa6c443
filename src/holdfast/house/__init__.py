"""The house: its name, currency and time zone, set up once on an empty installation."""

from holdfast.house.errors import AlreadyBegun, UnknownCurrency, UnknownTimezone
from holdfast.house.house import (
    GATEWAYS,
    HouseBody,
    HousePage,
    HouseSecondFactor,
    check_house,
    known_currencies,
    known_timezones,
)
from holdfast.house.store import House

__all__ = [
    "GATEWAYS",
    "AlreadyBegun",
    "House",
    "HouseBody",
    "HousePage",
    "HouseSecondFactor",
    "UnknownCurrency",
    "UnknownTimezone",
    "check_house",
    "known_currencies",
    "known_timezones",
]
