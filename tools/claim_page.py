"""docs/claim_api.md: every name of holdfast.claim, from its source. `make docs` writes it."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from holdfast import claim, errors
from holdfast.claim import claim as values
from holdfast.claim import pool, pools, store
from holdfast.engines import errors as engine_errors

GROUPS = {
    "Front": ("connect", "Pools", "Pool"),
    "Outcomes": ("PoolOutcome", "Claimed", "UnitsTaken", "NotEnoughUnits", "LimitReached", "PoolClosed"),
    "Values": ("Claim", "Contents", "PoolMap", "Change", "PoolId", "FREE", "CLAIMED", "COMMITTED", "BLOCKED"),
    "Errors": ("EngineDown", "Busy"),
    "Below the front": (
        *("Claims", "ClaimRequest", "ClaimOutcome", "MapMissing", "Settlement", "Action"),
        *("Blueprint", "pool_keys"),
    ),
}
# Where each name is written. Aliases and constants have no source of their own to inspect.
MODULES: tuple[ModuleType, ...] = (pools, pool, values, store, engine_errors, errors)
OPENING = """# API of holdfast.claim

Generated from the code by `make docs`, for version {version}. Tutorial and promises: [claim.md](claim.md).
All times are seconds; units and owners are numbers from 0. Every method raises `EngineDown` while Redis is
away, and `Busy` if 20,000 calls of the pool wait already; a wrong argument is a `ValueError`. `Load` is a
function without parameters whose result is awaited and is `Contents`. `ClaimOptions` are the keyword
arguments `limit` and `claim_id` of `claim`.
"""


def claim_api() -> str:
    names = [name for group in GROUPS.values() for name in group]
    assert sorted(names) == sorted(claim.__all__), "a public name is missing here, or is not public"
    parts = [OPENING.format(version=claim.__version__)]
    for title, group in GROUPS.items():
        parts.append(f"## {title}\n")
        parts += [describe(name) for name in group]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts))


def describe(name: str) -> str:
    for module in MODULES:
        source = Path(inspect.getfile(module)).read_text()
        for node in ast.parse(source).body:
            if name in names_of(node):
                return "\n".join(lines_for(name, node, source.splitlines())) + "\n"
    raise LookupError(f"{name} is in none of the modules")


def names_of(node: ast.stmt) -> set[str]:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
            return {name}
        case ast.Assign(targets=targets):
            return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return set()


def lines_for(name: str, node: ast.stmt, source: list[str]) -> Iterator[str]:
    match node:
        case ast.ClassDef():
            yield f"### {name}\n"
            yield from paragraphs(node)
            yield from fields(node, source)
            for part in node.body:
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and not part.name.startswith("_"):
                    yield f"`{signature(part)}`\n"
                    yield from paragraphs(part)
        case ast.FunctionDef():
            yield f"### {name}\n\n`{signature(node)}`\n"
            yield from paragraphs(node)
        case ast.Assign(value=value):
            constant = getattr(claim, name)
            shown = f"{constant} ({chr(constant)})" if isinstance(constant, int) else ast.unparse(value)
            yield f"### {name}\n\n`{name} = {shown}`"


def paragraphs(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    if text := ast.get_docstring(node):
        yield re.sub(r"(?<!\n)\n(?!\n)", " ", text) + "\n"


def fields(node: ast.ClassDef, source: list[str]) -> Iterator[str]:
    found = [part for part in node.body if isinstance(part, ast.AnnAssign)]
    for part in found:
        default = f" = {ast.unparse(part.value)}" if part.value else ""
        comment = source[part.lineno - 1].partition("  # ")[2]
        yield f"- `{ast.unparse(part.target)}: {ast.unparse(part.annotation)}{default}`" + (
            f": {comment}" if comment else ""
        )
    if found:
        yield ""


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    arguments = ast.unparse(node.args).removeprefix("self, ").removeprefix("self").removeprefix("cls, ")
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    is_property = any(ast.unparse(each) == "property" for each in node.decorator_list)
    returns = ast.unparse(node.returns).strip("'") if node.returns else ""
    return f"{node.name} -> {returns}" if is_property else f"{prefix}{node.name}({arguments}) -> {returns}"
