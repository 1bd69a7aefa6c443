"""Search over a copy of the catalogue: typo correction, places, dates, prices and facets (R2, R3)."""

from holdfast.search.api import load_search_page
from holdfast.search.errors import SearchTooSlow
from holdfast.search.index import SearchIndex, SearchSource
from holdfast.search.query import EventSearchQuery, Sort, parse_search
from holdfast.search.results import SearchPage
from holdfast.search.store import SearchStore

__all__ = [
    "EventSearchQuery",
    "SearchIndex",
    "SearchPage",
    "SearchSource",
    "SearchStore",
    "SearchTooSlow",
    "Sort",
    "load_search_page",
    "parse_search",
]
