"""A table belongs to one folder: no other folder writes it, and reads go through views and functions.

A step names the owner of each table it creates: `-- owner: bookings` above `CREATE TABLE booking`. Another
folder calls a function of the owner, or reads one of its views; what it may read directly is listed in READS.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.tidy.tree import SRC, assert_no_violations, package, written

TABLE = re.compile(r"^(?:-- owner: (\w+)\n)?CREATE TABLE (\w+)", re.MULTILINE)
NOISE = re.compile(r"'(?:[^']|'')*'|--[^\n]*")  # literals and comments
WRITE = re.compile(r"\b(?:INSERT INTO|DELETE FROM|TRUNCATE|LOCK TABLE|MERGE INTO|UPDATE)\s+(\w+)")
LISTED = r"\w+(?:\s+(?:AS\s+)?\w+)?\s*,\s*"  # of FROM a, b AS c, d
READ = re.compile(rf"\b(?:(?<!DELETE )FROM|JOIN|USING)\s+((?:{LISTED})*\w+)\b(?!\s*[.(])")
QUERIES = re.compile(r'Queries\("holdfast\.(\w+)"')

# Folders with a database of their own, or without a part in the sale.
NOT_OURS = {"migrations", "sandbox"}
ANY = "any table"
# Who reads which tables of others directly, and why that is better than a view.
READS = {
    ("archive", ANY): "copies rows of past shows as they are, and looks for what is under way in them",
    ("audit", ANY): "counts violations in the tables themselves: a view would be part of what is audited",
    ("backup", ANY): "copies every table as it is",
    ("catalogue", "city"): "the public side of what organisers edit: the same tables, other questions",
    ("catalogue", "event"): "as city",
    ("catalogue", "hall"): "as city",
    ("catalogue", "poster_image"): "as city",
    ("catalogue", "price"): "as city",
    ("catalogue", "price_plan"): "as city",
    ("catalogue", "show"): "as city",
    ("catalogue", "show_terms"): "as city",
    ("catalogue", "venue"): "as city",
    ("demo", "account"): "looks for real data before migrations have made the views",
    ("demo", "event"): "as account",
    ("organisers", "layout"): "a hall and a show refer to their layout by its hash",
    ("search", "city"): "source.sql exports the catalogue for the index, in one pass",
    ("search", "event"): "as city",
    ("search", "hall"): "as city",
    ("search", "layout"): "as city",
    ("search", "price"): "as city",
    ("search", "show"): "as city",
    ("search", "venue"): "as city",
}


@dataclass(frozen=True)
class Use:
    folder: str
    table: str
    file: str
    writes: bool


def owners(migrations: Path) -> dict[str, str]:
    """Table -> folder; "" where a step does not say."""
    return {
        table: owner
        for path in sorted(migrations.glob("[0-9]*.sql"))
        for owner, table in TABLE.findall(path.read_text())
    }


def uses(src: Path) -> Iterator[Use]:
    """Every word in the place of a table, by the folder of the file."""
    for path in sorted(src.glob("*/*.sql")):
        folder = path.parent.name
        if folder not in NOT_OURS:
            text = re.sub(r"\s+", " ", NOISE.sub(" ", path.read_text()))
            for table in WRITE.findall(text):
                yield Use(folder, table, path.name, writes=True)
            for listed in READ.findall(text):
                for one in listed.split(","):
                    yield Use(folder, one.split()[0], path.name, writes=False)


def without_owner(owner_of: dict[str, str], folders: Iterable[str]) -> Iterator[str]:
    known = set(folders)
    for table, owner in owner_of.items():
        if not owner:
            yield f"table {table} has no line `-- owner: …` above CREATE TABLE"
        elif owner not in known:
            yield f"table {table} belongs to {owner}, which is not a folder"


def across(
    found: Iterable[Use], owner_of: dict[str, str], allowed: Iterable[tuple[str, str]]
) -> Iterator[str]:
    may = set(allowed)
    for use in found:
        owner = owner_of.get(use.table, use.folder)
        where = f"{use.folder}/{use.file}"
        if owner == use.folder:
            continue
        if use.writes:
            yield f"{where} writes {use.table}, which belongs to {owner}: call a function of {owner}"
        elif not {(use.folder, use.table), (use.folder, ANY)} & may:
            yield f"{where} reads {use.table}, which belongs to {owner}: read a view of {owner}"


def unused(found: Iterable[Use], allowed: Iterable[tuple[str, str]]) -> Iterator[str]:
    read = {(use.folder, use.table) for use in found if not use.writes}
    for folder, table in allowed:
        if table != ANY and (folder, table) not in read:
            yield f"READS: {folder} does not read {table} any more"


def borrowed_queries(src: Path) -> Iterator[str]:
    for module in package(src).values():
        for folder in QUERIES.findall(module.text):
            if folder != module.folder:
                yield f"{module.name} uses the queries of {folder}: call its Python"


class TestTheRulesCanFail:
    tables = (
        "-- owner: a\nCREATE TABLE one (…);\n\n-- owner: gone\nCREATE TABLE two (…);\nCREATE TABLE three (…);"
    )

    def test_a_table_without_an_owner_is_found(self, tmp_path: Path) -> None:
        written(tmp_path, {"0001_x.sql": self.tables})

        assert len(list(without_owner(owners(tmp_path), ["a"]))) == 2

    def test_writes_and_reads_across_are_found_and_what_is_listed_is_not(self, tmp_path: Path) -> None:
        written(
            tmp_path,
            {
                "a/queries.sql": "SELECT * FROM one JOIN two USING (id);",
                "b/queries.sql": "SELECT 'FROM one' -- FROM one\n FROM x AS y, one WHERE one.a > one.b;",
                "c/queries.sql": "INSERT INTO one (a) SELECT extract(epoch FROM one.at);",
                "d/queries.sql": "DELETE FROM  one\n USING two AS t;",
            },
        )
        owner_of = {"one": "a", "two": "d"}

        found = list(across(uses(tmp_path), owner_of, [("a", "two")]))

        assert [complaint.split(", ")[0] for complaint in found] == [
            "b/queries.sql reads one",
            "c/queries.sql writes one",
            "d/queries.sql writes one",
        ]

    def test_an_unneeded_line_is_found(self) -> None:
        assert len(list(unused([Use("a", "one", "x.sql", False)], [("a", "one"), ("a", "two")]))) == 1

    def test_queries_of_another_folder_are_found(self, tmp_path: Path) -> None:
        text = 'Q = Queries("holdfast.b")'
        written(tmp_path, {"a/__init__.py": "", "a/store.py": text, "b/__init__.py": "", "b/store.py": text})

        assert len(list(borrowed_queries(tmp_path))) == 1


def test_every_table_has_an_owner() -> None:
    folders = [path.name for path in SRC.iterdir() if path.is_dir()]

    assert_no_violations(without_owner(owners(SRC / "migrations"), folders))


def test_a_folder_writes_its_own_tables_and_reads_listed_ones() -> None:
    assert_no_violations(across(uses(SRC), owners(SRC / "migrations"), READS))


def test_the_list_of_reads_has_nothing_to_spare() -> None:
    assert_no_violations(unused(uses(SRC), READS))


def test_queries_are_used_in_their_own_folder() -> None:
    assert_no_violations(borrowed_queries(SRC))
