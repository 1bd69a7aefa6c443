"""What the page of a waiting room shows: the phase a visitor is in, and the figures of it. No I/O.

soon ──► join ──► draw ──► waiting ──► turn ──► inside ──► finished      joined before the draw
         join_late ─────────┘  ▲         └── missed once: waiting again; twice: gone
sold_out: everything was sold first; open: nothing needs a turn any more
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import ceil
from typing import Any

from holdfast.site.i18n import Localiser
from holdfast.waitingroom import LIVE, Place, PlaceState, RoomState, RoomStatus, WaitRange

MINUTE_S, HOUR_S = 60, 3600
HOURS_FROM_S = 2 * HOUR_S  # a longer wait is given in hours
REFRESH_S_MIN, REFRESH_S_MAX = 3, 60  # of a page without scripts: its own place costs more than the status
NEAR_THE_FRONT = 200  # people ahead: from here on a script follows the stream


class QueuePhase(StrEnum):
    SOON = "soon"  # people cannot join yet
    JOIN = "join"
    DRAW = "draw"  # joined before the draw
    JOIN_LATE = "join_late"
    WAITING = "waiting"
    TURN = "turn"
    INSIDE = "inside"
    FINISHED = "finished"  # was inside
    GONE = "gone"  # did not respond twice
    SOLD_OUT = "sold_out"
    OPEN = "open"  # seats are held without an admission


PHASES = {
    PlaceState.IN_DRAW: QueuePhase.DRAW,
    PlaceState.WAITING: QueuePhase.WAITING,
    PlaceState.CALLED: QueuePhase.TURN,
    PlaceState.INSIDE: QueuePhase.INSIDE,
    PlaceState.DONE: QueuePhase.FINISHED,
    PlaceState.OUT: QueuePhase.GONE,
}
WITH_REFRESH = frozenset({QueuePhase.SOON, QueuePhase.DRAW, QueuePhase.WAITING, QueuePhase.TURN})


@dataclass(frozen=True, slots=True)
class QueueView:
    """The template context of a queue's page. Numbers and places are counted from 1."""

    status: RoomStatus
    mine: Place | None

    @property
    def phase(self) -> QueuePhase:
        match self.status.state:
            case RoomState.CLOSED | RoomState.OVERRIDDEN:
                return QueuePhase.OPEN
            case RoomState.DRAINED:
                is_inside = self.mine is not None and self.mine.state is PlaceState.INSIDE
                return QueuePhase.INSIDE if is_inside else QueuePhase.SOLD_OUT
            case RoomState.SCHEDULED:
                return QueuePhase.SOON
        if self.mine is not None and self.mine.state in PHASES:
            return PHASES[self.mine.state]
        return QueuePhase.JOIN if self.status.state is RoomState.OPEN else QueuePhase.JOIN_LATE

    @property
    def has_place(self) -> bool:
        return self.mine is not None and self.mine.state in LIVE and self.phase is PHASES[self.mine.state]

    @property
    def is_waiting(self) -> bool:
        return self.phase in (QueuePhase.DRAW, QueuePhase.WAITING)

    @property
    def number(self) -> int | None:
        return self.mine.number + 1 if self.mine is not None else None

    @property
    def place(self) -> int | None:
        return self.mine.position + 1 if self.mine is not None and self.mine.position is not None else None

    @property
    def ahead(self) -> int:
        return self.mine.ahead or 0 if self.mine is not None else 0

    @property
    def was_missed(self) -> bool:
        return self.mine is not None and self.mine.has_missed_turn

    @property
    def ends_at(self) -> datetime | None:
        """Of the turn, or of the time inside."""
        if self.mine is None:
            return None
        return self.mine.turn_ends_at if self.phase is QueuePhase.TURN else self.mine.window_ends_at

    @property
    def waiting(self) -> int:
        """People who are behind the front."""
        return max(0, self.status.joined - self.status.serving)

    @property
    def is_unlikely(self) -> bool:
        """Whether everything may be sold before their turn."""
        return self.phase is QueuePhase.WAITING and self.ahead >= self.status.seats_left

    @property
    def refresh_s(self) -> int:
        """After how many seconds a page without scripts loads itself again; 0: it does not."""
        if self.phase not in WITH_REFRESH:
            return 0
        soon = self.mine.poll_after_s if self.mine is not None else self.status.poll_after_s
        return min(REFRESH_S_MAX, max(REFRESH_S_MIN, soon))

    def script(self, l10n: Localiser) -> dict[str, Any]:
        """The data for the page's script."""
        api, wait = f"/api/v1/shows/{self.status.show_id}/queue", self.mine.wait if self.mine else None
        return {
            "phase": self.phase,
            "state": self.status.state,
            "opening": self.status.opening,
            "status": api,
            "stream": f"{api}/stream",
            "position": self.mine.position if self.mine is not None else None,
            "front": self.ahead + self.status.serving,  # called when `serving` is beyond this
            "ahead": self.ahead,
            "perMinute": self.status.per_minute,
            "serving": self.status.serving,
            "wait": [wait.low_s, wait.high_s] if wait is not None else None,
            "pollAfterS": self.status.poll_after_s,
            "near": NEAR_THE_FRONT,
            "locale": l10n.locale.replace("_", "-"),
            "texts": l10n.texts_for_scripts("queue.live_"),
        }


@dataclass(frozen=True, slots=True)
class PlaceTexts:
    """Figures of a place, in words."""

    ahead: str
    wait: str


def describe_place(view: QueueView, l10n: Localiser) -> PlaceTexts:
    wait = view.mine.wait if view.mine is not None else None
    ahead = l10n.t("queue.live_ahead", count=view.ahead) if view.ahead else l10n.t("queue.live_next")
    return PlaceTexts(ahead, format_wait(wait, l10n))


def format_wait(wait: WaitRange | None, l10n: Localiser) -> str:
    """About 12–18 minutes: rounded outwards, so that words never promise more than the estimate."""
    if wait is None:
        return l10n.t("queue.live_wait_unknown")
    if wait.high_s <= MINUTE_S:
        return l10n.t("queue.live_wait_soon")
    unit_s, name = (HOUR_S, "_hours") if wait.high_s > HOURS_FROM_S else (MINUTE_S, "")
    low, high = wait.low_s // unit_s, ceil(wait.high_s / unit_s)
    high += low == high
    return l10n.t(f"queue.live_wait{name}", low=l10n.number(low), high=l10n.number(high))
