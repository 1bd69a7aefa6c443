"""A sheet for a spreadsheet has nothing in it that a spreadsheet would run."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.web.csv_export import FORMULA, escape_cell, to_csv


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "=cmd|' /C calc'!A0", "＝1", "\u00a0=1"],
)
def test_a_formula_becomes_a_text(text: str) -> None:
    assert escape_cell(text) == "'" + text


@pytest.mark.parametrize("text", ["A-12", "Stalls = best", "1500", "2031-05-01T19:30:00+00:00", "", "'s"])
def test_text_that_is_not_a_formula_is_unchanged(text: str) -> None:
    assert escape_cell(text) == text


@given(
    st.lists(
        st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1),
        min_size=1,
    )
)
def test_every_cell_can_be_read_back_and_none_is_a_formula(rows: list[list[str]]) -> None:
    read = list(csv.reader(io.StringIO(to_csv(rows).decode(), newline="")))

    assert len(read) == len(rows)
    for cells, row in zip(read, rows, strict=True):
        assert [text.removeprefix("'") for text in cells] == [text.removeprefix("'") for text in row]
        assert not any(text.lstrip().startswith(FORMULA) for text in cells)
