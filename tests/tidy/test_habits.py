"""Habits that are easy to promise and easy to lose: no mocks, no swallowed errors, no SQL in strings."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT, Module, assert_no_violations, files, package, scripts, short, written

MOCKS = {"unittest.mock", "mock", "pytest_mock"}
SKIPS = {"skip", "skipif", "xfail", "importorskip"}
# A statement, not a word: "select a seat" is English.
SQL = re.compile(
    r"\b(SELECT\s.+\sFROM|INSERT\s+INTO|DELETE\s+FROM|UPDATE\s+\w+\s+SET|CREATE\s+TABLE)\b", re.DOTALL
)
LOOSE_END = re.compile(r"\^(?:[^\\\n]|\\.)*\$")  # from ^ to a $ that is not escaped, in one line
MESSAGE_ID = re.compile(r'^msgid "(.+)"$', re.MULTILINE)
LUA = re.compile(r"\bredis\.p?call\(")


def pretence(modules: Iterable[Module]) -> Iterator[str]:
    """Tests that mock, patch or skip: they pass without having looked."""
    for module in modules:
        for source, _ in module.imports:
            if source in MOCKS:
                yield f"{short(module.path)} imports {source}"
        for node in module.nodes:
            if isinstance(node, ast.arg) and node.arg in {"monkeypatch", "mocker"}:
                yield f"{short(module.path)}:{node.lineno} uses {node.arg}"
            elif isinstance(node, ast.Attribute) and node.attr in SKIPS and "pytest" in ast.unparse(node):
                yield f"{short(module.path)}:{node.lineno} uses {ast.unparse(node)}"


def imports_from_tests(modules: Iterable[Module]) -> Iterator[str]:
    """Helpers shared by tests live in tests/support, so that a test module can be renamed or split freely."""
    for module in modules:
        for source, name in module.imports:
            if any(part.startswith("test_") for part in (*source.split("."), name)):
                yield f"{short(module.path)} imports {name or 'all'} from {source}: move it to tests/support"


def swallowed_errors(modules: Iterable[Module]) -> Iterator[str]:
    """`except Exception: pass` hides the bug that everybody will look for."""
    for module in modules:
        for node in module.nodes:
            if not isinstance(node, ast.ExceptHandler):
                continue
            caught = ast.unparse(node.type) if node.type else "everything"
            silent = all(isinstance(line, ast.Pass | ast.Continue) for line in node.body)
            if silent and caught in {"everything", "Exception", "BaseException"}:
                yield f"{short(module.path)}:{node.lineno} swallows {caught}"


def loose_pattern_ends(modules: Iterable[Module]) -> Iterator[str]:
    """`$` also matches before a final newline. A field's pattern ends with `$(?!\\n)`, which is valid in JSON
    Schema, too; others end with `\\Z`, or with `$` and re.MULTILINE."""
    for module in modules:
        by_line = {
            id(part)
            for call in module.nodes
            if isinstance(call, ast.Call) and "MULTILINE" in ast.unparse(call)
            for part in ast.walk(call)
        }
        for node in module.nodes:
            if not isinstance(node, ast.Constant) or id(node) in by_line:
                continue
            text = node.value.decode("latin-1") if isinstance(node.value, bytes) else node.value
            if isinstance(text, str) and LOOSE_END.fullmatch(text):
                yield f"{short(module.path)}:{node.lineno} has a pattern that ends with $"


def sql_and_lua_in_strings(modules: Iterable[Module]) -> Iterator[str]:
    for module in modules:
        docstrings = {id(text) for text in docstrings_of(module)}
        for node in module.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                if SQL.search(node.value):
                    yield f"{short(module.path)}:{node.lineno} has SQL in a string: it belongs in a .sql file"
                if LUA.search(node.value):
                    yield f"{short(module.path)}:{node.lineno} has Lua in a string: it belongs in a .lua file"


def docstrings_of(module: Module) -> Iterator[ast.Constant]:
    for node in module.nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield first.value


def silent_files(modules: Iterable[Module]) -> Iterator[str]:
    """A module opens with what it is for."""
    for module in modules:
        if module.text.strip() and not ast.get_docstring(module.tree):
            yield f"{short(module.path)} does not say what it is for"


def unfinished(paths: Iterable[Path]) -> Iterator[str]:
    # Written apart, so that this file does not find itself.
    marks = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|HA" + r"CK)\b")
    for path in paths:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if marks.search(line):
                yield f"{short(path)}:{number} {line.strip()}"


def repeated_texts(catalogues: Iterable[Path]) -> Iterator[str]:
    """Of two texts with the same id in a catalogue, one is never shown."""
    for path in catalogues:
        counts = Counter(MESSAGE_ID.findall(path.read_text()))
        yield from (f"{short(path)} has {name} {count} times" for name, count in counts.items() if count > 1)


def of(root: Path, text: str) -> list[Module]:
    return list(package(written(root, {"a.py": text})).values())


class TestTheRulesCanFail:
    @pytest.mark.parametrize(
        "text",
        [
            "from unittest.mock import Mock",
            "def test_x(monkeypatch): ...",
            "import pytest\n@pytest.mark.skip\ndef test_x(): ...",
        ],
    )
    def test_pretence_is_found(self, tmp_path: Path, text: str) -> None:
        assert len(list(pretence(of(tmp_path, text)))) == 1

    @pytest.mark.parametrize(
        "text",
        [
            "from tests.journeys.test_cli import free_port",
            "from tests.journeys import test_cli",
            "import tests.journeys.test_cli",
        ],
    )
    def test_an_import_from_a_test_module_is_found(self, tmp_path: Path, text: str) -> None:
        assert len(list(imports_from_tests(of(tmp_path, text)))) == 1

    def test_an_import_from_a_support_module_is_allowed(self, tmp_path: Path) -> None:
        assert list(imports_from_tests(of(tmp_path, "from tests.support.wait import until"))) == []

    def test_a_swallowed_error_is_found_and_a_named_one_is_not(self, tmp_path: Path) -> None:
        text = "try: ...\nexcept Exception: pass\ntry: ...\nexcept KeyError: pass"

        assert list(swallowed_errors(of(tmp_path, text))) == ["a.py:2 swallows Exception"]

    def test_a_pattern_that_lets_a_final_newline_through_is_found(self, tmp_path: Path) -> None:
        text = r"""
