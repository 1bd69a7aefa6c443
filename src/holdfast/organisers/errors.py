"""Refusals about changing a show on sale. No I/O."""

from holdfast.errors import Refusal


class LayoutUnsafe(Refusal):
    """The layout cannot be taken over while tickets are sold from the one there is. Nothing was changed.

    `why_not` has the reasons. `seats_in_use`: somebody holds or has booked a seat that would be another, or
    it is blocked; `in_use` names them. `seats_gone`: leave them in the layout and name them in `withdraw`.
    `renumbered`: bring the layout in with `grows_from`, so that old seats keep their numbers.
    `categories_moved`: keep the categories in their order and add new ones behind.
    """

    code, status, title = "layout_unsafe", 409, "Seats in use would change"
