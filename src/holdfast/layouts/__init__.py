"""Seating layouts: file formats, numbered seats, seat costs and comparison."""

from holdfast.layouts.body import encode_canonical
from holdfast.layouts.costs import COST_MAX, Prefer, SeatCosts, compute_seat_costs
from holdfast.layouts.diff import (
    LISTED_MAX,
    LayoutDiff,
    Recategorised,
    Renamed,
    UnsafeReason,
    compare_layouts,
    list_labels,
    list_recategorised,
    list_renamed,
)
from holdfast.layouts.errors import BadLayout, LayoutInUse, NoSuchLayout, UnknownSeat
from holdfast.layouts.import_checks import find_overlaps, refuse_unclear_seats
from holdfast.layouts.import_file import parse_layout_file
from holdfast.layouts.layout import Area, Layout, LayoutBody, LayoutProblem, Run

__all__ = [
    "COST_MAX",
    "LISTED_MAX",
    "Area",
    "BadLayout",
    "Layout",
    "LayoutBody",
    "LayoutDiff",
    "LayoutInUse",
    "LayoutProblem",
    "NoSuchLayout",
    "Prefer",
    "Recategorised",
    "Renamed",
    "Run",
    "SeatCosts",
    "UnknownSeat",
    "UnsafeReason",
    "compare_layouts",
    "compute_seat_costs",
    "encode_canonical",
    "find_overlaps",
    "list_labels",
    "list_recategorised",
    "list_renamed",
    "parse_layout_file",
    "refuse_unclear_seats",
]
