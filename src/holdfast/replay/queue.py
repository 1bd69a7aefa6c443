"""Reads what the waiting room of a show has logged."""

from holdfast.engines.postgres import Postgres, Queries
from holdfast.replay.sale import QueueLog, QueuePoint

Q = Queries("holdfast.replay", "queue")

PAGE = 1_000
POINTS_MAX = 5_000  # of the curve; of a longer log every second, third, … one


class QueueReader:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def load(self, show_id: int) -> QueueLog:
        points: list[QueuePoint] = []
        after, step, seen = (0, 0), 1, 0
        last: QueuePoint | None = None
        while rows := await self._postgres.fetch(Q.points_after, show_id, *after, PAGE):
            for row in rows:
                last = QueuePoint(row["at_us"], row["waiting"], row["inside"])
                if seen % step == 0:
                    points.append(last)
                seen += 1
            if len(points) > POINTS_MAX:
                points, step = points[::2], 2 * step
            after = (rows[-1]["opening"], rows[-1]["id"])
        if last is None:
            return QueueLog()
        # How it ended is shown, whichever were left out.
        ordered = sorted({*points, last}, key=lambda point: point.at_us)
        return QueueLog(ordered, await self._postgres.fetchval(Q.longest_wait, show_id))
