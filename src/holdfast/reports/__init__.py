"""Sales figures for organisers (R33): a copy of the bookings, updated by facts, summed on request.

figure.py   the figures              sheet.py   the same for a spreadsheet, and nothing that it would run
change.py   what facts change in it
store.py    update, rebuild, sum     worker.py  reads facts      routes.py  /admin/…/figures
"""

from holdfast.reports.store import ReportStore

__all__ = ["ReportStore"]
