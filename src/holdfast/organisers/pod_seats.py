"""What was sold of a show whose rows are in another database than the catalogue. For prices by demand."""

from collections.abc import Awaitable, Callable

from holdfast.bookings import seats_by_category
from holdfast.engines.postgres import Postgres
from holdfast.layouts import Layout
from holdfast.pods import read_where_sold

SeatsByCategory = dict[tuple[int, str], int]  # (category, confirmed or blocked) -> seats
CountSeats = Callable[[int, Layout], Awaitable[SeatsByCategory]]


class PodSeats:
    """Counts in the database of the pod that owns the show."""

    def __init__(
        self, database_for: Callable[[int], Postgres], follow: Callable[[], Awaitable[object]]
    ) -> None:
        self._database_for = database_for
        self._follow = follow

    async def count(self, show_id: int, layout: Layout) -> SeatsByCategory:
        """Raises EngineDown, and Busy while the show moves: half of its rows would look like a bad sale."""

        async def read(database: Postgres) -> SeatsByCategory:
            async with database.transaction() as tx:
                return await seats_by_category(tx, show_id, layout.category_of)

        return await read_where_sold(self._database_for, self._follow, show_id, read)
