"""FPDF without the libraries that it would load for pictures.

Tickets and invoices have none, and every process that renders one would use 15 MB more.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

FOR_PICTURES = ("numpy", "PIL")


@contextmanager
def _without(names: tuple[str, ...]) -> Iterator[None]:
    """An import of them fails, unless they are loaded already."""
    missing = [name for name in names if name not in sys.modules]
    for name in missing:
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        for name in missing:
            del sys.modules[name]


with warnings.catch_warnings(), _without(FOR_PICTURES):
    warnings.simplefilter("ignore")  # it says that it can have no pictures
    from fpdf import FPDF

__all__ = ["FPDF"]
