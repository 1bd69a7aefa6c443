"""Folders, files and imports: what ARCHITECTURE.md promises about them, checked."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.tree import ROOT, Module, assert_no_violations, package, written

EXAMPLES = package(ROOT / "examples")
INFRASTRUCTURE = {"engines", "claim", "web", "migrations"}  # what the subjects are built on
# They put everything together, and no subject imports them.
ROOTS = {"app", "app_people", "app_sale", "pod_choice", "web_jobs", "routes", "background"}
ROOTS |= {"cli", "runtime", "demo", "__main__"}
FRONTLESS = {"engines", "web", "site"}  # their modules are imported by name, not through __init__.py
SHARED = {"config", "errors", "fields", "money"}  # files directly in the package that everything may import
# Deeper than holdfast/<folder>/<file>: adapters, one per external system, and assets.
DEEPER_FOLDERS = {"payments/gateways", "engines/buses", "engines/embedded"}
NO_IO = re.compile(r"\bno I/O\b", re.IGNORECASE)

# Modules that compute and nothing else.
PURE_MAY_IMPORT = {"__future__", "abc", "array", "base64", "binascii", "bisect", "collections", "contextlib"}
PURE_MAY_IMPORT |= {"copy", "csv", "dataclasses", "datetime", "decimal", "enum", "fractions", "functools"}
PURE_MAY_IMPORT |= {"hashlib", "heapq", "hmac", "html", "io", "ipaddress", "itertools", "json", "math"}
PURE_MAY_IMPORT |= {"operator", "re", "statistics", "string", "struct", "textwrap", "types", "typing"}
PURE_MAY_IMPORT |= {"unicodedata", "urllib.parse", "zlib", "argon2", "cryptography", "joserfc", "msgspec"}
PURE_MAY_IMPORT |= {"babel", "email", "http.cookies", "jinja2", "zoneinfo"}
PURE_MAY_IMPORT |= {"fpdf", "icalendar", "segno"}  # draw and write into memory
PURE_MAY_IMPORT |= {"h3"}  # computes with cells of a grid, in examples
PURE_MAY_TAKE = {
    ("pathlib", "PurePath"),
    ("sys", "byteorder"),
    ("gettext", "c2py"),
    ("random", "Random"),  # with a seed: the same numbers every time
}  # the part of a module that only computes
# Reading a clock or drawing a number is I/O too: what it answers cannot be known from the arguments.
PURE_MAY_NOT_CALL = {"open", "print", "input", "now", "utcnow", "today", "urlopen"}


def is_root(module: Module) -> bool:
    return (module.folder or module.name) in ROOTS


def is_pure(module: Module) -> bool:
    """A module declares it: the first paragraph of its docstring says "No I/O."."""
    docstring = ast.get_docstring(module.tree) or ""
    return bool(NO_IO.search(docstring.split("\n\n")[0]))


def is_shared(module: Module) -> bool:
    return module.name in SHARED or not module.name


def subjects(modules: dict[str, Module]) -> set[str]:
    return {m.folder for m in modules.values() if m.folder} - INFRASTRUCTURE - ROOTS


def inner(source: str) -> str | None:
    """One of our modules, without the package's name; None for others."""
    package_name, _, name = source.partition(".")
    return name if package_name in ("holdfast", "examples") else None


def edges(module: Module, modules: dict[str, Module]) -> Iterator[str]:
    """Our modules that it imports, by name."""
    for source, name in module.imports:
        target = inner(source)
        if target is not None:
            part = f"{target}.{name}".removeprefix(".")
            yield part if name and part in modules and not handed_on(target, name, modules) else target


def handed_on(front: str, name: str, modules: dict[str, Module]) -> str | None:
    """The module that a front takes `name` from, if it does: then the name is the front's to give."""
    if (module := modules.get(front)) is not None and module.is_package:
        for source, given in module.imports:
            if given == name and inner(source) is not None:
                return inner(source)
    return None


