"""Which pod owns a show, as this process knows it.

    home database, show_pod ──follow, once a second──► dict ──► the App of the pod

An answer may be a second old. That is safe: the pod's own ledger refuses to sell a show that is not there
(pods/functions.sql), the buyer gets 503 with Retry-After, and the next try goes to the right pod.
"""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from holdfast.engines.postgres import Postgres, Queries, Queryable
from holdfast.pods.place import HOME

Q = Queries("holdfast.pods")
FOLLOW_S = 0.5
OVERLAP = timedelta(seconds=30)  # a commit may come this late after its own time


class Ownership(NamedTuple):
    pod: str
    epoch: int


AT_HOME = Ownership(HOME, 1)


async def load_owner(home: Queryable, show_id: int) -> Ownership:
    """As the home database has it now."""
    row = await home.fetchrow(Q.find_show, show_id)
    return AT_HOME if row is None else Ownership(row["pod"], row["epoch"])


class Directory:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres
        self._shows: dict[int, Ownership] = {}
        self._since = datetime(1970, 1, 1, tzinfo=UTC)

    def pod_of(self, show_id: int) -> str:
        found = self._shows.get(show_id)
        return HOME if found is None else found.pod

    async def follow(self) -> int:
        """Reads what has changed since the last time."""
        for row in await self._postgres.fetch(Q.shows_changed_since, self._since):
            self._shows[row["show_id"]] = Ownership(row["pod"], row["epoch"])
            self._since = max(self._since, row["changed_at"] - OVERLAP)
        return 0
