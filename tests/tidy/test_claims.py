"""What CHANGELOG.md says is built is named by a test or a module, and no file tells of one machine."""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.tidy.tree import ROOT, SRC, assert_no_violations, files, short, written

REQUIREMENT = re.compile(r"\bR(\d+)\b")
RANGE = re.compile(r"\bR(\d+)[–-]R?(\d+)\b")


def numbers(text: str) -> set[int]:
    """R9, R11–R14 → {9, 11, 12, 13, 14}"""
    spans = {n for first, last in RANGE.findall(text) for n in range(int(first), int(last) + 1)}
    return spans | {int(n) for n in REQUIREMENT.findall(text)}


def named_in(paths: Iterable[Path]) -> set[int]:
    """Requirements in module docstrings and in the names and docstrings of tests."""
    found: set[int] = set()
    for path in paths:
        text = path.read_text()
        if not REQUIREMENT.search(text.replace("_", " ")):
            continue
        tree = ast.parse(text)
        found |= numbers(ast.get_docstring(tree) or "")
        if path.name.startswith("test_"):
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    found |= numbers(f"{node.name.replace('_', ' ')} {ast.get_docstring(node) or ''}")
    return found


HOMES = "|".join(
    ["/ro" + "ot/", "/ho" + "me/", "/Us" + "ers/", "/wo" + "rk/"]
)  # apart, not to find themselves
HOSTS = "|".join(["pyp" + r"i\.org", "python" + r"hosted\.org", "registry" + r"\.npm", "dock" + r"er\.io/"])
OF_ONE_MACHINE = re.compile(rf"(?<![\w.])(?:{HOMES})|fil" + rf"e:///|{HOSTS}")


def of_one_machine(paths: Iterable[Path]) -> Iterator[str]:
    """Absolute paths of one computer, and hosts of package registries."""
    for path in paths:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := OF_ONE_MACHINE.search(line):
                yield f"{short(path)}:{number} has {match[0]}"


def versions(changelog: str) -> list[str]:
    return re.findall(r"^## \[?(\d+\.\d+\.\d+)", changelog, re.MULTILINE)


class TestTheRulesCanFail:
    def test_ranges_are_read(self) -> None:
        assert numbers("(R1, R9–R11) not AR7") == {1, 9, 10, 11}

    def test_only_what_is_named_counts(self, tmp_path: Path) -> None:
        written(
            tmp_path,
            {
                "test_a.py": '"""R1"""\ndef test_b() -> None:\n    """R2."""\n    x = "R3"',
                "c.py": 'def d(): "R4"',
            },
        )

        assert named_in(tmp_path.iterdir()) == {1, 2}

    def test_a_path_of_a_machine_is_found_and_a_url_path_is_not(self, tmp_path: Path) -> None:
        written(tmp_path, {"a.txt": "see /ho" + "me/ann/x", "b.txt": "GET /api/v1/ho" + "me/x"})
        written(tmp_path, {"c.txt": "pyp" + "i.org"})

        assert len(list(of_one_machine(tmp_path.iterdir()))) == 2


def test_what_is_claimed_is_named_by_a_test_or_a_module() -> None:
    claimed = numbers((ROOT / "CHANGELOG.md").read_text())
    named = named_in([*files(".py", root=SRC), *files(".py", root=ROOT / "tests")])

    assert claimed, "the changelog claims nothing"
    assert_no_violations(f"R{n} is claimed in CHANGELOG.md and named nowhere" for n in claimed - named)


def test_the_newest_version_is_the_one_we_are() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert versions((ROOT / "CHANGELOG.md").read_text())[0] == project["version"]


def test_no_file_tells_of_one_machine() -> None:
    pictures = {".png", ".ico", ".woff2", ".pyc"}

    assert_no_violations(of_one_machine(path for path in files() if path.suffix not in pictures))
