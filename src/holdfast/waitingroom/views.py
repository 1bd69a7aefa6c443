"""Rooms and places as people see them, computed from rows of the ledger. No I/O."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.errors import Refusal
from holdfast.waitingroom.draw import Permutation
from holdfast.waitingroom.errors import NotYourTurn, QueueSoldOut, TurnOver
from holdfast.waitingroom.place import Place, PlaceState
from holdfast.waitingroom.room import RoomState, RoomStatus
from holdfast.waitingroom.waits import (
    LogPoint,
    choose_poll_s,
    estimate_wait,
    measure_rates,
    spread_polls_s,
)

if TYPE_CHECKING:
    from holdfast.engines.postgres import Row

ENDED = {1: PlaceState.LEFT, 2: PlaceState.OUT, 3: PlaceState.DONE}  # queue_place.state
OVER = {RoomState.DRAINED: PlaceState.DRAINED, RoomState.CLOSED: PlaceState.DONE}


@dataclass(frozen=True, slots=True)
class RoomView:
    """A room as this process has read it: what everybody may see, and what places are computed from."""

    status: RoomStatus
    key: bytes | None
    opened_at: datetime | None
    rates: list[float]  # people per second

    def position(self, number: int) -> int | None:
        """None before the draw. Later arrivals follow in the order of their numbers."""
        entrants = self.status.entrants
        if entrants is None:
            return None
        if number >= entrants or self.key is None:
            return number
        return Permutation(self.key, entrants).position(number)


def build_view(row: "Row") -> RoomView:
    now, serving = row["now"], row["serving"]
    now_s = now.timestamp()
    begun_at = row["drawn_at"] or row["opened_at"] or now
    earlier = [LogPoint(begun_at.timestamp(), 0)]
    earlier += [
        LogPoint(now_s - ago_s, row[name])
        for ago_s, name in ((60, "serving_1m"), (300, "serving_5m"))
        if row[name] is not None
    ]
    at = LogPoint(now_s, serving)
    rates, lately = measure_rates(at, earlier), measure_rates(at, earlier[:2][-1:])
    status = RoomStatus(
        show_id=row["show_id"],
        opening=row["opening"],
        state=RoomState(row["state"]),
        opens_at=row["opens_at"],
        draw_at=row["draw_at"],
        commitment=row["commitment"].hex() if row["commitment"] else "",
        joined=row["joined"],
        entrants=row["entrants"],
        serving=serving,
        inside=row["inside"],
        inside_max=row["inside_max"],
        per_minute=round(60 * lately[0], 1) if lately else 0.0,
        seats_left=row["seats"] if row["seats_left"] is None else row["seats_left"],
        poll_after_s=spread_polls_s(row["joined"] - serving),
        now=now,
    )
    return RoomView(status, row["key"], row["opened_at"], rates)


def build_place(view: RoomView, account_id: int, row: "Row", token: str, now_s: float) -> Place:
    status = view.status
    state = find_state(status, row, now_s)
    is_missed = row["turn_state"] == "missed"
    position = view.position(row["number"])
    front = row["recall_at"] if is_missed else position
    ahead = None if front is None else max(0, front - status.serving)
    is_waiting = state is PlaceState.WAITING
    wait = estimate_wait(ahead, view.rates) if is_waiting and ahead is not None else None
    return Place(
        show_id=status.show_id,
        opening=status.opening,
        number=row["number"],
        account_id=account_id,
        state=state,
        position=position,
        ahead=ahead if is_waiting else None,
        has_missed_turn=is_missed or row["call"] == 2,
        turn_ends_at=row["ends_at"] if state is PlaceState.CALLED else None,
        window_ends_at=row["ends_at"] if state is PlaceState.INSIDE else None,
        wait=wait,
        poll_after_s=choose_poll_s(wait) if is_waiting else status.poll_after_s,
        token=token,
    )


def find_state(status: RoomStatus, row: "Row", now_s: float) -> PlaceState:
    """What a place is now; the job may not have written yet that its time is over."""
    if row["state"] != 0:
        return ENDED[row["state"]]
    is_timely = row["ends_at"] is not None and row["ends_at"].timestamp() > now_s
    match row["turn_state"]:
        case "inside":
            return PlaceState.INSIDE if is_timely else PlaceState.DONE
        case "over":
            return PlaceState.DONE if row["redeemed_at"] is not None else PlaceState.OUT
    if status.state in OVER:
        return OVER[status.state]
    if row["turn_state"] == "called" and is_timely:
        return PlaceState.CALLED
    if row["turn_state"] == "called" and row["call"] == 2:
        return PlaceState.OUT
    return PlaceState.IN_DRAW if status.entrants is None else PlaceState.WAITING


def refuse_turn(place: Place) -> Refusal:
    """Why this place cannot be redeemed now."""
    match place.state:
        case PlaceState.IN_DRAW | PlaceState.WAITING:
            return NotYourTurn(ahead=place.ahead, retry_after_s=place.poll_after_s)
        case PlaceState.DRAINED:
            return QueueSoldOut()
    return TurnOver(state=place.state)
