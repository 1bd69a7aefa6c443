"""Migrations are numbered steps without gaps; schema.sql is all of them, in order."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.tree import SRC, nobody_complains, written

STEP = re.compile(r"^(\d{4})_([a-z_]+)\.sql$")


def misnumbered(folder: Path) -> Iterator[str]:
    steps = sorted(path.name for path in folder.glob("*.sql") if path.name != "schema.sql")
    for place, name in enumerate(steps, 1):
        match = STEP.match(name)
        if match is None:
            yield f"{name} is not called NNNN_subject.sql"
        elif int(match[1]) != place:
            yield f"{name} is step {place}"


def nameless(folder: Path) -> Iterator[str]:
    """A step opens with its own name and what it brings: the name is what an error shows."""
    for path in folder.glob("[0-9]*.sql"):
        if not path.read_text().startswith(f"-- {path.name}: "):
            yield f"{path.name} does not open with `-- {path.name}: …`"


def destructive(folder: Path) -> Iterator[str]:
    """What removes comes a release later, and says so with a line `-- removes: …`."""
    for path in folder.glob("[0-9]*.sql"):
        text = path.read_text()
        if re.search(r"\bDROP\s+(TABLE|COLUMN|TYPE)\b", text) and "-- removes: " not in text:
            yield f"{path.name} drops something without saying what and why"


class TestTheRulesCanFail:
    def test_a_gap_and_a_strange_name_are_found(self, tmp_path: Path) -> None:
        written(tmp_path, {"0001_a.sql": "", "0003_b.sql": "", "fix.sql": "", "schema.sql": ""})

        assert list(misnumbered(tmp_path)) == [
            "0003_b.sql is step 2",
            "fix.sql is not called NNNN_subject.sql",
        ]

    def test_a_nameless_step_is_found(self, tmp_path: Path) -> None:
        written(tmp_path, {"0001_a.sql": "CREATE TABLE x ();", "0002_b.sql": "-- 0002_b.sql: bees."})

        assert len(list(nameless(tmp_path))) == 1

    def test_a_step_that_drops_is_found(self, tmp_path: Path) -> None:
        written(
            tmp_path,
            {"0001_a.sql": "DROP TABLE x;", "0002_b.sql": "-- removes: x, unused since 1.2\nDROP TABLE x;"},
        )

        assert len(list(destructive(tmp_path))) == 1


def test_steps_are_numbered_without_gaps() -> None:
    nobody_complains(misnumbered(SRC / "migrations"))


def test_every_step_says_what_it_brings() -> None:
    nobody_complains(nameless(SRC / "migrations"))


def test_nothing_is_dropped_in_passing() -> None:
    nobody_complains(destructive(SRC / "migrations"))
