"""Docs that can be wrong are checked: generated pages, links, commands, settings, routes, dependencies."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from holdfast.config import Config
from holdfast.layouts import Layout
from holdfast.layouts.import_file import parse_layout_file
from holdfast.routes import ROUTES
from holdfast.web.audiences import DOCUMENTS
from tests.tidy.known_names import setting_names
from tests.tidy.markdown_pages import anchors, links
from tests.tidy.tree import ROOT, SRC, assert_no_violations, files, short, written
from tools.write_docs import every_command, pages

GENERATED = pages()
PROSE = [path for path in files(".md") if path not in GENERATED]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))


@pytest.mark.parametrize("path", GENERATED, ids=short)
def test_a_generated_page_is_up_to_date(path: Path) -> None:
    assert path.exists(), "run `make docs`"
    assert path.read_text() == GENERATED[path], "run `make docs`"


def broken_links(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        for target in links(path):
            name, _, anchor = target.partition("#")
            there = path.parent / name if name else path
            if "://" in target or target.startswith("mailto:"):
                continue
            if not there.exists():
                yield f"{short(path)} links to {name}, which is not there"
            elif anchor and anchor not in anchors(there):
                yield f"{short(path)} links to {target}, and that page has no such heading"


def unlisted_pages(index: Path, root: Path) -> Iterator[str]:
    """Pages that the index does not lead to, and that the navigation of the site would lack."""
    listed = {(index.parent / target.partition("#")[0]).resolve() for target in links(index)}
    for path in [*sorted(root.glob("*.md")), *files(".md", root=index.parent)]:
        if path != index and not {path, path.parent} & listed:
            yield f"{short(path, root)} is not in {short(index, root)}"


def missing_files(paths: Iterable[Path], src: Path) -> Iterator[str]:
    """`holds/store`, `claim/pool.lua`: names of files by folder, wherever one of our folders is named."""
    folders = {path.name for path in src.iterdir() if path.is_dir()}
    for path in paths:
        for folder, name in re.findall(r"(?<![\w/.-])([a-z]+)/([\w/]+(?:\.\w+)?)", path.read_text()):
            if folder in folders and not any((src / folder / f"{name}{end}").exists() for end in ("", ".py")):
                yield f"{short(path)}: there is no {folder}/{name}"


def missing_pages(sources: Iterable[Path], root: Path = ROOT) -> Iterator[str]:
    """Pages that code sends people to."""
    for path in sources:
        for page in re.findall(r"docs/[\w/-]+\.md", path.read_text()):
            if not (root / page).exists():
                yield f"{short(path)} sends people to {page}, which is not there"


def unknown_recipes(paths: Iterable[Path], makefile: str) -> Iterator[str]:
    known = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    for path in paths:
        for name in re.findall(r"(?:^|`)make ([a-z]+)", path.read_text(), re.MULTILINE):
            if name not in known:
                yield f"{short(path)}: there is no `make {name}`"


def unknown_commands(paths: Iterable[Path], known: set[str]) -> Iterator[str]:
    """`holdfast word …` in code; of a group, its second word too."""
    for path in paths:
        for words in re.findall(
            r"(?:^|`|bin/)holdfast ((?:[a-z]+(?:-[a-z]+)* ?)+)", path.read_text(), re.MULTILINE
        ):
            parts = words.split()
            if parts[0] not in known and " ".join(parts[:2]) not in known:
                yield f"{short(path)}: there is no `holdfast {words.strip()}`"


def unknown_settings(paths: Iterable[Path], known: Iterable[str]) -> Iterator[str]:
    names = {f"HOLDFAST_{name.upper()}" for name in known}
    for path in paths:
        for name in re.findall(r"HOLDFAST_[A-Z_]+[A-Z]", path.read_text()):
            if name not in names:
                yield f"{short(path)}: there is no setting {name}"


def unknown_paths(paths: Iterable[Path], known: Iterable[str]) -> Iterator[str]:
    """Addresses of the API in the prose; `{…}` and `$…` stand for anything."""
    shapes = {tuple(shape(part) for part in path.split("/")) for path in known}
    for path in paths:
        for found in re.findall(r"/api/v1(/[\w{}$/.:-]+)", path.read_text()):
            if tuple(shape(part) for part in found.rstrip(".").split("/")) not in shapes:
                yield f"{short(path)}: nothing is served at {found}"


def shape(part: str) -> str:
    return "*" if part.startswith(("{", "$")) or part.isdigit() else part


def dependencies_without_a_line(pyproject: str, record: str) -> Iterator[str]:
    project = tomllib.loads(pyproject)
    wanted = [*project["project"]["dependencies"]]
    for group in project.get("dependency-groups", {}).values():
        wanted += group
    names = {re.split(r"[\s;<>=\[]", one)[0] for one in wanted}
    lines = set(re.findall(r"^\| `([\w-]+)` \|", record, re.MULTILINE))
    for name in names - lines:
        yield f"{name} is a dependency and has no line in docs/decisions"
    for name in lines - names:
        yield f"{name} has a line in docs/decisions and is not a dependency"


def odd_decisions(paths: list[Path]) -> Iterator[str]:
    for number, path in enumerate(paths, 1):
        text = path.read_text()
        if not path.name.startswith(f"{number:04}-"):
            yield f"{path.name} is decision {number}"
        if not text.startswith(f"# {path.name[:4]} "):
            yield f"{path.name} does not open with its number and the decision"
        for part in ("**Therefore**", "**We gave up**", "**Would change our mind**"):
            if part not in text:
                yield f"{path.name} does not say {part}"
        if len(text.splitlines()) > 60:
            yield f"{path.name} is longer than a page"


VOCABULARY_ROWS_MAX = 25


def words_beyond_the_limit(vocabulary: str) -> list[str]:
    """Rows of the table that are too many: a project with more private words needs a dictionary."""
    return re.findall(r"^\| \*\*(.+?)\*\* \|", vocabulary, re.MULTILINE)[VOCABULARY_ROWS_MAX:]


class TestTheRulesCanFail:
    def test_a_broken_link_is_found(self, tmp_path: Path) -> None:
        text = (
            "# A\n\n[b](b.md#the-b-c) [c](c.md#part) [d](https://example.com#x) [a](#a) [e](#e) [f](b.md#f)"
        )
        written(tmp_path, {"a.md": text, "b.md": "# The B: `c`"})

        assert list(broken_links([tmp_path / "a.md"])) == [
            "a.md links to c.md, which is not there",
            "a.md links to #e, and that page has no such heading",
            "a.md links to b.md#f, and that page has no such heading",
        ]

    def test_a_page_that_the_index_lacks_is_found(self, tmp_path: Path) -> None:
        pages = {"docs/a.md": "", "docs/b.md": "", "docs/more/c.md": "", "D.md": "", "tests/e.md": ""}
        written(tmp_path, {**pages, "docs/README.md": "[a](a.md) [c](more)"})

        found = list(unlisted_pages(tmp_path / "docs" / "README.md", tmp_path))

        assert found == ["D.md is not in docs/README.md", "docs/b.md is not in docs/README.md"]

    def test_a_file_and_a_page_that_are_not_there_are_found(self, tmp_path: Path) -> None:
        written(
            tmp_path,
            {"holds/store.py": "see docs/gone.md", "a.md": "holds/store, holds/none, and/or, x/holds/y"},
        )

        assert list(missing_files([tmp_path / "a.md"], tmp_path)) == ["a.md: there is no holds/none"]
        assert len(list(missing_pages([tmp_path / "holds" / "store.py"], tmp_path))) == 1

    def test_a_recipe_a_command_a_setting_and_a_path_that_are_not_there_are_found(
        self, tmp_path: Path
    ) -> None:
        text = "`make magic` and `holdfast fly --high` with HOLDFAST_WINGS_MAX at /api/v1/shows/7/sky"
        written(tmp_path, {"a.md": text})
        paths = [tmp_path / "a.md"]

        assert len(list(unknown_recipes(paths, "demo:\n"))) == 1
        assert len(list(unknown_commands(paths, {"demo"}))) == 1
        assert len(list(unknown_settings(paths, {"wings"}))) == 1
        assert len(list(unknown_paths(paths, {"/shows/{show:int}"}))) == 1

    def test_those_that_are_there_are_not(self, tmp_path: Path) -> None:
        text = (
            "`make demo` and `holdfast venue import FILE` with HOLDFAST_WINGS at /api/v1/shows/$show/holds."
        )
        written(tmp_path, {"a.md": text})
        paths = [tmp_path / "a.md"]

        assert not list(unknown_recipes(paths, "demo:\n"))
        assert not list(unknown_commands(paths, {"venue import"}))
        assert not list(unknown_settings(paths, {"wings"}))
        assert not list(unknown_paths(paths, {"/shows/{show:int}/holds"}))

    def test_a_dependency_without_a_line_and_a_line_without_a_dependency_are_found(self) -> None:
        pyproject = '[project]\ndependencies = ["redis>=5; x == 1", "rich"]'

        assert len(list(dependencies_without_a_line(pyproject, "| `redis` | why |\n| `orm` | no |"))) == 2

    def test_a_decision_without_its_parts_is_found(self, tmp_path: Path) -> None:
        written(tmp_path, {"0002-x.md": "# 0002 X\n\n**Therefore** y. **We gave up** z."})

        assert len(list(odd_decisions([tmp_path / "0002-x.md"]))) == 2

    def test_a_word_too_many_is_found(self) -> None:
        rows = [f"| **word{row}** | meaning |" for row in range(VOCABULARY_ROWS_MAX + 1)]

        assert words_beyond_the_limit("\n".join(rows)) == [f"word{VOCABULARY_ROWS_MAX}"]


def test_links_lead_somewhere() -> None:
    assert_no_violations(broken_links([*PROSE, *(path for path in GENERATED if path.suffix == ".md")]))


def test_every_page_is_in_the_index() -> None:
    assert_no_violations(unlisted_pages(ROOT / "docs" / "README.md", ROOT))


def test_files_named_in_the_prose_exist() -> None:
    assert_no_violations(missing_files(PROSE, SRC))


def test_pages_named_in_the_code_exist() -> None:
    assert_no_violations(missing_pages(files(".py", ".sql", ".lua", root=SRC)))


def test_recipes_commands_and_settings_in_the_prose_exist() -> None:
    known = {name.removeprefix("holdfast ") for name, _ in every_command()}

    assert_no_violations(
        [
            *unknown_recipes(PROSE, (ROOT / "Makefile").read_text()),
            *unknown_commands(PROSE, known),
            *unknown_settings(PROSE, setting_names()),
        ]
    )


def test_addresses_in_the_prose_are_served() -> None:
    served = [route.full_path for route in ROUTES] + [about.path for about in DOCUMENTS.values()]

    assert_no_violations(unknown_paths(PROSE, [path.removeprefix("/api/v1") for path in served]))


def test_every_dependency_has_a_reason() -> None:
    record = "".join(path.read_text() for path in DECISIONS)

    assert_no_violations(dependencies_without_a_line((ROOT / "pyproject.toml").read_text(), record))


def test_decisions_are_numbered_and_whole() -> None:
    assert_no_violations(odd_decisions(DECISIONS))


def test_the_vocabulary_is_short() -> None:
    vocabulary = (ROOT / "VOCABULARY.md").read_text()

    assert words_beyond_the_limit(vocabulary) == []
    assert "**ledger**" in vocabulary


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_the_layouts_shown_are_layouts(kind: str) -> None:
    text = (ROOT / "docs" / "layouts.md").read_text()
    [example] = re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)

    assert Layout.build(parse_layout_file(f"hall.{kind}", example.encode())).seat_count > 10


def unlisted_limits(page: str, names: set[str]) -> Iterator[str]:
    """Limits of which the page does not say once whether they count per request, process or house."""
    section = page.partition("## Limits")[2].partition("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    for name in sorted(names):
        count = len(re.findall(rf"`{name}`", "\n".join(table)))
        if count != 1:
            yield f"{name} is {count} times in the table of limits of docs/operating/cluster.md"


def test_the_docs_list_for_whom_each_limit_counts() -> None:
    limits = {field.name for field in fields(Config) if field.name.endswith("_max")}
    page = (ROOT / "docs" / "operating" / "cluster.md").read_text()

    assert_no_violations(unlisted_limits(page, limits))
    assert list(unlisted_limits(page, {"people_max"})) == [
        "people_max is 0 times in the table of limits of docs/operating/cluster.md"
    ]
