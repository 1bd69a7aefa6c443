"""What the page of a waiting room shows, from the status and a place: its phase, its figures, its words."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from holdfast.site.queue_view import QueuePhase, QueueView, describe_place, format_wait
from holdfast.site.templates_env import localiser_for
from holdfast.waitingroom import Place, PlaceState, RoomState, RoomStatus, WaitRange
from holdfast.waitingroom.admission import Brake

NOW = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
STATUS = RoomStatus(
    show_id=7,
    opening=1,
    state=RoomState.ADMITTING,
    opens_at=NOW,
    draw_at=NOW,
    commitment="ab",
    joined=5000,
    entrants=5000,
    serving=800,
    inside=100,
    inside_max=100,
    per_minute=60.0,
    seats_left=300,
    poll_after_s=20,
    now=NOW,
)
PLACE = Place(
    show_id=7,
    opening=1,
    number=11,
    account_id=1,
    state=PlaceState.WAITING,
    position=1233,
    ahead=433,
    has_missed_turn=False,
    turn_ends_at=None,
    window_ends_at=None,
    wait=WaitRange(400, 700),
    poll_after_s=7,
    token="",
)
ENGLISH = localiser_for("en_GB")


def view(state: RoomState = RoomState.ADMITTING, mine: Place | None = PLACE, **figures: Any) -> QueueView:
    return QueueView(msgspec.structs.replace(STATUS, state=state, **figures), mine)


def a_place(state: PlaceState, **more: Any) -> Place:
    return msgspec.structs.replace(PLACE, state=state, **more)


@pytest.mark.parametrize(
    ("state", "place", "phase"),
    [
        (RoomState.SCHEDULED, None, QueuePhase.SOON),
        (RoomState.OPEN, None, QueuePhase.JOIN),
        (RoomState.OPEN, PlaceState.IN_DRAW, QueuePhase.DRAW),
        (RoomState.OPEN, PlaceState.LEFT, QueuePhase.JOIN),
        (RoomState.ADMITTING, None, QueuePhase.JOIN_LATE),
        (RoomState.ADMITTING, PlaceState.WAITING, QueuePhase.WAITING),
        (RoomState.ADMITTING, PlaceState.CALLED, QueuePhase.TURN),
        (RoomState.ADMITTING, PlaceState.INSIDE, QueuePhase.INSIDE),
        (RoomState.ADMITTING, PlaceState.DONE, QueuePhase.FINISHED),
        (RoomState.ADMITTING, PlaceState.OUT, QueuePhase.GONE),
        (RoomState.ADMITTING, PlaceState.LEFT, QueuePhase.JOIN_LATE),
        (RoomState.OVERRIDDEN, PlaceState.WAITING, QueuePhase.OPEN),
        (RoomState.DRAINED, PlaceState.DRAINED, QueuePhase.SOLD_OUT),
        (RoomState.DRAINED, PlaceState.INSIDE, QueuePhase.INSIDE),
        (RoomState.DRAINED, None, QueuePhase.SOLD_OUT),
        (RoomState.CLOSED, PlaceState.DONE, QueuePhase.OPEN),
    ],
)
def test_every_state_has_a_phase(state: RoomState, place: PlaceState | None, phase: QueuePhase) -> None:
    assert view(state, a_place(place) if place else None).phase is phase


def test_people_count_from_one() -> None:
    assert (view().number, view().place, view().ahead) == (12, 1234, 433)


def test_a_place_of_another_phase_cannot_be_given_up() -> None:
    assert view().has_place
    assert not view(RoomState.OVERRIDDEN).has_place
    assert not view(RoomState.ADMITTING, a_place(PlaceState.OUT)).has_place


@pytest.mark.parametrize(("seats_left", "is_unlikely"), [(433, True), (434, False)])
def test_more_people_than_seats_is_a_warning(seats_left: int, is_unlikely: bool) -> None:
    assert view(seats_left=seats_left).is_unlikely is is_unlikely


@pytest.mark.parametrize(("poll_after_s", "refresh_s"), [(1, 3), (7, 7), (600, 60)])
def test_a_page_without_scripts_reloads_as_often_as_its_place_says(poll_after_s: int, refresh_s: int) -> None:
    assert view(mine=a_place(PlaceState.WAITING, poll_after_s=poll_after_s)).refresh_s == refresh_s


def test_a_page_on_which_nothing_changes_does_not_reload() -> None:
    for state in (PlaceState.DONE, PlaceState.OUT, PlaceState.INSIDE):
        assert view(mine=a_place(state)).refresh_s == 0


def test_the_end_is_that_of_the_turn_and_then_of_the_visit() -> None:
    turn, window = NOW + timedelta(minutes=2), NOW + timedelta(minutes=15)

    assert view(mine=a_place(PlaceState.CALLED, turn_ends_at=turn)).ends_at == turn
    assert view(mine=a_place(PlaceState.INSIDE, window_ends_at=window)).ends_at == window


@pytest.mark.parametrize(
    ("low_s", "high_s", "words"),
    [
        (0, 60, "less than a minute"),
        (10, 61, "about 0–2 minutes"),
        (730, 1050, "about 12–18 minutes"),
        (600, 600, "about 10–11 minutes"),
        (3600, 7200, "about 60–120 minutes"),
        (3600, 7201, "about 1–3 hours"),
    ],
)
def test_a_wait_is_rounded_outwards(low_s: int, high_s: int, words: str) -> None:
    assert format_wait(WaitRange(low_s, high_s), ENGLISH).replace("\u2060", "") == words


@pytest.mark.parametrize("brake", Brake)
@pytest.mark.parametrize("locale", ["en_GB", "de_DE", "hi_IN"])
def test_the_desk_has_a_sentence_for_everything_that_holds_admission_back(brake: Brake, locale: str) -> None:
    assert localiser_for(locale).has(f"desk.queue_slowed_{brake}")


def test_an_unknown_wait_is_not_made_up() -> None:
    assert format_wait(None, ENGLISH) == "not known yet"


def test_the_first_in_line_is_next() -> None:
    assert describe_place(view(mine=a_place(PlaceState.WAITING, ahead=0)), ENGLISH).ahead == "You're next"
    assert describe_place(view(), ENGLISH).ahead == "433 people are ahead of you"


def test_the_script_follows_the_front_of_a_person_who_fell_back() -> None:
    fell_back = view(mine=a_place(PlaceState.WAITING, has_missed_turn=True, position=5, ahead=40))

    assert fell_back.script(ENGLISH)["front"] == 840
    assert replace(fell_back, mine=None).script(ENGLISH)["position"] is None
