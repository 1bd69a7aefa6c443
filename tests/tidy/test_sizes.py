"""Budgets: what does not fit in the head does not fit in a file."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.tidy.tree import (
    ROOT,
    SRC,
    Function,
    Module,
    assert_no_violations,
    files,
    package,
    scripts,
    short,
    written,
)

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60  # without its docstring
PARAMETERS_MAX = 6
LINE_MAX = 110
LUA_LINES_MAX = 100
LUA_KEYS_MAX = 5
QUERY_LINES_MAX = 50


def long_files(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        lines = path.read_text().splitlines()
        if len(lines) > FILE_LINES_MAX:
            yield f"{short(path)} has {len(lines)} lines"
        for number, line in enumerate(lines, 1):
            if len(line) > LINE_MAX:
                yield f"{short(path)}:{number} has {len(line)} columns"


def long_functions(modules: Iterable[Module]) -> Iterator[str]:
    for module in modules:
        for function in module.functions():
            if (lines := code_lines(function)) > FUNCTION_LINES_MAX:
                yield f"{short(module.path)}: {function.name} has {lines} lines"
            if (count := parameters(function)) > PARAMETERS_MAX:
                yield f"{short(module.path)}: {function.name} has {count} parameters"


def code_lines(function: Function) -> int:
    assert function.end_lineno is not None
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and first.end_lineno is not None:
        lines -= first.end_lineno - first.lineno + 1
    return lines


def parameters(function: Function) -> int:
    named = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return len([one for one in named if one.arg not in {"self", "cls"}])


def long_scripts(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        text = path.read_text()
        if (lines := len(text.splitlines())) > LUA_LINES_MAX:
            yield f"{short(path)} has {lines} lines"
        if (keys := len(re.findall(r"^-- KEYS\[\d+\]", text, re.MULTILINE))) > LUA_KEYS_MAX:
            yield f"{short(path)} has {keys} keys"


def long_queries(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        _, *parts = re.split(r"^-- name: (\w+)\n", path.read_text(), flags=re.MULTILINE)
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            if (lines := len(body.strip().splitlines())) > QUERY_LINES_MAX:
                yield f"{short(path)}: {name} has {lines} lines"


class TestTheRulesCanFail:
    def test_a_long_file_and_a_long_line_are_found(self, tmp_path: Path) -> None:
        written(tmp_path, {"a.py": "x = 1\n" * 401, "b.sql": "-" * 111})

        assert sorted(long_files(tmp_path.iterdir())) == ["a.py has 401 lines", "b.sql:1 has 111 columns"]

    def test_a_long_function_is_found_and_its_docstring_is_not_counted(self, tmp_path: Path) -> None:
        docstring = '    """' + "\n" * 50 + '    """\n'
        written(tmp_path, {"a.py": "def f():\n" + "    x = 1\n" * 60, "b.py": "def g():\n" + docstring})

        assert list(long_functions(package(tmp_path).values())) == ["a.py: f has 61 lines"]

    def test_too_many_parameters_are_found(self, tmp_path: Path) -> None:
        written(tmp_path, {"a.py": "def f(self, a, b, c, *, d, e, g, h): ...", "b.py": "def f(a, *b): ..."})

        assert list(long_functions(package(tmp_path).values())) == ["a.py: f has 7 parameters"]

    def test_a_script_with_too_many_keys_is_found(self, tmp_path: Path) -> None:
        written(tmp_path, {"a.lua": "".join(f"-- KEYS[{n}] key\n" for n in range(1, 7))})

        assert list(long_scripts(tmp_path.iterdir())) == ["a.lua has 6 keys"]

    def test_a_long_query_is_found(self, tmp_path: Path) -> None:
        written(tmp_path, {"queries.sql": "-- name: a\nSELECT 1;\n\n-- name: b\n" + "SELECT\n" * 51})

        assert list(long_queries(tmp_path.iterdir())) == ["queries.sql: b has 51 lines"]


def test_files_and_lines_are_short() -> None:
    generated = {
        SRC / "migrations" / "schema.sql",
        *(ROOT / "tests" / "stores" / "upgrades").glob("[0-9]*.sql"),
    }

    assert_no_violations(
        long_files(path for path in files(".py", ".sql", ".lua", ".sh") if path not in generated)
    )


def test_functions_are_short_and_take_little() -> None:
    assert_no_violations(long_functions([*package().values(), *scripts()]))


def test_scripts_are_short() -> None:
    assert_no_violations(long_scripts(files(".lua")))


def test_queries_are_short() -> None:
    assert_no_violations(long_queries(path for path in files(".sql") if path.name == "queries.sql"))
