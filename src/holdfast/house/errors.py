"""Refusals about the house. No I/O.

Refusal
├── AlreadyBegun       409  it was set up before
├── UnknownCurrency    422
└── UnknownTimezone    422
"""

from holdfast.errors import Refusal


class AlreadyBegun(Refusal):
    """The house was set up before. Change it with `PUT /admin/house`."""

    code, status, title = "already_begun", 409, "Already set up"


class UnknownCurrency(Refusal):
    """Not a currency in use. Send its three letters, such as EUR or INR."""

    code, status, title = "unknown_currency", 422, "Unknown currency"


class UnknownTimezone(Refusal):
    """Not a time zone. Send its IANA name, such as Europe/Berlin or Asia/Kolkata."""

    code, status, title = "unknown_timezone", 422, "Unknown time zone"
