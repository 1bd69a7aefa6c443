"""Refusals of houses with several databases. No I/O."""

from holdfast.errors import Refusal


class ShowElsewhere(Refusal):
    """The show is sold in a database that this machine cannot ask, so that this change cannot be made safely.

    An operator names all pods in `HOLDFAST_PODS` on every machine, or moves the show: `holdfast pod move SHOW
    home`. Then try again.
    """

    code, status, title = "show_elsewhere", 409, "Show is sold in another database"
