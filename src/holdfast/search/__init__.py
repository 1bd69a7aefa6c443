"""Search that finds: words with typos, places, dates, prices, facets; on a copy of the catalogue (R2, R3)."""

from holdfast.search.api import search_page
from holdfast.search.errors import SearchTooSlow
from holdfast.search.index import Index
from holdfast.search.query import SearchAsked, Sort, understood
from holdfast.search.results import SearchPage
from holdfast.search.source import Programme
from holdfast.search.store import Finder

__all__ = [
    "Finder",
    "Index",
    "Programme",
    "SearchAsked",
    "SearchPage",
    "SearchTooSlow",
    "Sort",
    "search_page",
    "understood",
]
