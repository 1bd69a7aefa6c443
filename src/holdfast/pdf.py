"""FPDF without the libraries that it would load for pictures.

Tickets and invoices have none, and every process that renders one would use 15 MB more.
"""

import warnings

from holdfast.lean_import import without

with warnings.catch_warnings(), without("numpy", "PIL"):
    warnings.simplefilter("ignore")  # it says that it can have no pictures
    from fpdf import FPDF

__all__ = ["FPDF"]
