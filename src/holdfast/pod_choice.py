"""Which pod a request belongs to: the one that owns the show it names."""

from typing import TYPE_CHECKING

from holdfast.bookings import NoSuchBooking, from_public_id
from holdfast.web.routing import Params

if TYPE_CHECKING:
    from holdfast.app import App

# Parameters of paths that name a show and a number; a refund's id goes on with the attempt and its number.
PUBLIC_IDS = ("booking", "ticket", "check_in", "refund")


class PodChoice:
    """In a process of a house with pods."""

    def __init__(self, home: "App") -> None:
        self._home = home

    def __call__(self, params: Params) -> "App":
        """The application of the pod; that of the home database if the path names no show."""
        show_id = find_show(params)
        return self._home if show_id is None else self._home.router.for_show(show_id)

    async def has_moved(self, params: Params, answered: object) -> bool:
        """Whether another application than the one that answered has the show, by the directory of now.

        Otherwise a buyer would get `no_such_booking` just after the show has moved.
        """
        show_id = find_show(params)
        if show_id is None:
            return False
        await self._home.router.directory.follow()
        return self._home.router.for_show(show_id) is not answered


def find_show(params: Params) -> int | None:
    show_id = params.get("show")
    if isinstance(show_id, int):
        return show_id
    for name in PUBLIC_IDS:
        if isinstance(text := params.get(name), str):
            try:
                return from_public_id(text.partition("-")[0])[0]
            except NoSuchBooking:
                return None  # the handler refuses it
    return None
