"""Measures of this codebase as a Markdown table: layout, typing, SQL ownership, function sizes, wording.

    python -m tools.codebase_figures                                this repository
    python -m tools.codebase_figures --root DIR --verbose           another tree, with all places
    python -m tools.codebase_figures --before DIR_OR_JSON           measure | before | after | target
    python -m tools.codebase_figures --hold-trace FILE --json FILE  with the list of tools/trace_hold.py

Each measure is a function whose docstring says how it counts.
"""

import argparse
import ast
import json
import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from tools.codebase_sql import reads_across, sql_twice, tables, writes_across
from tools.codebase_tree import Figure, Module, Tree, Value, counted
from tools.codebase_typing import any_uses, unchecked_accesses

BANNED_WORDS: tuple[str, ...] = ("somebody", "nobody", "whoever", "told", "heard", "kept", "meant", "anew")
BANNED_WORDS += ("hearer", "said", "asked", "understood", "wished")
BANNED_WORDS += ("let go", "of ours", "for ever", "is no", "comes near")
ORDINARY = re.compile(r"\bthere is no\b|\bis no longer\b")  # normal English, not the archaic "it is no X"
TEXT = {".py", ".sql", ".lua", ".js", ".css", ".html", ".toml", ".po", ".pot", ".md", ".txt", ".sh"}
TEXT_FOLDERS = ("src", "tests", "docs", "bench", "lab", "tools")
LIST_FILES = {"codebase_figures.py", "test_english.py"}  # they contain the list itself
NOT_OURS = {".venv", "__pycache__", "node_modules", "vendor", "results"}
TRANSLATIONS = {"de", "hi"}

DEEP_ALLOWED = {"gateways", "buses", "embedded"}
DEEP_ALLOWED |= {"templates", "static", "locales", "words", "fonts", "data"}  # folders of assets
ENGINE_NAMES = {"asyncpg", "sqlite3", "redis", "Redis", "postgres", "Postgres", "connection", "Connection"}
ENGINE_NAMES |= {"transaction", "Transaction", "tx", "Queries", "Script"}

# Records that one hold of named seats passes through, from body to answer, by any name they have had. With a
# trace they are read from it, but for the answer: a browser gets a redirect instead.
HOLD_FOLDERS = {"sale", "holds", "claim", "claims", "ledger", "bookings"}
HOLD_RECORDS = {"HoldBody", "Seats", "Order", "Ask", "Held", "Winner", "Opening", "Asked", "Opened", "Sold"}
HOLD_RECORDS |= {"Booking"}
HOLD_ANSWERS = {"SeatPage", "BookingPage"}
HOLD_FILLERS = {"Unbuilt", "MapMissing"}  # stand in for outcomes that are not known yet

# ---- layout


def python_files(tree: Tree) -> Figure:
    """Python files below src/holdfast."""
    return Figure(len(tree.modules))


def by_package(tree: Tree) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for module in tree.modules:
        if len(module.parts) > 1:
            found["/".join(module.parts[:-1])].append(module.parts[-1])
    return found


def packages(tree: Tree) -> Figure:
    """Folders below src/holdfast that hold a Python file."""
    return counted(by_package(tree))


def small_packages(tree: Tree) -> Figure:
    """Packages with at most one module besides __init__.py, and no package inside."""
    found = by_package(tree)
    parents = {name.rpartition("/")[0] for name in found}
    return counted(
        name
        for name, files in found.items()
        if len(set(files) - {"__init__.py"}) <= 1 and name not in parents
    )


def bounded(tree: Tree) -> list[Module]:
    """Modules that the depth limit applies to."""
    return [module for module in tree.modules if not DEEP_ALLOWED & set(module.parts[:-1])]


def depth_max(tree: Tree) -> Figure:
    """Parts of the longest path below src/holdfast (a/b/c.py has 3), with the exceptions of deep_files."""
    return Figure(max(len(module.parts) for module in bounded(tree)))


def deep_files(tree: Tree) -> Figure:
    """Python files with more than 2 parts below src/holdfast, without gateways, buses, embedded, assets."""
    return counted(module.short for module in bounded(tree) if len(module.parts) > 2)


def names_in(module: Module) -> Iterator[str]:
    for node in module.nodes():
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                yield name.split(".")[0]


def idle_stores(tree: Tree) -> Figure:
    """Files called store.py that name no engine, connection, transaction, query file or script."""
    stores = (module for module in tree.modules if module.parts[-1] == "store.py")
    return counted(module.short for module in stores if not ENGINE_NAMES & set(names_in(module)))


