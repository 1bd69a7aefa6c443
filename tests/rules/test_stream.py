"""A show's changes in one process: frames, resumable positions, versions that only grow."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bookings import VERSIONS_PER_EPOCH
from holdfast.seatmap.feed import (
    FRAMES_BYTES_MAX,
    FRAMES_MAX,
    Feed,
    Frames,
    MapChange,
    follow_on,
    read_step,
    retry_frame,
    step_between,
)
from holdfast.seatmap.snapshot import Snapshot
from tests.support.shows import a_layout

SEATS = 12
LAYOUT = a_layout(SEATS)
EPOCH = 3 * VERSIONS_PER_EPOCH
steps_of_changes = st.lists(
    st.dictionaries(st.integers(0, SEATS - 1), st.sampled_from("AHBX"), min_size=1), max_size=30
)


def a_snapshot(version: int = EPOCH, states: bytes = b"A" * SEATS) -> Snapshot:
    return Snapshot(9, version, states, LAYOUT)


def steps(changes: list[dict[int, str]], after: int = EPOCH) -> list[MapChange]:
    return [MapChange(version, change) for version, change in enumerate(changes, after + 1)]


def read(frames: bytes) -> list[tuple[str, int, dict[str, object]]]:
    """(event, id, data) of each, as a browser reads them."""
    found = []
    for block in frames.decode().split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        found.append((fields["event"], int(fields["id"]), json.loads(fields["data"])))
    return found


def seen(states: bytes, frames: bytes) -> bytes:
    """Applies events as the client in docs/live.md does."""
    shown = bytearray(states)
    for event, _, data in read(frames):
        if event == "snapshot":
            shown = bytearray(str(data["states"]).encode())
        for seat, letter in data.get("changes", ()):  # type: ignore[attr-defined]
            shown[seat] = ord(letter)
    return bytes(shown)


def test_a_change_is_an_event_with_the_version_as_its_id() -> None:
    frame = MapChange(7, {12: "H", 3: "A"}).frame

    assert frame == b'event: change\nid: 7\ndata: {"version":7,"changes":[[12,"H"],[3,"A"]]}\n\n'


def test_a_snapshot_is_an_event_with_every_seat() -> None:
    ((event, version, data),) = read(Feed(a_snapshot()).snapshot_frame)

    assert (event, version) == ("snapshot", EPOCH)
    assert data == {"version": EPOCH, "layout": LAYOUT.hash, "states": "A" * SEATS}


def test_an_entry_of_the_stream_is_read_and_of_a_seat_named_twice_the_last_counts() -> None:
    assert read_step(b"3000000007-0", b"4A,4H,11B") == MapChange(EPOCH + 7, {4: "H", 11: "B"})
    assert read_step(b"3000000000-0", b"") == MapChange(EPOCH, {})


def test_a_retry_hint_is_not_an_event() -> None:
    assert retry_frame(700) == b"retry: 700\n\n"


@pytest.mark.parametrize(
    ("versions", "is_so"), [([], True), ([8, 9], True), ([9], False), ([8, 10], False), ([7], False)]
)
def test_steps_follow_on_without_a_gap(versions: list[int], is_so: bool) -> None:
    assert follow_on(7, [MapChange(version, {0: "H"}) for version in versions]) is is_so


def test_a_rebuilt_map_continues_no_older_stream() -> None:
    assert not follow_on(7, [MapChange(8, {})])


@given(steps_of_changes)
def test_a_viewer_that_returns_with_any_version_sees_the_current_map(changes: list[dict[int, str]]) -> None:
    feed = Feed(a_snapshot())
    seen_at = {EPOCH: feed.states}
    for step in steps(changes):
        feed.take([step])
        seen_at[step.version] = feed.states

    for version, states in seen_at.items():
        frames = feed.first_frames(version)
        assert frames is not None
        assert [number for _, number, _ in read(frames)] == list(range(version + 1, feed.version + 1))
        assert seen(states, frames) == feed.states


@given(steps_of_changes, st.integers(0, 30))
def test_earlier_changes_are_prepended_up_to_the_first_gap(changes: list[dict[int, str]], split: int) -> None:
    every = steps(changes)
    past, later = every[:split], every[split:]
    feed = Feed(a_snapshot(past[-1].version if past else EPOCH))
    feed.take(later)

    feed.frames.put_before([MapChange(EPOCH, {}), *every])

    assert feed.frames.base == EPOCH
    assert feed.first_frames(EPOCH) == b"".join(step.frame for step in every)


def test_a_past_with_a_gap_is_taken_up_to_the_gap() -> None:
    feed = Feed(a_snapshot(EPOCH + 9))

    feed.frames.put_before([MapChange(EPOCH + n, {0: "H"}) for n in (5, 6, 8, 9)])

    assert feed.frames.base == EPOCH + 7
    assert feed.first_frames(EPOCH + 6) == feed.snapshot_frame


def test_a_viewer_behind_the_buffered_changes_gets_the_whole_map() -> None:
    frames = Frames(EPOCH)
    for step in steps([{0: "H"}] * (FRAMES_MAX + 1)):
        frames.add(step.version, step.frame)

    assert frames.after(EPOCH) is None
    assert frames.after(EPOCH + FRAMES_MAX // 2) is not None


def test_large_frames_are_remembered_up_to_a_size() -> None:
    frames, frame = Frames(EPOCH), b"x" * (FRAMES_BYTES_MAX // 10)
    for version in range(EPOCH + 1, EPOCH + 40):
        frames.add(version, frame)

    assert len(frames.after(frames.base) or b"") <= FRAMES_BYTES_MAX
    assert frames.after(EPOCH + 38) == frame


def test_a_viewer_that_has_seen_more_gets_nothing_old() -> None:
    feed = Feed(a_snapshot(EPOCH + 4))

    assert feed.first_frames(EPOCH + 5) is None


def test_a_version_of_an_epoch_before_gets_the_whole_map() -> None:
    feed = Feed(a_snapshot())

    assert feed.first_frames(EPOCH - VERSIONS_PER_EPOCH + 7) == feed.snapshot_frame
    assert feed.first_frames(0) == feed.snapshot_frame


def test_a_map_rebuilt_is_sent_as_a_whole_and_continued_from() -> None:
    feed = Feed(a_snapshot(EPOCH + 7))
    rebuilt = a_snapshot(EPOCH + VERSIONS_PER_EPOCH, b"H" + b"A" * (SEATS - 1))

    frames = feed.turn_to(rebuilt)
    later = feed.take(steps([{1: "B"}], after=rebuilt.version))

    assert [event for event, _, _ in read(frames)] == ["snapshot"]
    assert feed.first_frames(rebuilt.version) == later
    assert feed.states == b"HB" + b"A" * (SEATS - 2)


def test_a_newer_map_of_the_same_epoch_is_sent_as_a_difference() -> None:
    feed = Feed(a_snapshot(EPOCH + 7))

    frames = feed.turn_to(a_snapshot(EPOCH + 90, b"AH" + b"A" * (SEATS - 2)))

    assert frames == MapChange(EPOCH + 90, {1: "H"}).frame
    assert feed.version == EPOCH + 90


def test_a_newer_map_that_looks_the_same_is_not_sent() -> None:
    feed = Feed(a_snapshot(EPOCH + 7))

    assert feed.turn_to(a_snapshot(EPOCH + 90)) == b""


@pytest.mark.parametrize("version", [EPOCH, EPOCH + 7, EPOCH - VERSIONS_PER_EPOCH])
def test_a_version_never_goes_back(version: int) -> None:
    feed = Feed(a_snapshot(EPOCH + 7))

    assert feed.turn_to(a_snapshot(version, b"X" * SEATS)) == b""
    assert (feed.version, feed.states) == (EPOCH + 7, b"A" * SEATS)


def test_a_hall_that_has_grown_is_sent_as_a_whole() -> None:
    feed = Feed(a_snapshot(EPOCH + 7))
    grown = Snapshot(9, EPOCH + 8, b"A" * 20, a_layout(20))

    assert [event for event, _, _ in read(feed.turn_to(grown))] == ["snapshot"]
    assert feed.states == b"A" * 20


def test_the_differences_of_a_large_hall_are_found_in_all_its_parts() -> None:
    before, after = b"A" * 2000, bytearray(b"A" * 2000)
    after[0], after[255], after[256], after[1999] = b"HBXH"

    step = step_between(before, Snapshot(9, EPOCH + 8, bytes(after), a_layout(20)))

    assert step.changes == {0: "H", 255: "B", 256: "X", 1999: "H"}


@given(st.text("AHBX", min_size=SEATS, max_size=SEATS), st.text("AHBX", min_size=SEATS, max_size=SEATS))
def test_applying_the_differences_turns_one_map_into_the_other(before: str, after: str) -> None:
    step = step_between(before.encode(), a_snapshot(EPOCH + 1, after.encode()))

    assert seen(before.encode(), step.frame if step.changes else b"") == after.encode()
