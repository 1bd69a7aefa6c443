"""What can be checked about a block of the docs without running it: one function per language.

sh      bash parses it; each command is one of these, and its words are checked:
        holdfast …    by the parser of the command line: commands, options, values, missing arguments
        make …        the recipe exists
        python -m …   the module exists, and its options are in it
        pip install … one of our projects and its extras
        NAME=…        the settings can be read
http    each line is a request that a route serves, with a body that its handler accepts, or a header
json    it can be read as the type that the product reads there
python  it compiles, its imports exist, its names are defined, calls use names of parameters that exist
po      its texts are those of the English catalogue
text    nothing to run: a drawing, a formula, output. Requests in it are served
"""

import ast
import builtins
import importlib
import inspect
import io
import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import typer
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po
from typer._click.exceptions import UsageError

from holdfast.cli.main import cli
from holdfast.config import Config, secret_file_names
from holdfast.pricing.rules import PriceRules
from holdfast.pricing.terms import RefundPolicy
from holdfast.routes import ROUTES
from holdfast.sandbox.behaviour import SandboxSettings
from holdfast.web.routing import Route
from tests.tidy.markdown_pages import Block
from tests.tidy.tree import ROOT, SRC, files

PROJECTS = {
    project["name"]: project
    for project in (tomllib.loads(path.read_text()).get("project") for path in files(".toml"))
    if project
}
RECIPES = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
# Which type reads a JSON object, by its first field.
JSON_TYPES: dict[str, type] = {"currency": PriceRules, "steps": RefundPolicy, "timeout_paid": SandboxSettings}
ASSIGNMENT = re.compile(r"(\w+)=(.*)", re.DOTALL)
REQUEST = re.compile(r"\b(GET|POST|PUT|PATCH|DELETE) +((?:[/…]\S*?)(?:, [/…]\S*?)*)(?: +(.*))?$")
HEADER = re.compile(r"([A-Z][A-Za-z-]+): \S")
COMMAND = re.compile(r"\s*(?:\$ )?(?:holdfast|make|curl|pip|export|apt|nginx|SELECT) ")


