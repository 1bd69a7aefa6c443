"""Search that finds: words with typos, places, dates, prices, facets; on a copy of the catalogue (R2, R3)."""

from holdfast.search.indexing.store import Index
from holdfast.search.store import Finder

__all__ = ["Finder", "Index"]
