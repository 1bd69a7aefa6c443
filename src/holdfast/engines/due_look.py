"""One look at all queues: which jobs of this worker have work. The others send no statement of their own.

    every LOOK_PAUSE_S   SELECT ARRAY[expired holds?, due payments?, due mails, …]
                           └─ wakes the jobs that have work (WhenDue); each then takes its rows as ever

A worker without work would otherwise ask each of its queues, 30 statements per second. Not LISTEN and NOTIFY:
commits that notify wait for each other, and a pooler that shares sessions cannot deliver notifications.
"""

from collections.abc import Sequence

from holdfast.engines.loop import Job, Pause, WhenDue
from holdfast.engines.postgres import Postgres

LOOK_PAUSE_S = 0.25


class DueLook:
    def __init__(self, postgres: Postgres, pauses: Sequence[WhenDue]) -> None:
        self._postgres = postgres
        self._by_query: dict[str, list[WhenDue]] = {}
        for pause in pauses:
            self._by_query.setdefault(pause.query, []).append(pause)
        counts = ", ".join(f"({query})::int" for query in self._by_query)
        self._sql = f"SELECT ARRAY[{counts}]"

    async def look(self) -> int:
        """Always returns 0, so that the loop pauses."""
        counts = await self._postgres.fetchval(self._sql)
        for count, pauses in zip(counts, self._by_query.values(), strict=True):
            for pause in pauses:
                pause.note(count)
        return 0


def with_look(postgres: Postgres, jobs: Sequence[tuple[Pause, Job]]) -> list[tuple[Pause, Job]]:
    """The jobs, and the look that those with WhenDue wait for."""
    pauses = [pause for pause, _ in jobs if isinstance(pause, WhenDue)]
    return [*jobs, *([(LOOK_PAUSE_S, DueLook(postgres, pauses).look)] if pauses else [])]
