"""Refusals of houses with several databases. No I/O."""

from holdfast.errors import Refusal


class ShowElsewhere(Refusal):
    """The show is sold in another database than the catalogue, so that this change cannot be made safely.

    An operator can move it: `holdfast pod move SHOW home`. Then try again.
    """

    code, status, title = "show_elsewhere", 409, "Show is sold in another database"
