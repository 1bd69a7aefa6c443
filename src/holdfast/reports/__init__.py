"""Sales figures for organisers (R33): a copy of the bookings, updated by facts, summed on request.

figures.py  the figures       store.py       updates, rebuilds and sums them
                              every_pod.py   adds up those of several databases
api.py      /admin/…/figures  store.py  reads them, and writes CSV
"""

from holdfast.reports.every_pod import load_event_figures, load_show_lines
from holdfast.reports.figures import Minute, ShowLine
from holdfast.reports.store import ReportStore

__all__ = ["Minute", "ReportStore", "ShowLine", "load_event_figures", "load_show_lines"]
