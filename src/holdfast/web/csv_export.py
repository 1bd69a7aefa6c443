"""CSV without formulas. No I/O.

A cell that begins with one of FORMULA is taken for a formula by most spreadsheets, and the names of
categories and seats are user input: such a cell gets an apostrophe in front, and spreadsheets
show the rest. Our own numbers are never negative, so none of them is touched.
"""

import csv
import io
from collections.abc import Iterable, Sequence

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def escape_cell(value: object) -> str:
    text = "" if value is None else str(value)
    # Spaces in front do not keep a spreadsheet from running what follows.
    return f"'{text}" if text.startswith(FORMULA) or text.lstrip().startswith(FORMULA) else text


def to_csv(rows: Iterable[Sequence[object]]) -> bytes:
    sheet = io.StringIO()
    csv.writer(sheet, quoting=csv.QUOTE_ALL).writerows([escape_cell(value) for value in row] for row in rows)
    return sheet.getvalue().encode()