def type_checking_nodes(tree: ast.Module) -> set[ast.AST]:
    blocks = (node for node in ast.walk(tree) if isinstance(node, ast.If))
    return {
        inner
        for block in blocks
        if ast.unparse(block.test).endswith("TYPE_CHECKING")
        for part in block.body
        for inner in ast.walk(part)
    }


def imported(module: Module) -> Iterator[str]:
    """Dotted names that are imported when the program runs, wherever the import stands."""
    left_out = type_checking_nodes(module.tree)
    for node in module.nodes():
        if node in left_out:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def folder_cycles(tree: Tree) -> Figure:
    """Groups of top-level folders that import each other (strongly connected), not under TYPE_CHECKING."""
    folders = {module.folder for module in tree.modules} - {""}
    after: dict[str, set[str]] = {folder: set() for folder in folders}
    for module in tree.modules:
        if module.folder:
            targets = {name.split(".")[1] for name in imported(module) if name.startswith("holdfast.")}
            after[module.folder] |= targets & folders - {module.folder}
    reach = {folder: reached(folder, after) for folder in folders}
    groups = {frozenset(b for b in reach[a] if a in reach[b]) for a in folders if a in reach[a]}
    return counted(" ↔ ".join(sorted(group)) for group in groups)


def reached(start: str, after: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    todo = list(after[start])
    while todo:
        if (name := todo.pop()) not in seen:
            seen.add(name)
            todo += after[name]
    return seen


def classes_twice(tree: Tree) -> Figure:
    """Names that more than one module-level class in src has."""
    counts = Counter(n.name for m in tree.modules for n in m.tree.body if isinstance(n, ast.ClassDef))
    return counted(f"{name} ×{count}" for name, count in counts.items() if count > 1)


# ---- the hold


def hold_records(tree: Tree) -> Figure:
    """Records that a hold takes the form of: as traced, or listed and defined in the folders of the path."""
    modules = [module for module in tree.modules if module.folder in HOLD_FOLDERS]
    defined = {n.name for m in modules for n in m.tree.body if isinstance(n, ast.ClassDef)}
    names = [line.split()[1].split(".") for line in traced(tree) if line.startswith("value ")]
    passed = {name[-1] for name in names if name[0] in HOLD_FOLDERS} - HOLD_FILLERS
    return counted((passed or HOLD_RECORDS & defined) | HOLD_ANSWERS & defined)


def hold_files(tree: Tree) -> Figure:
    """Source files whose functions run for one hold sent by a browser's form (tools/trace_hold.py)."""
    files = [line for line in traced(tree) if not line.startswith("value ")]
    return counted(files) if files else Figure(None)


def traced(tree: Tree) -> list[str]:
    return tree.hold_trace.read_text().splitlines() if tree.hold_trace else []


# ---- functions and comments


def function_lines(tree: Tree) -> list[tuple[int, str]]:
    """Code lines of each function, signature included, without docstring, comments and blank lines."""
    found = []
    for module in tree.modules:
        code, _ = module.line_kinds
        for function in module.functions:
            lines = code & set(range(function.lineno, (function.end_lineno or 0) + 1))
            if ast.get_docstring(function, clean=False) is not None:
                first = function.body[0]
                lines -= set(range(first.lineno, (first.end_lineno or 0) + 1))
            found.append((len(lines), f"{module.short}: {function.name}"))
    return sorted(found)


def function_median(tree: Tree) -> Figure:
    """Median of the code lines of all functions in src."""
    return Figure(statistics.median(lines for lines, _ in function_lines(tree)))


def function_p95(tree: Tree) -> Figure:
    """The number of code lines that 95 % of the functions in src do not exceed."""
    found = function_lines(tree)
    return Figure(found[math.ceil(0.95 * len(found)) - 1][0])


def function_max(tree: Tree) -> Figure:
    """Code lines of the longest function in src."""
    found = function_lines(tree)
    return Figure(found[-1][0], [f"{name} has {lines}" for lines, name in found[-10:]])


def comment_lines(tree: Tree) -> Figure:
    """Lines with a comment, also behind code, as % of the non-blank lines in src; docstrings do not count."""
    comments = sum(len(module.line_kinds[1]) for module in tree.modules)
    lines = sum(1 for module in tree.modules for line in module.text.splitlines() if line.strip())
    return Figure(round(100 * comments / lines, 2))


# ---- words


def text_files(tree: Tree) -> Iterator[Path]:
    """English text of src, tests, docs, bench, lab and tools, and Markdown at the root; no translations."""
    yield from sorted(tree.root.glob("*.md"))
    for folder in TEXT_FOLDERS:
        for path in sorted((tree.root / folder).rglob("*")):
            parts = {*path.relative_to(tree.root).parts, path.stem}
            is_ours = not parts & (NOT_OURS | TRANSLATIONS | LIST_FILES) and ".min." not in path.name
            if path.suffix in TEXT and is_ours and path.is_file():
                yield path


def read_text(path: Path) -> str:
    """Names split into words (snake_case, CamelCase), lower case; no sections of dated releases."""
    text = path.read_text()
    if path.name == "CHANGELOG.md":
        sections = re.split(r"(?m)^(?=## )", text)
        text = "".join(s for s in sections if not re.match(r"## .*\d{4}-\d\d-\d\d", s))
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", text).lower()
    return ORDINARY.sub(" ", re.sub(r"\s+(?:(?:#|--|//|\*)\s+)?", " ", spaced))


def banned_rates(tree: Tree) -> dict[str, Figure]:
    """Uses of each banned word or phrase per 1 000 words of English text."""
    words, uses = 0, {banned: Counter[str]() for banned in BANNED_WORDS}
    for path in text_files(tree):
        text = read_text(path)
        words += len(re.findall(r"[a-z]+", text))
        for banned, counts in uses.items():
            counts[str(path.relative_to(tree.root))] += len(re.findall(rf"\b{banned}s?\b", text))
    return {banned: rate(counts, words) for banned, counts in uses.items()}


def rate(counts: "Counter[str]", words: int) -> Figure:
    places = [f"{path}: {count}" for path, count in counts.most_common(20) if count]
    return Figure(round(1000 * counts.total() / words, 3), places)


# ---- the table

Measure = tuple[str, Callable[[Tree], Figure], str]
MEASURES: tuple[Measure, ...] = (
    ("Python files", python_files, "≤ 280"),
    ("packages", packages, "≤ 34"),
    ("packages with one module", small_packages, "≤ 3"),
    ("maximum depth", depth_max, "≤ 2"),
    ("files deeper than 2", deep_files, "0"),
    ("`store.py` without an engine", idle_stores, "0"),
    ("uses of `Any` per 1 000 lines", any_uses, ""),
    ("unchecked accesses to the application", unchecked_accesses, "0"),
    ("folder cycles", folder_cycles, "0"),
    ("tables", tables, ""),
    ("tables read across folders", reads_across, ""),
    ("tables written across folders", writes_across, "0"),
    ("SQL objects defined twice", sql_twice, "0"),
    ("class names defined twice", classes_twice, "0"),
    ("representations on the hold path", hold_records, "≤ 8"),
    ("files run by one browser hold", hold_files, "≤ 20"),
    ("function code lines, median", function_median, "≤ 8"),
    ("function code lines, p95", function_p95, "≤ 25"),
    ("function code lines, max", function_max, "≤ 60"),
    ("comment lines, %", comment_lines, "≥ 4"),
)
BANNED_TARGET = "≤ 0.05"


def measured(tree: Tree) -> dict[str, Figure]:
    figures = {name: measure(tree) for name, measure, _ in MEASURES}
    return figures | {f'"{word}" per 1 000 words': one for word, one in banned_rates(tree).items()}


def values_of(source: Path) -> dict[str, Value]:
    """Of a tree, or of a file that --json wrote."""
    if source.is_file():
        return dict(json.loads(source.read_text()))
    return {name: figure.value for name, figure in measured(Tree(source)).items()}


def table(after: dict[str, Figure], before: dict[str, Value] | None) -> Iterator[str]:
    targets = {name: target for name, _, target in MEASURES}
    columns = ["measure", *(["before", "after"] if before is not None else ["value"]), "target"]
    yield f"| {' | '.join(columns)} |"
    yield "|---|" + "--:|" * (len(columns) - 1)
    for name, figure in after.items():
        earlier = [shown(before.get(name))] if before is not None else []
        cells = [name, *earlier, shown(figure.value), targets.get(name, BANNED_TARGET)]
        yield f"| {' | '.join(cells)} |"


def shown(value: Value) -> str:
    return "not measured" if value is None else f"{value:g}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the tree to measure")
    parser.add_argument("--before", type=Path, help="an earlier tree, or the file that --json wrote for it")
    parser.add_argument("--hold-trace", type=Path, help="the list of files that tools/trace_hold.py wrote")
    parser.add_argument("--json", type=Path, help="also write the values to this file")
    parser.add_argument("--verbose", action="store_true", help="list the places behind each figure")
    options = parser.parse_args()
    figures = measured(Tree(options.root, options.hold_trace))
    print("\n".join(table(figures, values_of(options.before) if options.before else None)))
    if options.json:
        values = {name: figure.value for name, figure in figures.items()}
        options.json.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n")
    for name, figure in figures.items() if options.verbose else ():
        print(f"\n{name}", *figure.places, sep="\n  ")


if __name__ == "__main__":
    main()
