"""Refusals about events, venues and shows. No I/O."""

from holdfast.errors import Refusal


class NoSuchShow(Refusal):
    """There is no show with this id."""

    code, status, title = "no_such_show", 404, "Show not found"


class NoSuchCity(Refusal):
    """There is no city with this id or slug. GET /cities lists them."""

    code, status, title = "no_such_city", 404, "City not found"


class NoSuchVenue(Refusal):
    """There is no venue with this id, or it belongs to another organiser."""

    code, status, title = "no_such_venue", 404, "Venue not found"


class NoSuchHall(Refusal):
    """There is no hall with this id, or it belongs to another organiser."""

    code, status, title = "no_such_hall", 404, "Hall not found"


class NoSuchEvent(Refusal):
    """There is no event with this id, or it belongs to another organiser."""

    code, status, title = "no_such_event", 404, "Event not found"


class BadWindow(Refusal):
    """The times of the show contradict each other, or are out of range. Nothing was changed.

    `field` is the time that is wrong and `detail` explains why. A show ends after it starts, a sale opens
    before it closes, and it closes before the show ends.
    """

    code, status, title = "bad_window", 422, "Invalid show times"
