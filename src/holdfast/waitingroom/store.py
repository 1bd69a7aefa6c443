"""The waiting rooms of all shows, in the ledger: joining, places, turns and admissions."""

from holdfast.engines.postgres import Postgres
from holdfast.waitingroom.place import Admission, Joined, Joiner, Place
from holdfast.waitingroom.room import RoomStatus


class WaitingRooms:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def status(self, show_id: int) -> RoomStatus | None:
        """What everybody may see, at most a second old; None: the show has no waiting room."""
        raise NotImplementedError

    async def join(self, show_id: int, joiner: Joiner) -> Joined:
        """A place at the end, or the one that the same person has already."""
        raise NotImplementedError

    async def find_place(self, show_id: int, account_id: int) -> Place | None:
        """The person's place; also one that they took as a guest before signing in."""
        raise NotImplementedError

    async def leave(self, show_id: int, account_id: int) -> bool:
        """Whether there was a live place, which is given up."""
        raise NotImplementedError

    async def redeem(self, show_id: int, account_id: int, place_token: str = "") -> Admission:
        """The admission of a person whose turn it is; the same one again while its window lasts."""
        raise NotImplementedError

    async def drained_position(self, show_id: int, account_id: int) -> int | None:
        """The position of a person who was still waiting when everything was sold."""
        raise NotImplementedError
