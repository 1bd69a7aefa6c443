"""A step runs while the release before it sells: nothing in it rewrites, scans or locks a table for long.

Every table that is there already counts as large. A step that touches a small one otherwise says so with a
line `-- small: table`. Each rule says what to do instead; docs/operating/upgrading.md explains them.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.tree import SRC, assert_no_violations, written

FIRST = 38  # older steps were written before the rules; no release has been made with them
COMMENT = re.compile(r"--[^\n]*")
CREATED = re.compile(r"^CREATE (?:UNLOGGED )?TABLE (\w+)", re.MULTILINE)
SMALL = re.compile(r"^-- small: (.+)$", re.MULTILINE)
ALTER = re.compile(r"ALTER TABLE (?:IF EXISTS )?(?:ONLY )?(\w+)\s+(.*)", re.DOTALL)
VOLATILE = r"\b(?:random|gen_random_uuid|clock_timestamp|nextval|timeofday|uuidv7)\("
# What a statement outside a transaction may be: it takes no lock that a sale waits for.
PATIENT = re.compile(
    r"(?:CREATE (?:UNIQUE )?INDEX|DROP INDEX|REINDEX \w+) CONCURRENTLY\b|ANALYZE\b"
    r"|ALTER TABLE \w+\s+VALIDATE CONSTRAINT \w+$"
)
ADD = r"ADD (?!CONSTRAINT)(?:COLUMN )?\w+ "
# Parts of ALTER TABLE: what is refused, and what to do instead.
REFUSED_ACTIONS = {
    rf"{ADD}.*\bGENERATED\b": "a generated or identity column rewrites the table: fill it by a job",
    rf"{ADD}.*\bDEFAULT\b.*{VOLATILE}": "a volatile default rewrites the table: add it without",
    rf"{ADD}.*\b(?:REFERENCES|UNIQUE|PRIMARY KEY|CHECK)\b": "add the constraint NOT VALID, by itself",
    rf"{ADD}(?!.*\bDEFAULT\b).*\bNOT NULL\b": "NOT NULL without a default: the old release inserts",
    r"ADD CONSTRAINT (?!.*\b(?:NOT VALID|USING INDEX)\b)": "add it NOT VALID, validate it in a later step",
    r"VALIDATE CONSTRAINT": "validate it in a step outside a transaction: here other locks are held",
    r"ALTER (?:COLUMN )?\w+ (?:SET DATA )?TYPE\b": "rewrites the table: add a column, fill it, switch",
    r"ALTER (?:COLUMN )?\w+ SET NOT NULL": "scans the table: add CHECK (… IS NOT NULL) NOT VALID",
    r"RENAME\b": "the old release uses the old name: add, fill, switch, remove",
    r"SET (?:LOGGED|UNLOGGED|TABLESPACE|SCHEMA|ACCESS METHOD)\b": "rewrites or moves the table",
}
# Other statements about a table that is there already; \1 is the table.
REFUSED_STATEMENTS = {
    r"UPDATE (?:ONLY )?(\w+)": "changes every row in one transaction: let a job do it in batches",
    r"DELETE FROM (?:ONLY )?(\w+)": "deletes in one transaction: let a job do it in batches",
    r"(?:LOCK(?: TABLE)?|CLUSTER|TRUNCATE(?: TABLE)?) (\w+)": "locks the table",
    r"DROP INDEX (?!CONCURRENTLY)(?:IF EXISTS )?(\w+)": "locks the table: DROP INDEX CONCURRENTLY",
    r"ALTER TYPE (\w+) ADD VALUE": "the old release cannot read the value; `-- small: type`: none is written",
}
ROWS_OF_A_TABLE = re.compile(
    r"^CREATE OR REPLACE FUNCTION (\w+)\([^;]*?\) RETURNS SETOF (\w+) LANGUAGE sql[^$]*\$\$\s*"
    r"SELECT (?!\*|\w+\.\*|\(jsonb_populate_record)",
    re.MULTILINE,
)


def statements(text: str) -> list[str]:
    return [" ".join(part.split()) for part in COMMENT.sub("", text).split(";") if part.strip()]


def harmful(folder: Path, first: int = FIRST) -> Iterator[str]:
    for path in sorted(folder.glob("[0-9]*.sql")):
        if int(path.name[:4]) >= first:
            yield from (f"{path.name}: {complaint}" for complaint in complaints(path.read_text()))


def complaints(text: str) -> Iterator[str]:
    known = {name.strip() for line in SMALL.findall(text) for name in line.split(",")} | set(
        CREATED.findall(text)
    )
    is_outside = "-- outside a transaction" in text.splitlines()
    if "-- works with: " not in text and "-- breaks: " not in text:
        yield "say `-- works with: …`, or `-- breaks: …` and why the old release cannot run on it"
    for statement in statements(text):
        if is_outside and not PATIENT.match(statement):
            yield f"outside a transaction there is no lock time-out: `{statement[:60]}`"
        elif not is_outside:
            yield from complaints_about(statement, known)


def complaints_about(statement: str, known: set[str]) -> Iterator[str]:
    if (found := ALTER.match(statement)) and found[1] not in known:
        for action in re.split(r",\s*(?=(?:ADD|ALTER|DROP|RENAME|SET|VALIDATE)\b)", found[2]):
            for pattern, instead in REFUSED_ACTIONS.items():
                if re.match(pattern, action, re.DOTALL):
                    yield f"{found[1]}: `{action[:60]}`: {instead}"
                    break
    for pattern, instead in REFUSED_STATEMENTS.items():
        if (found := re.match(pattern, statement)) and found[1] not in known:
            yield f"{found[1]}: `{statement[:60]}`: {instead}"


def brittle_functions(folder: Path) -> Iterator[str]:
    """A list of columns for a row of a table is wrong as soon as the table has one more: before the functions
    of the new release are there, and for as long as a concurrent index is built between them."""
    tables = set(CREATED.findall("".join(path.read_text() for path in folder.glob("migrations/[0-9]*.sql"))))
    for path in sorted(folder.glob("*/functions*.sql")):
        for name, table in ROWS_OF_A_TABLE.findall(path.read_text()):
            if table in tables:
                yield f"{path.parent.name}/{path.name}: {name}: RETURNS TABLE (…) instead of SETOF {table}"


class TestTheRulesCanFail:
    @pytest.mark.parametrize(
        "statement",
        [
            "ALTER TABLE booking ADD COLUMN paid boolean NOT NULL;",
            "ALTER TABLE booking ADD COLUMN key uuid DEFAULT gen_random_uuid();",
            "ALTER TABLE booking ADD COLUMN total int GENERATED ALWAYS AS (1) STORED;",
            "ALTER TABLE booking ADD COLUMN note text, ADD COLUMN venue int REFERENCES venue;",
            "ALTER TABLE booking ADD CONSTRAINT positive CHECK (amount > 0);",
            "ALTER TABLE booking ADD CONSTRAINT one UNIQUE (seat);",
            "ALTER TABLE booking VALIDATE CONSTRAINT positive;",
            "ALTER TABLE booking ALTER COLUMN seat TYPE bigint;",
            "ALTER TABLE booking ALTER COLUMN seat SET NOT NULL;",
            "ALTER TABLE booking RENAME COLUMN seat TO place;",
            "ALTER TYPE booking_state ADD VALUE 'lost';",
            "UPDATE booking SET seat = 1;",
            "DELETE FROM booking WHERE seat = 1;",
            "DROP INDEX bookings_by_seat;",
            "LOCK TABLE booking;",
        ],
    )
    def test_a_statement_that_locks_rewrites_or_breaks_is_found(self, statement: str) -> None:
        assert len(list(complaints(f"-- works with: 0.1.0\n{statement}"))) == 1
        small = "-- works with: 0.1.0\n-- small: booking, booking_state, bookings_by_seat\n"
        assert not list(complaints(small + statement))

    def test_what_extends_a_table_is_allowed(self) -> None:
        extends = (
            "ALTER TABLE booking ADD COLUMN a int NOT NULL DEFAULT 0, ADD COLUMN b date DEFAULT now(),\n"
            "    ALTER COLUMN c DROP NOT NULL, ALTER COLUMN d SET DEFAULT 1;\n"
            "ALTER TABLE booking ADD CONSTRAINT positive CHECK (amount > 0) NOT VALID;\n"
            "CREATE TABLE made (id int PRIMARY KEY, key uuid DEFAULT gen_random_uuid());\n"
            "UPDATE made SET id = 1;\nINSERT INTO made VALUES (1);"
        )
        outside = (
            "-- outside a transaction\nALTER TABLE booking VALIDATE CONSTRAINT positive;\nANALYZE booking;"
        )

        assert not list(complaints(f"-- works with: 0.1.0\n{extends}"))
        assert not list(complaints(f"-- works with: 0.1.0\n{outside}"))

    def test_a_lock_without_a_time_out_and_a_silent_break_are_found(self) -> None:
        outside = "-- breaks: all\n-- outside a transaction\nALTER TABLE booking ADD COLUMN a int;"

        assert ["no lock time-out" in line for line in complaints(outside)] == [True]
        assert ["-- works with: " in line for line in complaints("SELECT 1;")] == [True]

    def test_a_function_that_lists_the_columns_of_a_table_is_found(self, tmp_path: Path) -> None:
        listed = (
            "CREATE OR REPLACE FUNCTION {}(\n  p int\n) RETURNS SETOF {} LANGUAGE sql AS $$\n SELECT {} $$;\n"
        )
        text = listed.format("f", "t", "a, b") + listed.format("g", "t", "*") + listed.format("h", "v", "a")
        written(tmp_path, {"migrations/0001_t.sql": "CREATE TABLE t (a int);", "x/functions.sql": text})

        assert [line.split()[1] for line in brittle_functions(tmp_path)] == ["f:"]


def test_no_step_locks_or_rewrites_a_table() -> None:
    assert_no_violations(harmful(SRC / "migrations"))


def test_no_function_breaks_when_its_table_gets_a_column() -> None:
    assert_no_violations(brittle_functions(SRC))
