"""Which database of a house with pods a statement goes to: by the tables it names, also in functions.

What is of people and catalogue is in the home database, what is of a sale in the pod of its show
(holdfast/pods/tables.py). No test has to say so: `SpreadPostgres` asks here.
"""

import re
from enum import Enum, auto
from functools import cache
from importlib import resources

from holdfast.pods import OF_A_SHOW, REPLICATED, SALE, SALE_COLUMNS
from holdfast.pods.tables import HOME_ONLY, LOCAL

SCHEMA = (resources.files("holdfast") / "migrations" / "schema.sql").read_text()
DEFINITION = re.compile(r"CREATE (?:OR REPLACE )?(?:FUNCTION|VIEW) (\w+)")
# Functions and views, by name: each definition ends where the next statement begins.
BODIES = {
    found[1]: part
    for part in re.split(r"\n(?=CREATE |ALTER |COMMENT )", SCHEMA)
    if (found := DEFINITION.match(part))
}
OF_HOME = {*REPLICATED, *HOME_ONLY}
OF_SALES = {*OF_A_SHOW, *LOCAL, SALE}
TABLES = OF_HOME | OF_SALES

NAMED = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE|TABLE|TRUNCATE|ONLY|USING|LIKE)\s+(\w+)", re.IGNORECASE)
WRITTEN = re.compile(
    r"\b(?:INSERT\s+INTO|DELETE\s+FROM|TRUNCATE|ALTER\s+TABLE|(?<!FOR )(?<!KEY )(?<!DO )UPDATE)"
    r"\s+(?:ONLY\s+)?(\w+)",
    re.IGNORECASE,
)
WORD = re.compile(r"\w+")
CALLED = re.compile(r"\b(\w+)\s*\(")
SET_SALE = re.compile(r"\bUPDATE\s+sale\b.*?\bSET\b(.*?)(?:\bWHERE\b|;|$)", re.IGNORECASE | re.DOTALL)
PUBLISHED = re.compile(rf"\b(?:{'|'.join(SALE_COLUMNS)})\s*=")


class Place(Enum):
    HOME = auto()
    SALE = auto()  # the pod of the show
    ANY = auto()  # it names no table


@cache
def place_of(sql: str) -> Place:
    named, written = tables_of(sql)
    if (written | named) & set(HOME_ONLY) or written & set(REPLICATED) or _changes_published_sale(sql):
        return Place.HOME
    if named & OF_SALES:
        return Place.SALE
    return Place.HOME if named else Place.ANY


def tables_of(text: str) -> tuple[set[str], set[str]]:
    """All that are named, and those that are written."""
    named, written = _own_tables(text)
    for body in _bodies(text):
        more_named, more_written = _own_tables(body)
        named |= more_named
        written |= more_written
    return named | written, written


def _own_tables(text: str) -> tuple[set[str], set[str]]:
    return {*NAMED.findall(text)} & TABLES, {*WRITTEN.findall(text)} & TABLES


def _bodies(text: str) -> list[str]:
    """Of the functions and views in a statement, and of those in them."""
    found: dict[str, str] = {}
    waiting = [text]
    while waiting:
        one = waiting.pop()
        names = {*CALLED.findall(one), *NAMED.findall(one)} & BODIES.keys()
        for name in names - found.keys():
            found[name] = BODIES[name]
            waiting.append(BODIES[name])
    return list(found.values())


def _changes_published_sale(sql: str) -> bool:
    """The part of a sale that organisers decide: the home database has it, pods receive it."""
    texts = [sql, *_bodies(sql)]
    if any(re.search(r"\bINSERT\s+INTO\s+sale\b", text, re.IGNORECASE) for text in texts):
        return True
    return any(PUBLISHED.search(changes) for text in texts for changes in SET_SALE.findall(text))
