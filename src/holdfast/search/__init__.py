"""Search over a copy of the catalogue: typo correction, places, dates, prices and facets (R2, R3)."""

from holdfast.search.api import load_search_page
from holdfast.search.errors import NoSuchPostalCode, PageTooDeep, SearchTooSlow
from holdfast.search.index import SearchIndex, SearchSource
from holdfast.search.query import Q_LETTERS_MAX, EventSearchQuery, Sort, parse_search
from holdfast.search.results import SearchPage
from holdfast.search.store import SearchStore

__all__ = [
    "Q_LETTERS_MAX",
    "EventSearchQuery",
    "NoSuchPostalCode",
    "PageTooDeep",
    "SearchIndex",
    "SearchPage",
    "SearchSource",
    "SearchStore",
    "SearchTooSlow",
    "Sort",
    "load_search_page",
    "parse_search",
]