def check_shell(block: Block) -> Iterator[str]:
    read = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True, check=False)
    if read.returncode:
        yield read.stderr.strip()
        return
    for words in commands(block.text):
        yield from check_command(words)


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command; a line that ends inside quotes goes on in the next."""
    pending = ""
    for line in text.replace("\\\n", " ").splitlines():
        pending += f"{line}\n"
        try:
            words = shlex.split(pending, comments=True)
        except ValueError:
            continue
        pending = ""
        while "&&" in words:
            yield words[: words.index("&&")]
            words = words[words.index("&&") + 1 :]
        yield words


def check_command(words: list[str]) -> Iterator[str]:
    settings = {}
    while words and (words[0] == "export" or ASSIGNMENT.fullmatch(words[0])):
        word = words.pop(0)
        if found := ASSIGNMENT.fullmatch(word):
            settings[found[1]] = found[2]
    yield from check_settings(settings)
    match words:
        case []:
            return
        case [program, *rest] if program in ("holdfast", ".venv/bin/holdfast"):
            yield from check_holdfast(rest)
        case ["make", recipe, *rest] if all(map(ASSIGNMENT.fullmatch, rest)):
            if recipe not in RECIPES:
                yield f"there is no `make {recipe}`"
        case ["python", "-m", module, *rest]:
            yield from check_script(module, rest)
        case ["pip", "install", *rest]:
            yield from check_packages([word for word in rest if word != "--upgrade"])
        case _:
            yield f"`{words[0]}` cannot be checked: let a test run the block, or say why it is not runnable"


def check_settings(settings: dict[str, str]) -> Iterator[str]:
    files_of_secrets = secret_file_names()
    try:
        Config.from_env({files_of_secrets.get(name, name): value for name, value in settings.items()})
    except SystemExit as refused:
        yield str(refused)


def check_packages(wanted: list[str]) -> Iterator[str]:
    for one in wanted:
        name, _, extra = one.rstrip("]").partition("[")
        if name not in PROJECTS or (extra and extra not in PROJECTS[name]["optional-dependencies"]):
            yield f"{one} is not a package of this project"


def check_script(module: str, words: list[str]) -> Iterator[str]:
    path = ROOT / f"{module.replace('.', '/')}.py"
    if not path.exists():
        path = path.with_suffix("") / "__main__.py"
    if not path.exists():
        yield f"there is no module {module}"
        return
    for option in words:
        if option.startswith("--") and f'"{option}"' not in path.read_text():
            yield f"{module} has no option {option}"


def check_holdfast(words: list[str]) -> Iterator[str]:
    command: Any = typer.main.get_command(cli)
    path = ["holdfast"]
    while inside := getattr(command, "commands", None):
        if not words or words[0] not in inside:
            yield f"there is no command {' '.join([*path, *words[:1]])}"
            return
        path.append(words[0])
        command = inside[words.pop(0)]
    try:
        command.make_context(" ".join(path), words)
    except UsageError as refused:
        yield f"{' '.join(path)}: {refused.format_message()}"


def check_requests(block: Block) -> Iterator[str]:
    for line in block.text.splitlines():
        if found := REQUEST.match(line):
            yield from check_request(found[1], found[2], found[3] or "")
        elif header := HEADER.match(line):
            if not any(header[1].lower() in path.read_text().lower() for path in SRC.glob("web/*.py")):
                yield f"no header {header[1]} is read"
        else:
            yield f"neither a request nor a header: {line}"


def check_request(method: str, paths: str, rest: str) -> Iterator[str]:
    for address in paths.split(", "):
        path, _, query = address.partition("?")
        served = [one for one in ROUTES if one.method == method and serves(one, path)]
        if not served:
            yield f"no route serves {method} {path}"
            return
        names = {name.partition("=")[0] for name in query.split("&") if name}
        if not any(names <= fields_of(one.query) for one in served):
            yield f"{method} {path} does not read all of {sorted(names)}"
        if rest.startswith("{") and not path.startswith("…"):
            yield from check_body(served[0], rest)


def check_body(route: Route, text: str) -> Iterator[str]:
    value, _ = json.JSONDecoder().raw_decode(text)
    try:
        msgspec.convert(value, route.body or dict, strict=False)
    except msgspec.ValidationError as refused:
        yield f"{route.method} {route.path} refuses its body: {refused}"


def fields_of(struct: type | None) -> set[str]:
    return {one.encode_name for one in msgspec.structs.fields(struct)} if struct else set()


def serves(route: Route, path: str) -> bool:
    """`{…}`, `…` and numbers stand for a parameter; a leading `…` for the start of any path."""
    shown = path.split("/")
    for full in (route.full_path, route.path):
        parts = full.split("/")
        if path.startswith("…"):
            shown, parts = path.split("/")[1:], parts[-len(path.split("/")) + 1 :]
        if len(parts) == len(shown) and all(map(is_same_part, parts, shown)):
            return True
    return False


def is_same_part(part: str, shown: str) -> bool:
    return part == shown or (part.startswith("{") and bool(re.fullmatch(r"\{\w+\}|…|\w+", shown)))


def check_text(block: Block) -> Iterator[str]:
    for line in block.text.splitlines():
        if COMMAND.match(line):
            yield f"a command, not a text: {line.strip()}"
        if found := REQUEST.search(re.sub(r"  .*", "", line.lstrip(" –0123456789").replace("  /", " /"))):
            yield from check_request(found[1], found[2], "")


def check_json(block: Block) -> Iterator[str]:
    value = json.loads(block.text)
    kind = JSON_TYPES.get(next(iter(value)))
    if kind is None:
        yield "add its type to JSON_TYPES, so that it is read as the product reads it"
        return
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as refused:
        yield f"{kind.__name__} refuses it: {refused}"


def check_python(block: Block) -> Iterator[str]:
    tree = ast.parse(block.text)
    imported: dict[str, Any] = {}
    known = set(dir(builtins))
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module)):
                source = importlib.import_module(module)
                for alias in node.names:
                    if not hasattr(source, alias.name):
                        yield f"{module} has no {alias.name}"
                    imported[alias.asname or alias.name] = getattr(source, alias.name, None)
            case ast.Import():
                known |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
                | ast.arg(arg=name)
                | ast.Name(id=name, ctx=ast.Store())
                | ast.MatchAs(name=str(name))
                | ast.ExceptHandler(name=str(name))
            ):
                known.add(name)
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if name not in known | imported.keys():
                yield f"{name} is not defined"
            case ast.Call(func=ast.Name(id=name), keywords=keywords) if imported.get(name):
                parameters = inspect.signature(imported[name]).parameters
                yield from (
                    f"{name} has no parameter {one.arg}" for one in keywords if one.arg not in parameters
                )


def check_catalogue(block: Block) -> Iterator[str]:
    english = catalogue((SRC / "site/locales/en/LC_MESSAGES/messages.po").read_text())
    for message in catalogue(block.text):
        found = english.get(message.id)
        if message.id and (found is None or found.string != message.string):
            yield f"not so in the English catalogue: {message.id}"


def catalogue(text: str) -> Catalog:
    return read_po(io.BytesIO(text.encode()), locale="en", charset="utf-8")


CHECKS: dict[str, Callable[[Block], Iterator[str]]] = {
    "sh": check_shell,
    "http": check_requests,
    "json": check_json,
    "python": check_python,
    "po": check_catalogue,
    "text": check_text,
}