Name = Meta(pattern=r"^[a-z]+$")
FILE = re.compile(rb"^\w+$")
GOOD = (r"^[a-z]+$(?!\n)", re.compile(r"^a\Z"), re.compile("^a$", re.MULTILINE), r"^a\$", "^x", "1$")
"""

        assert sorted(loose_pattern_ends(of(tmp_path, text))) == [
            "a.py:2 has a pattern that ends with $",
            "a.py:3 has a pattern that ends with $",
        ]

    def test_sql_in_a_string_is_found_and_english_is_not(self, tmp_path: Path) -> None:
        text = '"""UPDATE booking SET x"""\nq = "SELECT id FROM booking"\nw = "select a seat from the map"'

        assert len(list(sql_and_lua_in_strings(of(tmp_path, text)))) == 1

    def test_a_file_without_a_word_is_found(self, tmp_path: Path) -> None:
        assert list(silent_files(of(tmp_path, "x = 1"))) == ["a.py does not say what it is for"]

    def test_a_mark_is_found(self, tmp_path: Path) -> None:
        written(tmp_path, {"a.py": "x = 1  # TO" + "DO later"})

        assert len(list(unfinished(tmp_path.iterdir()))) == 1

    def test_a_text_that_is_there_twice_is_found(self, tmp_path: Path) -> None:
        texts = [f'msgid "{name}"\nmsgstr "x"\n' for name in ("shell.a", "shell.b", "shell.a")]
        written(tmp_path, {"messages.po": 'msgid ""\nmsgstr ""\n' + "\n".join(texts)})

        assert list(repeated_texts(tmp_path.iterdir())) == ["messages.po has shell.a 2 times"]


def test_tests_do_not_pretend() -> None:
    assert_no_violations(pretence(scripts()))


def test_tests_share_helpers_through_support_modules_only() -> None:
    assert_no_violations(imports_from_tests(scripts()))


def test_no_error_is_swallowed() -> None:
    assert_no_violations(swallowed_errors([*package().values(), *scripts()]))


def test_sql_and_lua_have_files_of_their_own() -> None:
    assert_no_violations(sql_and_lua_in_strings([*package().values(), *package(ROOT / "examples").values()]))


def test_every_module_says_what_it_is_for() -> None:
    assert_no_violations(silent_files([*package().values(), *scripts()]))


def test_nothing_is_left_for_later() -> None:
    assert_no_violations(unfinished(files(".py", ".sql", ".lua", ".sh")))


def test_no_pattern_lets_a_final_newline_through() -> None:
    assert_no_violations(loose_pattern_ends(package().values()))


def test_every_text_is_there_once() -> None:
    assert_no_violations(repeated_texts(files(".po")))
