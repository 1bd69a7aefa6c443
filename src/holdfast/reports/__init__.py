"""Sales figures for organisers (R33): a copy of the bookings, updated by facts, summed on request.

figures.py  the figures       store.py       updates, rebuilds and sums them
api.py      /admin/…/figures  csv_export.py  the same for a spreadsheet
"""

from holdfast.reports.store import ReportStore

__all__ = ["ReportStore"]
