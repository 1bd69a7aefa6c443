"""Lists of several databases are one list, page by page (R36)."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.web.pod_pages import LAST, format_key, merge_page, parse_key, parse_positions

BEGAN = datetime(2026, 5, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Entry:
    pod: str
    number: int
    minute: int

    @property
    def at(self) -> datetime:
        return BEGAN + timedelta(minutes=self.minute)


# Each database counts its own: numbers are equal, and their order says nothing about the time.
HOME = [Entry("", 3, 50), Entry("", 2, 30), Entry("", 1, 10)]
EAST = [Entry("east", 90, 40), Entry("east", 3, 30), Entry("east", 2, 20)]


def page(before: str, size: int = 2, *pods: str) -> tuple[list[Entry], str | None]:
    positions = parse_positions(before)
    everything = {"": HOME, "east": EAST}
    found = {
        name: [one for one in everything[name] if one.number < positions.get(name, LAST)][: size + 1]
        for name in pods or everything
    }
    return merge_page(found, size, before, time_of=lambda one: one.at, number_of=lambda one: one.number)


def test_pages_have_every_entry_once_and_the_newest_first() -> None:
    seen: list[Entry] = []
    before: str | None = ""
    for _ in range(3):
        assert before is not None
        entries, before = page(before)
        seen += entries

    assert [one.minute for one in seen] == [50, 40, 30, 30, 20, 10]
    assert set(seen) == {*HOME, *EAST}
    assert before is None


def test_a_page_goes_on_where_each_database_was() -> None:
    first, after_first = page("")
    second, after_second = page(after_first or "")

    assert [one.pod for one in (*first, *second)] == ["", "east", "", "east"]
    assert (after_first, after_second) == ("3,east-90", "2,east-3")


def test_a_database_that_does_not_answer_keeps_its_position() -> None:
    _, before = page("", 2)
    without_east, before = page(before or "", 1, "")
    rest, _ = page(before or "", 5)

    assert [one.number for one in without_east] == [2]
    assert [one.minute for one in rest] == [30, 20, 10]


def test_a_house_without_pods_has_plain_numbers() -> None:
    entries, before = page("", 2, "")

    assert [one.number for one in entries] == [3, 2]
    assert before == "2"
    assert page("2", 2, "") == ([HOME[2]], None)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("42", ("", 42)),
        ("east-42", ("east", 42)),
        (str(LAST), ("", LAST)),
        (str(LAST + 1), None),
        ("east-", None),
        ("-42", None),
        ("East-42", None),
        ("east-42\n", None),
        ("", None),
    ],
)
def test_an_entry_is_named_by_its_pod_and_number(text: str, key: tuple[str, int] | None) -> None:
    assert parse_key(text) == key
    if key is not None:
        assert format_key(*key) == text
