"""A tree of this codebase as tools/codebase_figures.py reads it. Only reads files."""

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef
Value = int | float | None


@dataclass(frozen=True)
class Figure:
    value: Value
    places: list[str] = field(default_factory=list)  # printed with --verbose


def counted(places: Iterable[str]) -> Figure:
    found = sorted(places)
    return Figure(len(found), found)


@dataclass(frozen=True)
class Module:
    path: Path
    parts: tuple[str, ...]  # below src/holdfast

    @cached_property
    def text(self) -> str:
        return self.path.read_text()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def short(self) -> str:
        return "/".join(self.parts)

    @property
    def folder(self) -> str:
        """The top-level folder; "" for a root module such as app.py."""
        return self.parts[0] if len(self.parts) > 1 else ""

    @property
    def name(self) -> str:
        return ".".join(("holdfast", *self.parts)).removesuffix(".py").removesuffix(".__init__")

    def nodes(self) -> Iterator[ast.AST]:
        return ast.walk(self.tree)

    @cached_property
    def functions(self) -> list[Function]:
        return [node for node in self.nodes() if isinstance(node, Function)]

    @cached_property
    def line_kinds(self) -> tuple[set[int], set[int]]:
        """Numbers of the lines that have code, and of those that have a comment."""
        code: set[int] = set()
        comments: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type == tokenize.COMMENT:
                comments.add(token.start[0])
            elif token.string.strip():
                code.update(range(token.start[0], token.end[0] + 1))
        return code, comments


@dataclass(frozen=True)
class Tree:
    root: Path
    hold_trace: Path | None = None

    @property
    def src(self) -> Path:
        return self.root / "src" / "holdfast"

    @cached_property
    def modules(self) -> list[Module]:
        return [Module(path, path.relative_to(self.src).parts) for path in sorted(self.src.rglob("*.py"))]
