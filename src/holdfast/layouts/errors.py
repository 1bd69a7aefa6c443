"""Refusals about hall layouts. No I/O."""

from holdfast.errors import Refusal


class NoSuchLayout(Refusal):
    """There is no layout with this hash that you imported, or that a hall open to you uses.

    POST it to /admin/layouts first: the response has its hash.
    """

    code, status, title = "no_such_layout", 404, "Layout not found"


class UnknownSeat(Refusal):
    """The show has no such seat, standing area or category. The layout of the show lists their names."""

    code, status, title = "unknown_seat", 422, "Seat not found"


class BadLayout(Refusal):
    """The layout has a mistake: `detail` explains where, and how to correct it. Nothing was stored."""

    code, status, title = "bad_layout", 422, "Invalid layout"


class LayoutInUse(Refusal):
    """The show sells seats from its layout, so only a layout that extends it may replace it.

    Keep every seat where it is, with its label and category, and add new seats after the last one.
    """

    code, status, title = "layout_in_use", 409, "Layout may only grow"
