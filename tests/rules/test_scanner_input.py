"""Any bytes that a scanner types become lines that can be read, sent and stored (R30)."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.scanner.input import LINE_BYTES_MAX, Lines, normalise_code
from holdfast.tickets import Ticket, TicketKey
from holdfast.tickets.ticket import fixed_code

CODE = fixed_code(TicketKey(1, bytes(32), bytes(32), 0.0), Ticket(7, 123_456, 1))


def lines_of(*parts: bytes) -> list[str]:
    lines = Lines()
    return [line for part in parts for line in lines.add(part)] + [lines.rest()]


@pytest.mark.parametrize("around", [b"%s\n", b"%s\r\n", b"%s\r", b"\x02%s\x03\n", b" \t%s \n", b"\0%s\0\n"])
def test_a_code_is_read_whatever_the_scanner_puts_around_it(around: bytes) -> None:
    assert CODE in lines_of(around.replace(b"%s", CODE.encode()))


def test_a_code_typed_with_caps_lock_is_the_same_code() -> None:
    assert normalise_code(CODE.lower()) == CODE
    assert normalise_code("ß") == "ß"  # which would be two letters


@given(st.binary(max_size=3000), st.lists(st.integers(0, 3000), max_size=8))
def test_however_the_bytes_come_the_lines_are_the_same(raw: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(raw)]

    assert lines_of(*(raw[a:b] for a, b in pairwise(edges))) == lines_of(raw)


@given(st.binary(max_size=3000))
def test_every_line_can_be_sent_and_stored(raw: bytes) -> None:
    for line in lines_of(raw):
        assert len(line) <= LINE_BYTES_MAX
        assert "\0" not in line
        assert line.isprintable()
        assert json.loads(json.dumps(line).encode()) == line


def test_an_endless_line_does_not_fill_the_memory() -> None:
    lines = Lines()
    for _ in range(200):
        assert lines.add(b"x" * 65_536) == []

    assert len(lines._begun) == LINE_BYTES_MAX
    assert lines.add(b"\n" + CODE.encode() + b"\n") == ["x" * LINE_BYTES_MAX, CODE]
