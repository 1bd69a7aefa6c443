"""Which folder owns each table, and whose SQL reads or writes it: for tools/codebase_figures.py."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tools.codebase_tree import Figure, Tree, counted

CREATED = r"\bCREATE (?:OR REPLACE )?(?:UNLOGGED )?(?:MATERIALIZED )?(TABLE|FUNCTION|PROCEDURE|VIEW) "
CREATED += r"(?:IF NOT EXISTS )?(\w+)"
BODY = re.compile(r"CREATE (?:OR REPLACE )?FUNCTION (\w+).*?(\$\w*\$)(.*?)\2", re.DOTALL)
TRIGGER = re.compile(r"CREATE (?:CONSTRAINT )?TRIGGER.*? ON (\w+).*?EXECUTE FUNCTION (\w+)", re.DOTALL)
OWNER = re.compile(r"-- owner: (\w+)")
EARLIER = "functions_earlier.sql"
QUERY = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
WRITE = re.compile(r"\b(?:INSERT INTO|UPDATE|DELETE FROM|TRUNCATE|MERGE INTO) (?:ONLY )?(\w+)")
NAMED = r"\w+\b(?![.(])(?:(?: AS)? (?!JOIN|FROM|USING)\w+)?"  # a table and its alias
READ = re.compile(rf"(?<!DELETE )(?<!DISTINCT )\b(?:FROM|JOIN|USING) (?:ONLY )?({NAMED}(?:, {NAMED})*)")


def plain(sql: str) -> str:
    """Without comments and texts, every gap one space."""
    return re.sub(r"\s+", " ", re.sub(r"--[^\n]*|'[^']*'", " ", sql))


@dataclass(frozen=True)
class Unit:
    """A query or the body of a stored function, and the folder it works for."""

    folder: str
    text: str


class Sql:
    """The .sql files of a tree, without folders that have a schema.sql, and so a database, of their own."""

    def __init__(self, tree: Tree) -> None:
        found = [path for path in sorted(tree.src.rglob("*.sql")) if path.name != "schema.sql"]
        self.steps = [path for path in found if path.parent.name == "migrations"]
        own = {path.parent for path in tree.src.rglob("schema.sql") if path.parent.name != "migrations"}
        self.files = [path for path in found if path not in self.steps and path.parent not in own]
        self.folder_of = {path: path.relative_to(tree.src).parts[0] for path in self.files}
        self.created = [
            (kind, name, path.relative_to(tree.src))
            for path in (*self.steps, *self.files)
            for kind, name in re.findall(CREATED, plain(path.read_text()))
        ]
        self.tables = {name for kind, name, _ in self.created if kind == "TABLE"}
        self.units = [*self._queries(), *self._borrowed(tree)]
        self._add_functions()
        self.owners = self._most_writes() | self._declared()

    def _queries(self) -> Iterator[Unit]:
        for path, folder in self.folder_of.items():
            text = path.read_text()
            rest = BODY.sub(" ", text)
            yield from (Unit(folder, plain(part)) for part in QUERY.split(rest)[2::2])
            yield from (Unit(folder, plain(body)) for _, _, body in BODY.findall(text))

    def _borrowed(self, tree: Tree) -> Iterator[Unit]:
        """Queries of another folder's file that a module runs: they work for the module's folder."""
        named = re.compile(r"^(\w+) = Queries\(\"holdfast\.(\w+)", re.MULTILINE)
        for module in tree.modules:
            for variable, folder in named.findall(module.text):
                if folder != module.folder != "":
                    used = set(re.findall(rf"\b{variable}\.(\w+)", module.text))
                    yield from (Unit(module.folder, text) for text in self._named(folder, used))

    def _named(self, folder: str, names: set[str]) -> Iterator[str]:
        for path in (path for path, owner in self.folder_of.items() if owner == folder):
            _, *parts = QUERY.split(path.read_text())
            found = zip(parts[::2], parts[1::2], strict=True)
            yield from (plain(text) for name, text in found if name in names)

    def _add_functions(self) -> None:
        """A function in a migration works for the folder that calls it most, or whose table triggers it."""
        text = "\n".join(path.read_text() for path in self.steps)
        bodies = {name: plain(body) for name, _, body in BODY.findall(text)}
        while placed := {name: folder for name in bodies if (folder := self._caller(name))}:
            self.units += [Unit(folder, bodies.pop(name)) for name, folder in placed.items()]
        owners = self._most_writes()
        for table, name in TRIGGER.findall(text):
            if name in bodies and table in owners:
                self.units.append(Unit(owners[table], bodies.pop(name)))

    def _caller(self, function: str) -> str | None:
        calls = Counter(unit.folder for unit in self.units if re.search(rf"\b{function} ?\(", unit.text))
        return most(calls)

    def _most_writes(self) -> dict[str, str]:
        writes: dict[str, Counter[str]] = defaultdict(Counter)
        for unit in self.units:
            for table in WRITE.findall(unit.text):
                writes[table][unit.folder] += 1
        return {table: most(writes[table]) or "" for table in self.tables & set(writes)}

    def _declared(self) -> dict[str, str]:
        """`-- owner: folder` in a migration: for the tables created after it in that file."""
        found: dict[str, str] = {}
        for path in self.steps:
            _, *parts = OWNER.split(path.read_text())
            for owner, text in zip(parts[::2], parts[1::2], strict=True):
                found |= {name: owner for kind, name in re.findall(CREATED, plain(text)) if kind == "TABLE"}
        return found

    def across(self, pattern: re.Pattern[str]) -> set[tuple[str, str]]:
        """(folder, table) where the folder's SQL names the table in this way and another folder owns it."""
        hits = ((unit.folder, hit) for unit in self.units for hit in pattern.findall(unit.text))
        named = {(folder, name.split()[0]) for folder, hit in hits for name in hit.split(", ")}
        return {(folder, name) for folder, name in named if self.owners.get(name, folder) != folder}


@cache
def sql_of(tree: Tree) -> Sql:
    return Sql(tree)


def most(counts: "Counter[str]") -> str | None:
    """The most frequent; of equals the first by name."""
    return min(counts, key=lambda name: (-counts[name], name), default=None)


def tables(tree: Tree) -> Figure:
    """Tables created in migrations. Owner: `-- owner: folder`, else the folder whose SQL writes it most."""
    return Figure(
        len(sql_of(tree).tables),
        sorted(f"{t}: {sql_of(tree).owners.get(t, '?')}" for t in sql_of(tree).tables),
    )


def reads_across(tree: Tree) -> Figure:
    """Pairs of folder and table: its SQL reads a table (FROM, JOIN, USING) that another folder owns."""
    return counted(f"{folder} reads {table}" for folder, table in sql_of(tree).across(READ))


def writes_across(tree: Tree) -> Figure:
    """Pairs of folder and table: its SQL writes (INSERT, UPDATE, DELETE) a table that another folder owns."""
    return counted(f"{folder} writes {table}" for folder, table in sql_of(tree).across(WRITE))


def sql_twice(tree: Tree) -> Figure:
    """Functions, tables and views created more than once over migrations and other .sql files.

    Without functions_earlier.sql: programs of the release before call the same names with other arguments.
    """
    current = ((kind, name) for kind, name, path in sql_of(tree).created if path.name != EARLIER)
    counts = Counter(f"{kind.lower()} {name}" for kind, name in current)
    return counted(name for name, count in counts.items() if count > 1)
