"""Refusals of editing the catalogue. No I/O."""

from holdfast.errors import Refusal


class LayoutUnsafe(Refusal):
    """A show on sale cannot switch to this layout. Nothing was changed.

    `unsafe_reasons` lists why. `seats_in_use`: an affected seat is held, booked or blocked; `in_use` lists
    them. `seats_gone`: leave the seats in the layout and list them in `withdraw`. `renumbered`: upload the
    layout with `grows_from`, so that existing seats keep their numbers. `categories_moved`: keep the existing
    categories in their order and append new ones.
    """

    code, status, title = "layout_unsafe", 409, "Seats in use would change"


class NotForOrganisers(Refusal):
    """Only an admin may edit cities, shared venues and the featured list. Contact an admin."""

    code, status, title = "not_for_organisers", 403, "Admins only"


class NameTaken(Refusal):
    """This name is already in use. `field` is the name in question. Choose another."""

    code, status, title = "name_taken", 409, "Name already in use"


class BadPicture(Refusal):
    """The body is not a picture that can be shown as a poster; `detail` explains why. Nothing was changed.

    Send a JPEG, PNG or WebP file as it is, with its Content-Type, of at most 10 MB and 40 million pixels and
    at least 320 pixels on each side. Posters are shown two to three; other shapes are cut to that.
    """

    code, status, title = "bad_picture", 422, "Picture cannot be used"


class HallBusy(Refusal):
    """Another show, `show_id`, is in this hall from `starts_at` to `ends_at`. Choose another time."""

    code, status, title = "hall_busy", 409, "Hall is booked at that time"


class ShowCancelled(Refusal):
    """The show has been cancelled, which is final. Create a new show instead."""

    code, status, title = "show_cancelled", 409, "Show is cancelled"


class SomethingSold(Refusal):
    """The show `show_id` has bookings or payments, so it cannot be deleted. Nothing was changed.

    Unpublish it to hide it and to end its sale, or cancel it to give everyone their money back.
    """

    code, status, title = "something_sold", 409, "Something was sold"


class StillInUse(Refusal):
    """The show `show_id` takes place here. Nothing was changed. Delete that show first.

    A venue can also be unpublished: then it is hidden, with its shows.
    """

    code, status, title = "still_in_use", 409, "A show takes place here"
