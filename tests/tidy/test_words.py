"""VOCABULARY.md is meant: the words it rules out are in no name that we give."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.tidy.tree import ROOT, SRC, Module, files, nobody_complains, package, short, written

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
CODE = re.compile(r"`([a-z_]+)`")
COLUMN = re.compile(r"^ {4}([a-z_]+) +[a-z]", re.MULTILINE)
TABLE = re.compile(r"^CREATE (?:TABLE|TYPE|SEQUENCE|FUNCTION|UNIQUE INDEX|INDEX) ([a-z_]+)", re.MULTILINE)


@dataclass(frozen=True)
class Banned:
    words: frozenset[str]
    verbs: tuple[str, ...]  # as the beginning of a function's name


def banned(text: str) -> Banned:
    """What a vocabulary rules out: the last column of its table, what "says nothing", what comes "never"."""
    words: set[str] = set()
    verbs: list[str] = []
    for line in text.splitlines():
        if line.startswith("| **"):
            words |= set(CODE.findall(line.rsplit("|", 2)[1]))
        elif "says nothing:" in line:
            verbs += CODE.findall(line.split("says nothing:")[1])
        elif "never" in line:
            words |= set(CODE.findall(line.split("never")[1]))
    return Banned(frozenset(words), tuple(verbs))


def names(module: Module) -> Iterator[tuple[int, str]]:
    """Every name this file gives to something, with its line; names it only uses belong to others."""
    for node in ast.walk(module.tree):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr


def words_of(name: str) -> set[str]:
    return {word.lower() for word in WORD.findall(name)}


def ruled_out(modules: Iterable[Module], by: Banned) -> Iterator[str]:
    for module in modules:
        for word in words_of(module.stem) & by.words:
            yield f"{short(module.path)} is called {word!r}"
        for line, name in names(module):
            for word in words_of(name) & by.words:
                yield f"{short(module.path)}:{line} {name}: VOCABULARY.md has another word for {word!r}"
        for function in module.functions():
            if function.name.lstrip("_").startswith(by.verbs):
                yield f"{short(module.path)}:{function.lineno} {function.name} does not say what it does"


def ruled_out_in_sql(paths: Iterable[Path], by: Banned) -> Iterator[str]:
    for path in paths:
        text = path.read_text()
        for name in [*COLUMN.findall(text), *TABLE.findall(text)]:
            for word in words_of(name) & by.words:
                yield f"{short(path)} {name}: VOCABULARY.md has another word for {word!r}"


class TestTheRulesCanFail:
    vocabulary = "| **hold** | seats | `cart`; lock |\n\nsays nothing: `handle_`.\n\n- never `cfg`."

    def test_a_vocabulary_is_read(self) -> None:
        assert banned(self.vocabulary) == Banned(frozenset({"cart", "cfg"}), ("handle_",))

    def test_words_are_found_inside_names_and_only_in_ours(self, tmp_path: Path) -> None:
        text = (
            "class HTTPCart: ...\ndef f(old_cart): ...\ncfg = 1\ncartoon = other.cart\ndef _handle_it(): ..."
        )
        written(tmp_path, {"a.py": text, "cart.py": ""})

        found = list(ruled_out(package(tmp_path).values(), banned(self.vocabulary)))

        assert [line.split(" ")[0] for line in found] == ["a.py:1", "a.py:3", "a.py:2", "a.py:5", "cart.py"]

    def test_a_column_is_found(self, tmp_path: Path) -> None:
        written(tmp_path, {"0001_a.sql": "CREATE TABLE cart (\n    id bigint,\n    cart_id bigint\n);"})

        assert len(list(ruled_out_in_sql(tmp_path.iterdir(), banned(self.vocabulary)))) == 2


def test_there_is_something_to_look_for() -> None:
    by = banned((ROOT / "VOCABULARY.md").read_text())

    assert len(by.words) > 30
    assert len(by.verbs) >= 5


def test_names_use_the_one_word_there_is() -> None:
    by = banned((ROOT / "VOCABULARY.md").read_text())
    # The engines have no word of ticketing: a user there is the operating system's, and rightly so.
    modules = [module for module in package().values() if module.folder != "engines"]

    nobody_complains([*ruled_out(modules, by), *ruled_out_in_sql(files(".sql", root=SRC / "migrations"), by)])