def origin(source: str, name: str, modules: dict[str, Module]) -> str:
    """The module that defines `name`, seen through the fronts that hand it on."""
    target = inner(source) or ""
    behind = handed_on(target, name, modules)
    if behind is not None and behind != target:
        return origin(f"holdfast.{behind}", name, modules)
    part = f"{target}.{name}".removeprefix(".")
    return part if part in modules else target


def pure_modules_with_io(modules: dict[str, Module]) -> Iterator[str]:
    for module in modules.values():
        if not is_pure(module) or module.is_package:
            continue
        for source, name in module.imports:
            if inner(source) is not None:
                target = modules.get(origin(source, name, modules))
                if target is None or target.is_package or is_shared(target):
                    continue
                if not is_pure(target):
                    yield f"{module.name} declares no I/O and imports {target.name}"
            elif not {source, source.split(".")[0]} & PURE_MAY_IMPORT and (source, name) not in PURE_MAY_TAKE:
                yield f"{module.name} declares no I/O and imports {source}"
        for node in module.nodes:
            if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith):
                yield f"{module.name}:{node.lineno} declares no I/O and awaits"
            elif isinstance(node, ast.Call) and called(node) in PURE_MAY_NOT_CALL:
                yield f"{module.name}:{node.lineno} declares no I/O and calls {called(node)}()"


