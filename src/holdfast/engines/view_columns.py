"""Views are replaced in place and keep their columns: processes of an earlier release select from them.

PostgreSQL replaces a view only by one with the same columns in the same order, and more behind them. So one
that exists gets its own columns first, then new ones, whatever their order in the file. A line before it,

    -- keeps its columns: why

says that it gets no new ones where it exists: statements return its rows as values of a type that clients
have read before, or their columns become arguments. New columns then need a view with another name.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import asyncpg

from holdfast.engines.postgres import Queries

Q = Queries("holdfast.engines")
VIEW = re.compile(
    r"^(?P<mark>-- keeps its columns: [^\n]*\n)?"
    r"CREATE (?:OR REPLACE )?VIEW (?P<name>\w+) AS\s(?P<query>.*?);\n",
    re.MULTILINE | re.DOTALL,
)
COMMENT = re.compile(r"^--.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ViewPart:
    sql: str
    name: str
    query: str
    has_fixed_columns: bool


def split_views(sql: str) -> Iterator[str | ViewPart]:
    """A file of functions in its order: views, and the text between them."""
    end = 0
    for found in VIEW.finditer(sql):
        yield sql[end : found.start()]
        yield ViewPart(found[0], found["name"], found["query"], bool(found["mark"]))
        end = found.end()
    yield sql[end:]


async def apply_functions(connection: asyncpg.Connection, sql: str) -> None:
    """In the transaction of the caller."""
    for part in split_views(sql):
        if isinstance(part, ViewPart):
            await _replace_view(connection, part)
        elif COMMENT.sub("", part).strip():  # asyncpg refuses a text without a statement
            await connection.execute(part)


async def _replace_view(connection: asyncpg.Connection, view: ViewPart) -> None:
    has: list[str] | None = await connection.fetchval(Q.view_columns, view.name)
    if has is None:
        await connection.execute(view.sql)
        return
    to_come = [column.name for column in (await connection.prepare(view.query)).get_attributes()]
    new = [] if view.has_fixed_columns else [name for name in to_come if name not in has]
    if has + new == to_come or not set(has) <= set(to_come):  # if a column goes, PostgreSQL refuses it
        await connection.execute(view.sql)
        return
    columns = ", ".join(f'"{name}"' for name in has + new)
    select = f"SELECT {columns} FROM ({view.query}) AS {view.name}"  # noqa: S608 a file of this program
    await connection.execute(f"CREATE OR REPLACE VIEW {view.name} AS {select}")
