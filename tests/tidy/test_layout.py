"""What ARCHITECTURE.md promises about folders, files and arrows, checked."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.tree import Module, nobody_complains, package, written

MACHINERY = {"engines", "claim", "web", "migrations"}  # what subjects stand on
# Who puts everything together; nobody imports them.
ROOTS = {"app", "cli", "cli_facts", "cli_payments", "demo", "doctor", "processes", "terminal", "workers"}
ROOTS |= {"__main__", "cli_backup", "cli_gate", "cli_notices", "cli_refunds", "cli_search", "cli_venue"}
ROOTS |= {"cli_figures", "json_line", "roles"}

# Files that may touch the world. Every other file is named after a noun and does no I/O.
WORLD_FILES = {"store", "routes", "worker"}
WORLD_FOLDERS = {"engines", "web"}
# An adapter is named after whom it reaches.
ADAPTERS = {f"payments.gateways.{name}" for name in ("sandbox", "stripe", "razorpay")}
ADAPTERS |= {"notices.senders"}
DATA_ONLY = {"web.routing"}  # a Route is a value, and describing one is no I/O

# Modules that compute and nothing else.
NOUN_MAY_IMPORT = {"__future__", "abc", "array", "base64", "binascii", "bisect", "collections", "contextlib"}
NOUN_MAY_IMPORT |= {"copy", "csv", "dataclasses", "datetime", "decimal", "enum", "fractions", "functools"}
NOUN_MAY_IMPORT |= {"hashlib", "heapq", "hmac", "html", "io", "ipaddress", "itertools", "json", "math"}
NOUN_MAY_IMPORT |= {"operator", "re", "statistics", "string", "struct", "textwrap", "types", "typing"}
NOUN_MAY_IMPORT |= {"unicodedata", "urllib.parse", "zlib", "argon2", "cryptography", "joserfc", "msgspec"}
NOUN_MAY_IMPORT |= {"babel", "email", "http.cookies", "jinja2", "zoneinfo"}
NOUN_MAY_IMPORT |= {"fpdf", "icalendar", "segno"}  # draw and write what they are told
NOUN_MAY_TAKE = {("pathlib", "PurePath"), ("sys", "byteorder")}  # the part of a module that only computes
# Reading a clock or drawing a number is I/O too: what it answers cannot be known from the arguments.
NOUN_MAY_NOT_CALL = {"open", "print", "input", "now", "utcnow", "today", "urlopen"}


def is_root(module: Module) -> bool:
    return (module.folder or module.name) in ROOTS


def is_noun(module: Module) -> bool:
    if module.name in DATA_ONLY:
        return True
    if is_root(module) or module.folder in WORLD_FOLDERS or module.name in ADAPTERS:
        return False
    return module.stem not in WORLD_FILES and not (module.is_package and module.folder)


def subjects(modules: dict[str, Module]) -> set[str]:
    return {m.folder for m in modules.values() if m.folder} - MACHINERY - ROOTS


def inner(source: str) -> str | None:
    """A module of ours without the package's name; None for everybody else's."""
    return source.removeprefix("holdfast").removeprefix(".") if source.split(".")[0] == "holdfast" else None


def edges(module: Module, modules: dict[str, Module]) -> Iterator[str]:
    """The modules of ours that it imports, by name."""
    for source, name in module.imports():
        target = inner(source)
        if target is not None:
            part = f"{target}.{name}".removeprefix(".")
            yield part if name and part in modules and not handed_on(target, name, modules) else target


def handed_on(front: str, name: str, modules: dict[str, Module]) -> str | None:
    """The module that a front takes `name` from, if it does: then the name is the front's to give."""
    if (module := modules.get(front)) is not None and module.is_package:
        for source, given in module.imports():
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


def nouns_that_touch_the_world(modules: dict[str, Module]) -> Iterator[str]:
    for module in modules.values():
        if not is_noun(module) or module.name in DATA_ONLY:
            continue
        for source, name in module.imports():
            if inner(source) is not None:
                target = modules.get(origin(source, name, modules))
                if target is not None and not is_noun(target) and not (target.is_package and not name):
                    yield f"{module.name} is a noun and imports {target.name}"
            elif not {source, source.split(".")[0]} & NOUN_MAY_IMPORT and (source, name) not in NOUN_MAY_TAKE:
                yield f"{module.name} is a noun and imports {source}"
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith):
                yield f"{module.name}:{node.lineno} is a noun and awaits"
            elif isinstance(node, ast.Call) and called(node) in NOUN_MAY_NOT_CALL:
                yield f"{module.name}:{node.lineno} is a noun and calls {called(node)}()"


