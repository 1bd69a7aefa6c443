"""Which pod owns a show, as this process knows it.

    home database, show_pod ──follow, once a second──► dict ──► the App of the pod

An answer may be a second old. That is safe: the pod's own ledger refuses to sell a show that is not there
(pods/functions.sql), the buyer gets 503 with Retry-After, and the next try goes to the right pod.

Once a minute the whole directory is read: a change with an earlier time than others was missed (a long
transaction, or a standby with another clock that was promoted), and a restored home has lost some.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from holdfast.engines.postgres import Postgres, Queries, Queryable
from holdfast.pods.place import HOME

Q = Queries("holdfast.pods")
FOLLOW_S = 0.5
WHOLE_EVERY_S = 60.0
OVERLAP = timedelta(seconds=30)  # a commit may come this late after its own time
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class Ownership(NamedTuple):
    pod: str
    epoch: int


AT_HOME = Ownership(HOME, 1)


async def load_owner(home: Queryable, show_id: int) -> Ownership:
    """As the home database has it now."""
    row = await home.fetchrow(Q.find_show, show_id)
    return AT_HOME if row is None else Ownership(row["pod"], row["epoch"])


class Directory:
    def __init__(self, postgres: Postgres, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._postgres = postgres
        self._monotonic = monotonic
        self._shows: dict[int, Ownership] = {}
        self._since = BEGINNING
        self._whole_until = 0.0  # then all of it is read again

    def pod_of(self, show_id: int) -> str:
        found = self._shows.get(show_id)
        return HOME if found is None else found.pod

    async def follow(self) -> int:
        """Reads what has changed since the last time."""
        now = self._monotonic()
        is_whole = now >= self._whole_until
        rows = await self._postgres.fetch(Q.shows_changed_since, BEGINNING if is_whole else self._since)
        changed = {row["show_id"]: Ownership(row["pod"], row["epoch"]) for row in rows}
        if is_whole:
            self._shows, self._whole_until = changed, now + WHOLE_EVERY_S
        else:
            self._shows.update(changed)
        if rows:  # in the order of their times
            self._since = rows[-1]["changed_at"] - OVERLAP
        return 0
