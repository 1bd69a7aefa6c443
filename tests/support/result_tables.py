"""Tables of results that pytest prints after all tests, without `-s`."""

import re
from collections import defaultdict
from typing import Any

import pytest


class Table:
    """Rows and columns of results. Register it as a pytest plugin."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.rows: dict[str, dict[str, str]] = defaultdict(dict)

    def note(self, row: str, column: str, value: object) -> None:
        self.rows[row][column] = str(value)

    def lines(self) -> list[str]:
        columns = list(dict.fromkeys(name for row in self.rows.values() for name in row))
        cells = [["", *columns]]
        cells += [[name, *(row.get(column, "–") for column in columns)] for name, row in self.rows.items()]
        widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
        return ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.rows:
            terminalreporter.section(self.title)
            for line in self.lines():
                terminalreporter.write_line(line)


class OutcomeTable(Table):
    """One row per test of a module; the parameter of the test is the column."""

    def __init__(self, title: str, module: str) -> None:
        super().__init__(title)
        self._test = re.compile(re.escape(module.replace(".", "/")) + r"\.py::test_(\w+)\[(\w+)\]$")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = self._test.search(report.nodeid)
        if found is None or (report.when != "call" and report.passed):
            return
        passed = str(dict(report.user_properties).get("note", "passed"))
        self.note(found[1].replace("_", " "), found[2], passed if report.passed else "BROKEN")