def called(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def arrows_that_point_up(modules: dict[str, Module]) -> Iterator[str]:
    inside = subjects(modules)
    for module in modules.values():
        for name in edges(module, modules):
            target = modules.get(name)
            if target is None or target.folder == module.folder != "" or is_root(module):
                continue
            if is_root(target):
                yield f"{module.name} imports {target.name}, which knows everybody"
            elif module.folder in MACHINERY - {"web"} and target.folder in inside:
                yield f"{module.name} is beneath the subjects and imports {target.name}"
            elif target.folder in inside and not target.is_front:
                yield f"{module.name} imports {target.name}, past holdfast.{target.folder}"
            elif module.folder in {"engines"} and target.folder in MACHINERY - {"engines"}:
                yield f"{module.name} is beneath {target.name} and imports it"
            elif module.folder == "" and target.folder:
                yield f"{module.name} is a noun of everybody's and imports {target.name}"


HEIGHT = {"store": 1, "routes": 2, "worker": 2}


def arrows_that_point_up_within_a_subject(modules: dict[str, Module]) -> Iterator[str]:
    """routes, worker → store → nouns."""
    inside = subjects(modules) | {"claim"}
    for module in modules.values():
        for name in edges(module, modules):
            target = modules.get(name)
            if target is None or target.folder != module.folder or module.folder not in inside:
                continue
            above, beneath = HEIGHT.get(module.stem, 0), HEIGHT.get(target.stem, 0)
            # A folder within a subject is a part of it, and may stand on a store of the whole.
            beside = module.path.parent == target.path.parent
            if not module.is_package and beneath and (beneath > above or (beneath == above and beside)):
                yield f"{module.name} imports {target.name}: arrows point down"


def cycles(modules: dict[str, Module]) -> Iterator[str]:
    """Modules that import each other, however long the way round."""
    after = {name: {to for to in edges(module, modules) if to in modules} for name, module in modules.items()}
    reach: dict[str, set[str]] = {}
    for start in after:
        seen: set[str] = set()
        todo = list(after[start])
        while todo:
            if (name := todo.pop()) not in seen:
                seen.add(name)
                todo += after[name]
        reach[start] = seen
    for knot in {
        frozenset(n for n in reach if n in reach[s] and s in reach[n]) for s in reach if s in reach[s]
    }:
        yield "they import each other: " + ", ".join(sorted(knot))


OTHER_SUBJECTS_MAX = 4


def files_that_know_too_many(modules: dict[str, Module]) -> Iterator[str]:
    inside = subjects(modules)
    for module in modules.values():
        known = {modules[n].folder for n in edges(module, modules) if n in modules} & inside - {module.folder}
        if len(known) > OTHER_SUBJECTS_MAX and not is_root(module):
            yield f"{module.name} imports {len(known)} other subjects"


DUMPING_GROUNDS = {"utils", "util", "helpers", "helper", "common", "misc", "base", "shared", "core", "lib"}
DUMPING_GROUNDS |= {"manager", "managers", "service", "services", "models", "adapters", "types", "constants"}


def dumping_grounds(modules: dict[str, Module]) -> Iterator[str]:
    for module in modules.values():
        for part in module.name.split("."):
            if part in DUMPING_GROUNDS:
                yield f"{module.name}: a file is named after what is in it, not {part!r}"


def of(root: Path, **texts: str) -> dict[str, Module]:
    """A small package: of(tmp_path, holds="", holds_store="…") has holds/__init__.py and holds/store.py."""
    fronts = {name for name in texts if any(other.startswith(f"{name}_") for other in texts)}
    names = {
        name: f"{name}/__init__.py" if name in fronts else f"{name.replace('_', '/')}.py" for name in texts
    }
    return package(written(root, {names[name]: text for name, text in texts.items()}))


class TestTheRulesCanFail:
    def test_a_noun_that_imports_an_engine_is_found(self, tmp_path: Path) -> None:
        modules = of(tmp_path, holds_hold="import asyncpg", holds_store="import asyncpg")

        assert list(nouns_that_touch_the_world(modules)) == ["holds.hold is a noun and imports asyncpg"]

    def test_a_noun_that_reaches_a_store_through_a_front_is_found(self, tmp_path: Path) -> None:
        modules = of(
            tmp_path,
            ledger="from holdfast.ledger.store import Ledger",
            ledger_store="import asyncpg\nclass Ledger: ...",
            holds_hold="from holdfast.ledger import Ledger",
        )

        assert list(nouns_that_touch_the_world(modules)) == ["holds.hold is a noun and imports ledger.store"]

    def test_a_noun_that_reads_a_clock_or_a_file_is_found(self, tmp_path: Path) -> None:
        modules = of(tmp_path, holds_hold="from datetime import datetime\nx = datetime.now()\ny = open('f')")

        assert len(list(nouns_that_touch_the_world(modules))) == 2

    def test_a_path_past_a_front_is_found(self, tmp_path: Path) -> None:
        modules = of(
            tmp_path,
            ledger="",
            ledger_booking="",
            holds_hold="from holdfast.ledger.booking import State",
            seatmap_snapshot="from holdfast import ledger",
        )

        assert list(arrows_that_point_up(modules)) == [
            "holds.hold imports ledger.booking, past holdfast.ledger"
        ]

    def test_machinery_that_knows_a_subject_is_found(self, tmp_path: Path) -> None:
        modules = of(tmp_path, engines_redis="import holdfast.ledger", ledger="", ledger_store="")

        assert list(arrows_that_point_up(modules)) == [
            "engines.redis is beneath the subjects and imports ledger"
        ]

    def test_a_store_that_imports_its_routes_is_found(self, tmp_path: Path) -> None:
        modules = of(tmp_path, holds_store="from holdfast.holds import routes", holds_routes="")

        assert list(arrows_that_point_up_within_a_subject(modules)) == [
            "holds.store imports holds.routes: arrows point down"
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

    def test_a_dumping_ground_is_found(self, tmp_path: Path) -> None:
        assert len(list(dumping_grounds(of(tmp_path, holds_utils="", services_x="")))) == 2


def test_a_file_named_after_a_noun_does_no_io() -> None:
    nobody_complains(nouns_that_touch_the_world(package()))


def test_arrows_point_down() -> None:
    modules = package()

    nobody_complains([*arrows_that_point_up(modules), *arrows_that_point_up_within_a_subject(modules)])


def test_nobody_imports_in_a_circle() -> None:
    nobody_complains(cycles(package()))


def test_a_file_knows_few_other_subjects() -> None:
    nobody_complains(files_that_know_too_many(package()))


def test_nobody_builds_a_dumping_ground() -> None:
    nobody_complains(dumping_grounds(package()))
