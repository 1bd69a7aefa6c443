"""Refusals of search. No I/O.

Refusal
├── NoSuchPostalCode    404  no venue is near this postal code
├── PageTooDeep         422  so far back only a cursor leads
└── SearchTooSlow       503  the answer would have taken longer than we let a search take
"""

from holdfast.errors import Refusal


class NoSuchPostalCode(Refusal):
    """No venue of ours has this postal code or one that begins like it, so we do not know where it is.

    Check it, or send a point instead: `near=48.86,2.35`.
    """

    code, status, title = "no_such_postal_code", 404, "No such postal code"


class PageTooDeep(Refusal):
    """Pages by number lead to the first `limit` results only.

    Follow `next_cursor` of the page before, which leads to the end, or ask for something narrower.
    """

    code, status, title = "page_too_deep", 422, "Too far back for a page number"


class SearchTooSlow(Refusal):
    """This search took longer than we let one take, so that others are not kept waiting.

    Try again in a moment; a filter (city, date, kind) or one more word makes it quicker.
    """

    code, status, title = "search_too_slow", 503, "The search took too long"
