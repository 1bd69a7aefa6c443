"""Migrations are numbered steps of tables without gaps; functions are in the folders that own the tables."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from holdfast.engines.migrate import steps
from tests.tidy.tree import ROOT, SRC, assert_no_violations, short, written

# Older steps lock; they were made before the first release.
LOCKS_NOTHING_FROM = 21
INDEX = re.compile(r"^CREATE (?:UNIQUE )?INDEX (CONCURRENTLY )?(\w+)\s+ON (\w+)", re.M)
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


def locking(folder: Path, first: int = 1) -> Iterator[str]:
    """An index of a table that is there already is built beside the sale, however large the table is."""
    for path in folder.glob("[0-9]*.sql"):
        text = path.read_text()
        made = set(re.findall(r"^CREATE (?:UNLOGGED )?TABLE (\w+)", text, re.M))
        for how, name, table in INDEX.findall(text) if int(path.name[:4]) >= first else ():
            if not how and table not in made:
                yield f"{path.name}: {name} locks {table}: CREATE INDEX CONCURRENTLY in a step of its own"
            if how and f"DROP INDEX CONCURRENTLY IF EXISTS {name};" not in text:
                yield f"{path.name}: {name} is not dropped before: an interrupted build leaves half of it"


def with_functions(folder: Path) -> Iterator[str]:
    """A function in a step could never be edited again: it belongs into a functions.sql."""
    for path in folder.glob("[0-9]*.sql"):
        for kind in re.findall(r"^CREATE (?:OR REPLACE )?(FUNCTION|VIEW|TRIGGER)\b", path.read_text(), re.M):
            yield f"{path.name} creates a {kind.lower()}: put it into the functions.sql of its folder"


def not_repeatable(paths: Iterable[Path]) -> Iterator[str]:
    """A functions.sql is applied again after every change: what is there already must not be in the way."""
    for path in paths:
        text = path.read_text()
        for kind, name in re.findall(r"^CREATE (FUNCTION|TRIGGER|VIEW|TYPE) (\w+)", text, re.M):
            if not re.search(rf"^DROP {kind} IF EXISTS [^;]*\b{name}\b", text, re.M):
                yield f"{short(path)}: {name} is neither CREATE OR REPLACE nor dropped before"
        if not text.startswith(f"-- {path.parent.name}/{path.name}: "):
            yield f"{short(path)} does not open with `-- {path.parent.name}/{path.name}: …`"


def changed_steps(released: str, folder: Path) -> Iterator[str]:
    """A step that databases have been made with stays as it is: it would stop every one of them."""
    now = {step.name: step.checksum for step in steps(folder)}
    for line in released.splitlines():
        checksum, name = line.split()
        if name not in now:
            yield f"{name}.sql is gone, and databases have been made with it"
        elif now[name] != checksum:
            yield f"{name}.sql has changed, and databases have been made with it: add a step"


class TestTheRulesCanFail:
    def test_a_changed_and_a_removed_step_are_found(self, tmp_path: Path) -> None:
        written(tmp_path, {"0001_a.sql": "SELECT 1;", "0002_b.sql": "SELECT 2;", "0003_c.sql": "SELECT 3;"})
        released = "".join(f"{step.checksum}  {step.name}\n" for step in steps(tmp_path))
        written(tmp_path, {"0002_b.sql": "SELECT 20;", "0004_d.sql": "SELECT 4;"})
        (tmp_path / "0003_c.sql").unlink()

        assert list(changed_steps(released, tmp_path)) == [
            "0002_b.sql has changed, and databases have been made with it: add a step",
            "0003_c.sql is gone, and databases have been made with it",
        ]

    def test_a_function_in_a_step_is_found(self, tmp_path: Path) -> None:
        written(tmp_path, {"0001_a.sql": "CREATE TABLE a ();\nCREATE OR REPLACE FUNCTION f() …"})

        assert len(list(with_functions(tmp_path))) == 1

    def test_a_file_that_can_be_applied_only_once_is_found(self, tmp_path: Path) -> None:
        good = "-- a/functions.sql: …\nDROP VIEW IF EXISTS u, v;\nCREATE VIEW v AS …\nCREATE OR REPLACE …"
        written(tmp_path, {"a/functions.sql": good, "b/functions.sql": "CREATE FUNCTION f() …"})

        assert len(list(not_repeatable(sorted(tmp_path.glob("*/*.sql"))))) == 2

    def test_a_gap_and_a_strange_name_are_found(self, tmp_path: Path) -> None:
        written(tmp_path, {"0001_a.sql": "", "0003_b.sql": "", "fix.sql": "", "schema.sql": ""})

        assert list(misnumbered(tmp_path)) == [
            "0003_b.sql is step 2",
            "fix.sql is not called NNNN_subject.sql",
        ]

    def test_a_nameless_step_is_found(self, tmp_path: Path) -> None:
        written(tmp_path, {"0001_a.sql": "CREATE TABLE x ();", "0002_b.sql": "-- 0002_b.sql: bees."})

        assert len(list(nameless(tmp_path))) == 1

    def test_an_index_that_locks_or_cannot_be_built_again_is_found(self, tmp_path: Path) -> None:
        again = "DROP INDEX CONCURRENTLY IF EXISTS n;\nCREATE INDEX CONCURRENTLY n\n    ON old (x);"
        written(
            tmp_path,
            {
                "0001_a.sql": "CREATE INDEX i ON old (x);",
                "0002_b.sql": "CREATE TABLE new (\n  x int\n);\nCREATE UNIQUE INDEX n ON new (x);",
                "0003_c.sql": again,
                "0004_d.sql": "CREATE INDEX i\n    ON old (x);",
                "0005_e.sql": "CREATE INDEX CONCURRENTLY i ON old (x);",
            },
        )

        found = sorted(locking(tmp_path, first=2))

        assert [text[:10] for text in found] == ["0004_d.sql", "0005_e.sql"]

    def test_a_step_that_drops_is_found(self, tmp_path: Path) -> None:
        written(
            tmp_path,
            {"0001_a.sql": "DROP TABLE x;", "0002_b.sql": "-- removes: x, unused since 1.2\nDROP TABLE x;"},
        )

        assert len(list(destructive(tmp_path))) == 1


def test_steps_are_numbered_without_gaps() -> None:
    assert_no_violations(misnumbered(SRC / "migrations"))


def test_every_step_says_what_it_brings() -> None:
    assert_no_violations(nameless(SRC / "migrations"))


def test_steps_of_released_states_stay_as_they_are() -> None:
    lists = sorted((ROOT / "tests" / "stores" / "upgrades").glob("*.steps"))

    assert lists
    for path in lists:
        assert_no_violations(changed_steps(path.read_text(), SRC / "migrations"))


def test_steps_have_tables_and_no_functions() -> None:
    assert_no_violations(with_functions(SRC / "migrations"))


def test_functions_can_be_applied_again() -> None:
    assert_no_violations(not_repeatable(SRC.glob("*/functions*.sql")))


def test_no_index_locks_a_table_that_is_in_use() -> None:
    assert_no_violations(locking(SRC / "migrations", LOCKS_NOTHING_FROM))


def test_nothing_is_dropped_in_passing() -> None:
    assert_no_violations(destructive(SRC / "migrations"))
