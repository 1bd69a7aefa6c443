"""The project's own files, as the tidy tests read them.

Every rule is a function from files to complaints, so that it can be tried on a small tree that breaks it:
a rule that cannot fail is useless.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "holdfast"
NOT_OURS = {
    ".git",
    ".venv",
    ".holdfast",
    ".holdfast-gate",
    "__pycache__",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
}
NOT_OURS |= {".hypothesis", "results", "build", "dist"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One Python file of the package, by its dotted name without `holdfast.`: `holds.store`, `config`."""

    path: Path
    name: str

    @cached_property
    def text(self) -> str:
        return self.path.read_text()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree; walked once for all rules."""
        return tuple(ast.walk(self.tree))

    @property
    def folder(self) -> str:
        """The subject it belongs to, or "" for a file directly in the package."""
        return self.name.split(".")[0] if "." in self.name or self.is_package else ""

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def is_front(self) -> bool:
        """Is it the __init__ of a subject: what the others may see of it?"""
        return self.is_package and self.name == self.folder

    @property
    def stem(self) -> str:
        return self.path.stem

    def functions(self) -> Iterator[Function]:
        for node in self.nodes:
            if isinstance(node, Function):
                yield node

    @cached_property
    def imports(self) -> tuple[tuple[str, str], ...]:
        """(module, name) of every import that runs; name is "" for `import module`.

        Relative ones are spelt out; those under TYPE_CHECKING are left out: they connect types only.
        """
        return tuple(self._read_imports())

    def _read_imports(self) -> Iterator[tuple[str, str]]:
        for node in running(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield alias.name, ""
            elif isinstance(node, ast.ImportFrom):
                source = self._absolute(node)
                for alias in node.names:
                    yield source, alias.name

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        here = ["holdfast", *self.name.split(".")]
        drop = node.level - 1 if self.is_package else node.level
        return ".".join([*here[: len(here) - drop], *([node.module] if node.module else [])])


def running(tree: ast.AST) -> Iterator[ast.stmt]:
    """Every statement of a module but those under `if TYPE_CHECKING:`."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                continue
            if isinstance(node, ast.stmt):
                yield node
            if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):  # nothing else has statements
                waiting.append(node)


@cache
def package(src: Path = SRC) -> dict[str, Module]:
    """Every module of a package folder by name. The package's own __init__ is "". Read once a run."""
    found = {}
    for path in sorted(src.rglob("*.py")):
        parts = list(path.relative_to(src).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        name = ".".join(parts)
        found[name] = Module(path, name)
    return found


@cache
def scripts() -> tuple[Module, ...]:
    """Every Python file that is not of the package: tests, tools, bench, lab."""
    return tuple(Module(path, path.stem) for path in files(".py") if not path.is_relative_to(ROOT / "src"))


def files(*suffixes: str, root: Path = ROOT) -> Iterator[Path]:
    """The project's files with these suffixes (all, when none is given), without what recipes make."""
    for path in sorted(root.iterdir()):
        if path.name in NOT_OURS or path.name.endswith(".egg-info"):
            continue
        if path.is_dir():
            yield from files(*suffixes, root=path)
        elif not suffixes or path.suffix in suffixes:
            yield path


def written(root: Path, tree: dict[str, str]) -> Path:
    """A small project on disk, for trying a rule on."""
    for name, text in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def short(path: Path, root: Path = ROOT) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else path.name


def assert_no_violations(complaints: Iterable[str]) -> None:
    """Raise one error with all complaints, so that all can be fixed at once."""
    if found := sorted(set(complaints)):
        raise AssertionError("\n" + "\n".join(found))
