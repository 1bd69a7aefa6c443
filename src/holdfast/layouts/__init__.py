"""Layouts."""

from holdfast.layouts.body import canonical
from holdfast.layouts.costs import COST_MAX, Plan, Prefer, plan
from holdfast.layouts.diff import (
    LISTED_MAX,
    LayoutDiff,
    Recategorised,
    Renamed,
    WhyNot,
    diff,
    labels,
    recategorisings,
    renamings,
)
from holdfast.layouts.errors import BadLayout, LayoutInUse, NoSuchLayout, UnknownSeat
from holdfast.layouts.import_file import read_bytes
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
    "Plan",
    "Prefer",
    "Recategorised",
    "Renamed",
    "Run",
    "UnknownSeat",
    "WhyNot",
    "canonical",
    "diff",
    "labels",
    "plan",
    "read_bytes",
    "recategorisings",
    "renamings",
]
