"""Every block of code in the docs is run by a test, checked, or marked as not runnable with the reason."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.tidy.block_checks import CHECKS
from tests.tidy.executed_blocks import EXECUTED, GENERATED, executor
from tests.tidy.markdown_pages import Block, blocks
from tests.tidy.tree import ROOT, assert_no_violations, files, written
from tools.docs_recipes import RECIPES, recipe_names

ROW = re.compile(r"^\| \[(\w+\.md)\][^|]*\|[^|]*\| (\d+) \|", re.MULTILINE)  # of docs/operating/executed.md


def unchecked(found: Iterable[Block]) -> Iterator[str]:
    for block in found:
        if block.reason or executor(block):
            continue
        check = CHECKS.get(block.language)
        if check is None:
            yield f"{block.place}: no test runs {block.language or 'a block without a language'}"
        else:
            yield from (f"{block.place}: {complaint}" for complaint in check(block))


def idle_entries(found: Iterable[Block], table: dict[str, str]) -> Iterator[str]:
    """Entries without a block, or whose test is not there or does not name the page."""
    shown = {name for one in found for name in (one.page, f"{one.page}#{one.section}", one.language) if name}
    for entry, test in table.items():
        page = entry.partition("#")[0].rpartition("/")[2] if ".md" in entry else f'"{entry}"'
        if entry not in shown:
            yield f"there is no block of {entry}"
        elif not (ROOT / test).exists() or page not in (ROOT / test).read_text():
            yield f"{test} does not run {entry}"


def unlisted(found: Iterable[Block], table: str) -> Iterator[str]:
    """Blocks of the operating pages that the table lacks, rows without a block, and commands that failed."""
    rows: Counter[str] = Counter()
    for page, blocks_of_row in ROW.findall(table):
        rows[page] += int(blocks_of_row)
    shown = Counter(one.page.rpartition("/")[2] for one in found if one.page.startswith("docs/operating/"))
    for page in sorted(rows.keys() | shown.keys()):
        if rows[page] != shown[page]:
            yield f"{page} has {shown[page]} blocks, executed.md {rows[page]}: python -m tools.run_docs"
    if "**failed**" in table:
        yield "a command in executed.md failed"


def without_recipes(found: Iterable[Block], recipes: Iterable[str]) -> Iterator[str]:
    """Shell blocks of the operating pages that neither a test nor tools/run_docs.py would run."""
    for block in found:
        is_ours = block.page.startswith("docs/operating/") and block.language == "sh"
        if is_ours and not block.reason and not executor(block) and not {*recipe_names(block)} & {*recipes}:
            yield f"{block.place}: add a recipe to tools/docs_recipes.py"


def idle_recipes(found: Iterable[Block], recipes: Iterable[str]) -> Iterator[str]:
    wanted = {name for block in found for name in recipe_names(block)}
    yield from (f"there is no block of {name}" for name in recipes if name not in wanted)


def all_blocks() -> list[Block]:
    return [block for path in files(".md") for block in blocks(path)]


class TestTheRulesCanFail:
    @pytest.mark.parametrize(
        ("language", "text", "complaint"),
        [
            ("", "x", "no test runs a block without a language"),
            ("ruby", "x", "no test runs ruby"),
            ("sh", "if true; then", "syntax error"),
            ("sh", "holdfast fly", "there is no command holdfast fly"),
            ("sh", "holdfast backup create", "Missing argument 'file'"),
            ("sh", "holdfast serve --wings 2", "No such option: --wings"),
            ("sh", "holdfast serve --port 99999", "Invalid value for '--port'"),
            ("sh", "export HOLDFAST_WINGS=2", "no such setting: HOLDFAST_WINGS"),
            ("sh", "HOLDFAST_BATCH_MAX=few holdfast serve", "must be a whole number"),
            ("sh", "make magic", "there is no `make magic`"),
            ("sh", "python -m tools.wings", "there is no module tools.wings"),
            ("sh", "python -m tools.nginx --wings", "tools.nginx has no option --wings"),
            ("sh", "pip install 'holdfast[wings]'", "is not a package of this project"),
            ("sh", "holdfast doctor && sudo reboot", "`sudo` cannot be checked"),
            ("http", "GET /api/v1/sky", "no route serves GET /api/v1/sky"),
            ("http", "PUT /admin/shows", "no route serves PUT /admin/shows"),
            ("http", "GET /admin/bookings?colour=red", "does not read all of ['colour']"),
            ("http", 'POST /api/v1/organisations/42/owner   {"account": 7}', "refuses its body"),
            ("http", "Holdfast-Wings: 2", "no header Holdfast-Wings is read"),
            ("http", "Hello", "neither a request nor a header"),
            ("json", '{"steps": [{"hours": 2}], "keep_fee": true}', "RefundPolicy refuses it"),
            ("json", '{"wings": 2}', "add its type to JSON_TYPES"),
            ("python", "from holdfast.outbox import Wing", "holdfast.outbox has no Wing"),
            ("python", "fly()", "fly is not defined"),
            ("python", "from holdfast.outbox import Consumer\nConsumer(wings=2)", "has no parameter wings"),
            ("po", 'msgid "shell.none"\nmsgstr "None"', "not so in the English catalogue"),
            ("text", "holdfast serve", "a command, not a text"),
            ("text", " 1  GET  /sky   blue", "no route serves GET /sky"),
        ],
    )
    def test_a_wrong_block_is_found(self, tmp_path: Path, language: str, text: str, complaint: str) -> None:
        written(tmp_path, {"a.md": f"# A\n\n```{language}\n{text}\n```\n"})

        (found,) = unchecked(blocks(tmp_path / "a.md", tmp_path))

        assert found.startswith("a.md:3: ")
        assert complaint in found

    def test_a_mark_is_for_the_next_block_only(self, tmp_path: Path) -> None:
        block = "```\nx\n```\n"
        written(tmp_path, {"a.md": f"# A\n\n<!-- not runnable: needs root -->\n\n{block}\n{block}"})

        first, second = blocks(tmp_path / "a.md", tmp_path)

        assert (first.reason, second.reason) == ("needs root", "")
        assert len(list(unchecked([first, second]))) == 1

    def test_an_indented_block_is_found(self, tmp_path: Path) -> None:
        written(tmp_path, {"a.md": "# A\n\ntext\n\n    holdfast fly\n"})

        assert len(list(unchecked(blocks(tmp_path / "a.md", tmp_path)))) == 1

    def test_a_block_that_the_table_lacks_and_a_failed_one_are_found(self) -> None:
        shown = [Block(f"docs/operating/{page}.md", 1, "sh", "", "", "") for page in "aab"]
        rows = [
            "[a.md](a.md#x) x | sh | 1 |",
            "[b.md](b.md) | sh | 1 | **failed** |",
            "[c.md](c.md) | sh | 1 |",
        ]
        table = "".join(f"| {row}\n" for row in rows)

        assert len(list(unlisted(shown, table))) == 3

    def test_a_block_without_a_recipe_and_a_recipe_without_a_block_are_found(self) -> None:
        shown = [Block(f"docs/operating/{page}.md", 1, "sh", "make x", "part", "") for page in "ab"]
        recipes = ["a.md#part make", "b.md#other"]

        assert list(without_recipes(shown, recipes)) == [
            "docs/operating/b.md:1: add a recipe to tools/docs_recipes.py"
        ]
        assert list(idle_recipes(shown, recipes)) == ["there is no block of b.md#other"]

    def test_an_entry_without_a_block_or_a_test_is_found(self) -> None:
        shown = [Block("a.md", 1, "sh", "", "part", ""), Block("b.md", 1, "sh", "", "", "")]
        table = {"a.md#part": "tests/none.py", "b.md": "tests/tidy/tree.py", "c.md": "tests/tidy/tree.py"}

        assert len(list(idle_entries(shown, table))) == 3


def test_every_block_is_executed_checked_or_marked() -> None:
    assert_no_violations(unchecked(all_blocks()))


def test_the_tests_that_run_blocks_exist() -> None:
    assert_no_violations(idle_entries(all_blocks(), EXECUTED))


def test_every_command_of_the_operating_pages_can_be_run() -> None:
    assert_no_violations(without_recipes(all_blocks(), RECIPES))
    assert_no_violations(idle_recipes(all_blocks(), RECIPES))


def test_the_generated_pages_have_blocks() -> None:
    assert GENERATED.keys() <= {block.page for block in all_blocks()}


def test_the_table_of_executed_commands_is_complete() -> None:
    table = (ROOT / "docs" / "operating" / "executed.md").read_text()

    assert_no_violations(unlisted(all_blocks(), table))
