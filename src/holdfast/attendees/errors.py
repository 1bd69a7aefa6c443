"""Refusals about finding bookings. No I/O.

Refusal
└── TooManyPeople   422  a name that too many people have
"""

from holdfast.errors import Refusal


class TooManyPeople(Refusal):
    """More than `limit` people have a name like this. Add another word of the name, or choose a `show`."""

    code, status, title = "too_many_people", 422, "Too many people have this name"
