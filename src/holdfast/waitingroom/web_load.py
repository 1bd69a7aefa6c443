"""What this web process measures for waiting rooms, written once per second; the job of rooms reads it.

    answers ─► meter (engines/metrics.py) ─► LoadReporter ─► its row in web_load ─► jobs.py: admission.py

The hold path does nothing for it: the meter counts answers anyway. A process reports only while a room guards
a show or may open by itself, also if it has seen no hold: a row that is not renewed means that the process
is dead or stuck, not that it is idle.
"""

import secrets
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import Meter, buckets_of, metrics
from holdfast.engines.postgres import Postgres, Queries, Queryable, require_row
from holdfast.waitingroom.admission import HOLD_SLOW_S, WebLoad
from holdfast.waitingroom.guard import AdmissionGuard

Q = Queries("holdfast.waitingroom", "web_load")
REPORT_PAUSE_S = 1.0
WINDOW = 5  # reports that a row sums up: a second alone has too few holds to judge by
FRESH_S = 4.0  # a row that is older is of a process that is silent
GONE_S = 15.0  # and then of one that was stopped
HOLD_ROUTES = ("hold_seats", "post_hold", "post_again")
BUSY_STATUSES = ("503", "504")
# Answers that cost next to nothing: no pass, no account, over a limit. A flood of them must not hide that the
# holds of people who were let in are slow.
DOOR_STATUSES = ("401", "403", "404", "429")


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """Since the process began."""

    holds: int
    slow_holds: int
    refused: int

    def since(self, before: "AnswerCounts") -> "AnswerCounts":
        return AnswerCounts(
            self.holds - before.holds, self.slow_holds - before.slow_holds, self.refused - before.refused
        )


class LoadReporter:
    def __init__(
        self,
        postgres: Postgres,
        guard: AdmissionGuard,
        viewers: Callable[[int], int],
        *,
        payments_max: int,
        meter: Meter = metrics,
    ) -> None:
        """`viewers`: of a show, in this process."""
        self._postgres = postgres
        self._guard = guard
        self._viewers = viewers
        self._payments_max = payments_max
        self._meter = meter
        self._process = secrets.token_hex(8)
        self._counts: deque[AnswerCounts] = deque(maxlen=WINDOW + 1)
        self._holds_before: Mapping[int, int] = {}  # by show, as of the last report
        self._reported_at_s = time.monotonic()

    async def report(self) -> int:
        """A job of every web process. Returns 0, so that the loop pauses."""
        self._counts.append(count_answers(self._meter))
        rooms = self._guard.known_rooms()
        shows = [show_id for show_id, room in rooms.items() if not room.is_guarding]
        per_second = self._count_holds(shows)
        if not rooms:
            return 0
        window = self._counts[-1].since(self._counts[0])
        with suppress(EngineDown):  # without a report the rate falls
            await self._postgres.execute(
                Q.report,
                self._process,
                *(window.holds, window.slow_holds, window.refused),
                int(self._meter.gauge("gateway_calls")),
                self._payments_max,
                shows,
                per_second,
                [self._viewers(show_id) for show_id in shows],
            )
        return 0

    def _count_holds(self, shows: list[int]) -> list[int]:
        """Per second since the last report, of each show."""
        now_s, before = time.monotonic(), self._holds_before
        elapsed_s = max(0.001, now_s - self._reported_at_s)
        self._reported_at_s, self._holds_before = now_s, dict(self._guard.holds_seen)
        return [round((self._holds_before.get(one, 0) - before.get(one, 0)) / elapsed_s) for one in shows]


def count_answers(meter: Meter) -> AnswerCounts:
    """Of all routes that hold seats, and connections that were refused before a request was read."""
    first_slow = bisect_left(buckets_of("http_seconds"), HOLD_SLOW_S) + 1
    slots = [meter.slots("http_seconds", route=route) for route in HOLD_ROUTES]

    def count(statuses: tuple[str, ...]) -> float:
        pairs = ((route, status) for route in HOLD_ROUTES for status in statuses)
        return sum(meter.count("http_answers_total", route=route, status=status) for route, status in pairs)

    return AnswerCounts(
        holds=int(sum(sum(one) for one in slots) - count(DOOR_STATUSES)),
        slow_holds=int(sum(sum(one[first_slow:]) for one in slots)),
        refused=int(count(BUSY_STATUSES) + meter.count("connections_refused_total", status="503")),
    )


async def load_web_load(on: Queryable) -> WebLoad:
    row = require_row(await on.fetchrow(Q.load, FRESH_S, GONE_S))
    return WebLoad(**row)


async def forget_web_load(on: Queryable) -> None:
    await on.execute(Q.forget)
