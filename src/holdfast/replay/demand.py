"""Stores how often seats were refused: counted by holds in each web process, written by a job."""

from contextlib import suppress

from holdfast.engines.errors import EngineDown
from holdfast.engines.postgres import Postgres, Queries
from holdfast.holds import WantedSeats

Q = Queries("holdfast.replay")
FLUSH_PAUSE_S = 5.0


class DemandWriter:
    def __init__(self, postgres: Postgres, wanted: WantedSeats) -> None:
        self._postgres = postgres
        self._wanted = wanted

    async def flush(self, *, all_of_them: bool = False) -> int:
        """A job: one row per show that turned buyers down. Counts of a ledger that is down are dropped."""
        due = self._wanted.take(all_of_them=all_of_them)
        if due:
            rows: list[tuple[object, ...]] = [
                (show_id, demand.refused, list(demand.times), list(demand.times.values()))
                for show_id, demand in due
            ]
            await self._postgres.executemany(Q.add_demand, rows)
        return 0

    async def close(self) -> None:
        """What is left when the process stops."""
        with suppress(EngineDown):
            await self.flush(all_of_them=True)
