"""Refusals about legal texts. No I/O.

Refusal
├── NoSuchText     404  nothing was published, or not this version
└── TermsChanged   409  what was agreed to is not what is in force
"""

from holdfast.errors import Refusal


class NoSuchText(Refusal):
    """This text was not published, or has no such version."""

    code, status, title = "no_such_text", 404, "No such text"


class TermsChanged(Refusal):
    """What was agreed to is not what is in force. Show the texts in `terms` and ask again."""

    code, status, title = "terms_changed", 409, "The terms have changed"