def called(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def imports_across_folders(modules: dict[str, Module]) -> Iterator[str]:
    inside = subjects(modules)
    for module in modules.values():
        for name in edges(module, modules):
            target = modules.get(name)
            if target is None or target.folder == module.folder != "" or is_root(module):
                continue
            if is_root(target):
                yield f"{module.name} imports {target.name}, which knows every folder"
            elif module.folder in INFRASTRUCTURE and target.folder in inside:
                yield f"{module.name} is infrastructure and imports {target.name}"
            elif target.folder in inside - FRONTLESS and not target.is_front:
                yield f"{module.name} imports {target.name}, past holdfast.{target.folder}"
            elif module.folder == "engines" and target.folder in INFRASTRUCTURE - {"engines"}:
                yield f"{module.name} is below {target.name} and imports it"
            elif module.folder == "" and target.folder:
                yield f"{module.name} is shared by every folder and imports {target.name}"


def is_edge(module: Module) -> bool:
    """HTTP handlers and background jobs: the outermost modules of a folder."""
    return module.stem.split("_")[-1] in {"api", "jobs"} and module.folder != "sandbox"  # a server of its own


def imports_of_an_edge(modules: dict[str, Module]) -> Iterator[str]:
    """api, jobs → store, service → pure modules; never the other way."""
    for module in modules.values():
        for name in edges(module, modules):
            target = modules.get(name)
            if target is None or target.folder != module.folder or module.is_package:
                continue
            if is_edge(target) and not is_edge(module) and not is_root(module):
                yield f"{module.name} imports {target.name}: handlers and jobs are imported by app.py only"


def folder_cycles(modules: dict[str, Module]) -> Iterator[str]:
    """Folders that import each other, however long the way round. Imports for types only do not count."""
    after: dict[str, set[str]] = {}
    for module in modules.values():
        if module.folder and not is_root(module):
            known = {modules[name].folder for name in edges(module, modules) if name in modules}
            after.setdefault(module.folder, set()).update(known - {module.folder, ""} - ROOTS)
    yield from circles(after)


def files_too_deep(modules: dict[str, Module]) -> Iterator[str]:
    for module in modules.values():
        folder = "/".join(module.name.split(".")[: -1 if not module.is_package else None])
        if folder.count("/") > 0 and folder not in DEEPER_FOLDERS:
            yield f"{module.name}: a folder within a folder is not one of {sorted(DEEPER_FOLDERS)}"


def cycles(modules: dict[str, Module]) -> Iterator[str]:
    """Modules that import each other, however long the way round."""
    yield from circles(
        {name: {to for to in edges(module, modules) if to in modules} for name, module in modules.items()}
    )


def circles(after: dict[str, set[str]]) -> Iterator[str]:
    reach: dict[str, set[str]] = {}
    for start in after:
        seen: set[str] = set()
        todo = list(after[start])
        while todo:
            if (name := todo.pop()) not in seen:
                seen.add(name)
                todo += after.get(name, ())
        reach[start] = seen
    for knot in {
        frozenset(n for n in reach if n in reach[s] and s in reach[n]) for s in reach if s in reach[s]
    }:
        yield "they import each other: " + ", ".join(sorted(knot))


# Examples are customers: the library's front, what starts its engines, and the reader of .sql files.
EXAMPLES_MAY_IMPORT = {"holdfast.claim", "holdfast.engines.postgres"}
EXAMPLES_MAY_IMPORT |= {"holdfast.engines.embedded", "holdfast.engines.embedded.supervise"}


def imports_past_the_library(modules: dict[str, Module]) -> Iterator[str]:
    for module in modules.values():
        for source, _ in module.imports:
            if source.partition(".")[0] == "holdfast" and source not in EXAMPLES_MAY_IMPORT:
                yield f"examples.{module.name} imports {source}: customers use holdfast.claim"


OTHER_SUBJECTS_MAX = 5


def files_that_know_too_many(modules: dict[str, Module]) -> Iterator[str]:
    inside = subjects(modules)
    for module in modules.values():
        known = {modules[n].folder for n in edges(module, modules) if n in modules} & inside - {module.folder}
        if len(known) > OTHER_SUBJECTS_MAX and not is_root(module):
            yield f"{module.name} imports {len(known)} other subjects"


DUMPING_GROUNDS = {"utils", "util", "helpers", "helper", "common", "misc", "base", "shared", "core", "lib"}
DUMPING_GROUNDS |= {"manager", "managers", "services", "models", "adapters", "types", "constants"}


def dumping_grounds(modules: dict[str, Module]) -> Iterator[str]:
    for module in modules.values():
        for part in module.name.split("."):
            if part in DUMPING_GROUNDS:
                yield f"{module.name}: a file is named after what is in it, not {part!r}"


def classes_with_one_name(modules: dict[str, Module]) -> Iterator[str]:
    """Two classes of one name: a reader cannot know which of them a sentence is about."""
    places: dict[str, list[str]] = {}
    for module in modules.values():
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(module.name)
    for name, where in places.items():
        if len(where) > 1:
            yield f"class {name} is defined in {', '.join(where)}"


def of(root: Path, **texts: str) -> dict[str, Module]:
    """A small package: of(tmp_path, holds="", holds_store="…") has holds/__init__.py and holds/redis.py."""
    fronts = {name for name in texts if any(other.startswith(f"{name}_") for other in texts)}
    names = {
        name: f"{name}/__init__.py" if name in fronts else f"{name.replace('_', '/')}.py" for name in texts
    }
    return package(written(root, {names[name]: text for name, text in texts.items()}))


PURE = '"""What a hold is. No I/O."""\n'


class TestTheRulesCanFail:
    def test_a_pure_module_that_imports_an_engine_is_found(self, tmp_path: Path) -> None:
        modules = of(tmp_path, holds_hold=PURE + "import asyncpg", holds_store="import asyncpg")

        assert list(pure_modules_with_io(modules)) == ["holds.hold declares no I/O and imports asyncpg"]

    def test_a_pure_module_that_reaches_a_store_through_a_front_is_found(self, tmp_path: Path) -> None:
        modules = of(
            tmp_path,
            bookings="from holdfast.bookings.store import Bookings",
            bookings_store="import asyncpg\nclass Bookings: ...",
            holds_hold=PURE + "from holdfast.bookings import Bookings",
        )

        assert list(pure_modules_with_io(modules)) == [
            "holds.hold declares no I/O and imports bookings.store"
        ]

    def test_a_pure_module_that_reads_a_clock_or_a_file_is_found(self, tmp_path: Path) -> None:
        text = PURE + "from datetime import datetime\nx = datetime.now()\ny = open('f')"

        assert len(list(pure_modules_with_io(of(tmp_path, holds_hold=text)))) == 2

    def test_an_import_past_a_front_is_found(self, tmp_path: Path) -> None:
        modules = of(
            tmp_path,
            bookings="",
            bookings_booking="",
            holds_hold="from holdfast.bookings.booking import State",
            seatmap_snapshot="from holdfast import bookings",
        )

        assert list(imports_across_folders(modules)) == [
            "holds.hold imports bookings.booking, past holdfast.bookings"
        ]

    def test_infrastructure_that_imports_a_subject_is_found(self, tmp_path: Path) -> None:
        modules = of(
            tmp_path,
            engines_redis="import holdfast.bookings",
            web_auth="import holdfast.bookings",
            bookings="",
            bookings_store="",
        )

        assert list(imports_across_folders(modules)) == [
            "engines.redis is infrastructure and imports bookings",
            "web.auth is infrastructure and imports bookings",
        ]

    def test_an_import_for_types_only_is_allowed(self, tmp_path: Path) -> None:
        text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from holdfast.app import App"

        assert list(imports_across_folders(of(tmp_path, holds_api=text, app=""))) == []

    def test_a_store_that_imports_its_api_is_found(self, tmp_path: Path) -> None:
        modules = of(tmp_path, holds_store="from holdfast.holds import api", holds_api="")

        assert list(imports_of_an_edge(modules)) == [
            "holds.store imports holds.api: handlers and jobs are imported by app.py only"
        ]

    def test_a_cycle_is_found_however_long(self, tmp_path: Path) -> None:
        modules = of(
            tmp_path,
            a="from holdfast.b import x",
            b="from holdfast import c",
            c="import holdfast.a",
            d="import holdfast.a",
        )

        assert list(cycles(modules)) == ["they import each other: a, b, c"]

    def test_folders_that_import_each_other_are_found(self, tmp_path: Path) -> None:
        modules = of(
            tmp_path,
            a_one="from holdfast.b.two import x",
            b_two="",
            b_three="from holdfast.a.four import y",
            a_four="",
        )

        assert list(cycles(modules)) == []
        assert list(folder_cycles(modules)) == ["they import each other: a, b"]

    def test_a_folder_within_a_folder_is_found(self, tmp_path: Path) -> None:
        assert len(list(files_too_deep(of(tmp_path, holds_inner_store="", payments_gateways_stripe="")))) == 1

    def test_an_example_that_uses_more_than_the_library_is_found(self, tmp_path: Path) -> None:
        modules = of(tmp_path, a_one="from holdfast.claim import connect", a_two="import holdfast.bookings")

        assert len(list(imports_past_the_library(modules))) == 1

    def test_a_dumping_ground_is_found(self, tmp_path: Path) -> None:
        assert len(list(dumping_grounds(of(tmp_path, holds_utils="", services_x="")))) == 2

    def test_two_classes_with_one_name_are_found(self, tmp_path: Path) -> None:
        modules = of(tmp_path, a_one="class Seat: ...\nclass Row: ...", b_two="class Seat: ...")

        assert list(classes_with_one_name(modules)) == ["class Seat is defined in a.one, b.two"]


def test_a_module_that_declares_no_io_does_none() -> None:
    assert_no_violations([*pure_modules_with_io(package()), *pure_modules_with_io(EXAMPLES)])


def test_examples_use_the_library_alone() -> None:
    assert_no_violations(imports_past_the_library(EXAMPLES))


def test_folders_are_imported_through_their_front() -> None:
    assert_no_violations(imports_across_folders(package()))


def test_handlers_and_jobs_are_imported_by_app_only() -> None:
    assert_no_violations(imports_of_an_edge(package()))


def test_no_modules_import_in_a_circle() -> None:
    assert_no_violations(cycles(package()))


def test_no_folders_import_in_a_circle() -> None:
    assert_no_violations(folder_cycles(package()))


def test_folders_are_flat() -> None:
    assert_no_violations(files_too_deep(package()))


def test_a_file_knows_few_other_subjects() -> None:
    assert_no_violations(files_that_know_too_many(package()))


def test_no_file_is_a_dumping_ground() -> None:
    assert_no_violations(dumping_grounds(package()))


def test_no_two_classes_have_one_name() -> None:
    assert_no_violations(classes_with_one_name(package()))
