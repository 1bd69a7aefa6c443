"""Refusals of editing the catalogue. No I/O."""

from holdfast.errors import Refusal


class LayoutUnsafe(Refusal):
    """The layout cannot be taken over while tickets are sold from the one there is. Nothing was changed.

    `unsafe_reasons` has the reasons. `seats_in_use`: somebody holds or has booked a seat that would be
    another, or it is blocked; `in_use` names them. `seats_gone`: leave them in the layout and name them in
    `withdraw`. `renumbered`: bring the layout in with `grows_from`, so that old seats keep their numbers.
    `categories_moved`: keep the categories in their order and add new ones behind.
    """

    code, status, title = "layout_unsafe", 409, "Seats in use would change"


class NotForOrganisers(Refusal):
    """Only an admin may edit cities, shared venues and the featured list. Contact an admin."""

    code, status, title = "not_for_organisers", 403, "Admins only"


class NameTaken(Refusal):
    """This name is already in use. `field` is the name in question. Choose another."""

    code, status, title = "name_taken", 409, "Name already in use"


class HallBusy(Refusal):
    """Another show, `show_id`, is in this hall from `starts_at` to `ends_at`. Choose another time."""

    code, status, title = "hall_busy", 409, "Hall is booked at that time"


class ShowCancelled(Refusal):
    """The show has been cancelled, which is final. Create a new show instead."""

    code, status, title = "show_cancelled", 409, "Show is cancelled"
