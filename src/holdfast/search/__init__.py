"""Search that finds: words with typos, places, dates, prices, facets; on a copy of the catalogue (R2, R3)."""

from holdfast.search.indexing.store import Index
from holdfast.search.pages import SearchPage
from holdfast.search.query import SearchAsked, Sort, understood
from holdfast.search.refusals import SearchTooSlow
from holdfast.search.routes import search_page
from holdfast.search.store import Finder

__all__ = [
    "Finder",
    "Index",
    "SearchAsked",
    "SearchPage",
    "SearchTooSlow",
    "Sort",
    "search_page",
    "understood",
]
