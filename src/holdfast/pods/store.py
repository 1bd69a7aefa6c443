"""What a database knows about pods: which there are, how far they are behind, which shows are fenced."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from holdfast.engines.postgres import Postgres, Queries, Queryable, require_row
from holdfast.errors import Busy
from holdfast.pods.errors import ShowElsewhere

T = TypeVar("T")
Q = Queries("holdfast.pods")
SLOT = "holdfast_pod_"
FENCED_MAX_S = 60  # a move takes seconds: a show that is closed for longer was left by one that died


@dataclass(frozen=True, slots=True)
class PodLink:
    """A replication slot at home: what a pod has received, and what home keeps for it."""

    is_active: bool
    status: str  # of its log: reserved, extended, unreserved or lost
    behind_bytes: int | None  # None: lost
    retained_bytes: int | None


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What the database of a pod says about itself."""

    identity: str
    is_enabled: bool | None  # its subscription; None: there is none
    is_receiving: bool
    tables_under_way: int  # whose first copy is not complete
    schema_step: int


class PodStore:
    def __init__(self, postgres: Queryable) -> None:
        self._postgres = postgres

    async def pods(self) -> list[dict[str, Any]]:
        """Those that were added, in the home database."""
        return [dict(row) for row in await self._postgres.fetch(Q.pods)]

    async def links(self) -> dict[str, PodLink]:
        """By pod, in the home database."""
        rows = await self._postgres.fetch(Q.links)
        return {
            row["slot_name"].removeprefix(SLOT): PodLink(
                row["active"], row["status"], row["behind_bytes"], row["retained_bytes"]
            )
            for row in rows
        }

    async def bytes_behind(self) -> dict[str, int]:
        """By pod that is connected: how much of the home database's log it has not received yet."""
        links = await self.links()
        return {name: link.behind_bytes or 0 for name, link in links.items() if link.is_active}

    async def count_moves(self) -> int:
        """How often shows have moved, all in all: the same number twice means that none moved in between."""
        count: int = await self._postgres.fetchval(Q.count_moves)
        return count

    async def log_retained_max(self) -> str:
        """What the home database keeps of its log for a pod that is away; -1: all of it."""
        return str(await self._postgres.fetchval(Q.log_retained_max))

    async def facts(self) -> PodFacts:
        return PodFacts(**require_row(await self._postgres.fetchrow(Q.facts)))

    async def fenced_shows(self, longer_than_s: int = 0) -> list[int]:
        """Shows of this database that a move has closed: for seconds, unless the mover died."""
        return [row["show_id"] for row in await self._postgres.fetch(Q.fenced_shows, longer_than_s)]


async def is_pod(connection: Queryable, name: str) -> bool:
    """False: another database, or one that is not a pod yet."""
    if not await connection.fetchval(Q.knows_pods):
        return False
    return bool(await connection.fetchval(Q.identity) == name)


async def read_where_sold(
    database_for: Callable[[int], Postgres],
    follow: Callable[[], Awaitable[object]],
    show_id: int,
    read: Callable[[Postgres], Awaitable[T]],
) -> T:
    """What the pod of a show has of it, all of it. `follow`: learn of shows that are new or have moved.

    For answers that must not be of half a show, or of none because it has just moved away. Raises Busy while
    it moves.
    """
    for _ in range(2):
        database = database_for(show_id)
        # Before: every row has arrived. After: none was removed meanwhile.
        if await database.fetchval(Q.show_is_here, show_id):
            found = await read(database)
            if await database.fetchval(Q.show_is_here, show_id):
                return found
        await follow()
    raise Busy(retry_after_s=1)


async def require_show_here(tx: Queryable, show_id: int) -> None:
    """For changes that look at what is sold. Raises ShowElsewhere if another pod sells the show.

    Until the transaction ends, it cannot move: another database would sell what this one has just looked at.
    """
    await tx.execute(Q.share_copy, show_id)
    if not await tx.fetchval(Q.show_is_here, show_id):
        raise ShowElsewhere(show_id=show_id)
