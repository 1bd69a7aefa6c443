"""Refusals of search. No I/O.

Refusal
├── NoSuchPostalCode    404  no venue has this postal code
├── PageTooDeep         422  page number too high: use a cursor
└── SearchTooSlow       503  the search exceeded its time limit
"""

from holdfast.errors import Refusal


class NoSuchPostalCode(Refusal):
    """No venue has this postal code or a similar one, so its location is unknown.

    Check it, or send coordinates instead: `near=48.86,2.35`.
    """

    code, status, title = "no_such_postal_code", 404, "Postal code not found"


class PageTooDeep(Refusal):
    """Page numbers reach only the first `limit` results.

    Follow `next_cursor`, which has no limit, or add filters.
    """

    code, status, title = "page_too_deep", 422, "Page number too high"


class SearchTooSlow(Refusal):
    """The search exceeded its time limit.

    Try again in a moment; a filter (city, date, kind) or one more word makes it faster.
    """

    code, status, title = "search_too_slow", 503, "Search took too long"
