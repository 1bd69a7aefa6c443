"""docs/attacks.md: every attack has a test that exists, or says why it cannot apply."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.tree import ROOT, Module, assert_no_violations, package

PAGE = ROOT / "docs" / "attacks.md"
ATTACKS = 47
ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)((?:::\w+)*)`")
CANNOT = "Cannot apply: "
LOCKED = re.compile(r"^([\w.-]+)==\S+ .*?(?=^[\w.-]+==|\Z)", re.MULTILINE | re.DOTALL)
# Names of what only its owner may know, or only its author can make.
SECRET = re.compile(r"(?:^|_)(?:mac|hmac|signature|seal|digest|secret)$")


def test_every_attack_has_a_test_or_a_reason() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = {int(number): tests for number, _, tests in ROW.findall(text)}
    named = {number: TEST.findall(tests) for number, tests in rows.items()}
    without = [number for number, tests in rows.items() if tests.startswith(CANNOT)]
    print(f"\nattacks: {len(rows)}, with a test: {len(rows) - len(without)}, cannot apply: {len(without)}")
    print(f"tests named: {len({test for tests in named.values() for test in tests})}")

    assert sorted(rows) == list(range(1, ATTACKS + 1))
    assert [number for number in rows if number not in without and not named[number]] == []
    assert_no_violations(missing_tests(text, ROOT))


def test_signatures_are_compared_in_constant_time() -> None:
    assert_no_violations(hasty_comparisons(package()))


def test_every_dependency_is_locked_with_a_hash() -> None:
    for name in ("run.txt", "dev.txt"):
        text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
        locked = LOCKED.finditer(text)
        assert [found[1] for found in locked if "--hash=sha256:" not in found[0]] == [], name
        assert len(LOCKED.findall(text)) == len(re.findall(r"^[\w.-]+(?:\[\S+\])?==", text, re.MULTILINE)), (
            name
        )


class TestTheRulesCanFail:
    def test_a_test_that_is_not_there_is_found(self, tmp_path: Path) -> None:
        (tmp_path / "tests").mkdir()
        (tmp_path / "tests" / "test_x.py").write_text("class TestA:\n    def test_b(self): ...\n")
        good, bad = "`tests/test_x.py::TestA::test_b`", "`tests/test_x.py::TestA::test_c` `tests/test_y.py`"

        assert list(missing_tests(good, tmp_path)) == []
        assert len(list(missing_tests(bad, tmp_path))) == 2

    def test_a_hasty_comparison_is_found(self) -> None:
        found = [comparison for comparison in map(is_hasty, comparisons("given == self._mac")) if comparison]
        fine = [each for each in map(is_hasty, comparisons("digest is None or kind == 'seal'")) if each]

        assert (len(found), fine) == (1, [])


def missing_tests(text: str, root: Path) -> Iterator[str]:
    known: dict[str, set[str]] = {}
    for path, inner in TEST.findall(text):
        if path not in known:
            file = root / path
            known[path] = names_in(ast.parse(file.read_text(encoding="utf-8"))) if file.exists() else set()
            if not file.exists():
                yield f"docs/attacks.md names {path}, which does not exist"
                continue
        if inner and inner.removeprefix("::") not in known[path]:
            yield f"docs/attacks.md names {path}{inner}, which does not exist"


def names_in(tree: ast.Module) -> set[str]:
    """Of tests and classes, as pytest writes them."""
    found = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            functions = (
                each for each in node.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
            )
            found |= {f"{node.name}::{each.name}" for each in functions}
    return found


def hasty_comparisons(modules: dict[str, Module]) -> Iterator[str]:
    """With == the time of a comparison says how much of a guess was right."""
    for name, module in modules.items():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Compare) and is_hasty(node):
                yield f"{name}:{node.lineno} compares a secret with ==: use hmac.compare_digest"


def comparisons(source: str) -> list[ast.Compare]:
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Compare)]


def is_hasty(node: ast.Compare) -> bool:
    sides = [node.left, *node.comparators]
    if any(isinstance(side, ast.Constant) for side in sides):
        return False
    return any(isinstance(each, (ast.Eq, ast.NotEq)) for each in node.ops) and any(map(names_a_secret, sides))


def names_a_secret(node: ast.expr) -> bool:
    while isinstance(node, ast.Call):
        node = node.func
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return bool(SECRET.search(name))
