"""What organisers want to know of their sales (R33): a copy of the ledger, kept by facts, summed when asked.

figure.py   what is told             sheet.py   the same for a spreadsheet, and nothing that it would run
change.py   what facts change in it
store.py    kept, rebuilt, summed    worker.py  hears facts      routes.py  /admin/…/figures
"""

from holdfast.reports.store import ReportStore

__all__ = ["ReportStore"]
