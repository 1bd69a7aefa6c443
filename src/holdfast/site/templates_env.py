"""Loads templates, catalogues and static files from the package, once per process."""

import gzip
import hashlib
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.accounts import LANGUAGES, LOCALES
from holdfast.site.i18n import Localiser, MessageCatalogue, ParsedCatalogue, parse_catalogue
from holdfast.web.responses import PAGE_TOKENS

if TYPE_CHECKING:
    from jinja2 import BytecodeCache, Environment

FOLDER = resources.files("holdfast.site")
BASE_STYLE = "css/base.css"
MEDIA_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "woff2": "font/woff2",
    "webmanifest": "application/manifest+json",
}
COMPRESSIBLE = frozenset({"css", "js", "svg", "webmanifest"})  # the others are packed already


# In a template: a sentence that has nothing to be filled in, the address of a file. Alone it becomes text, as
# a part of something, a string.
TEXT = r"""\bt\(["'](?P<text>[a-z_]+\.[a-z_]+)["']\)"""
ALONE = re.compile(
    r"(?:\s*\{\{-|\{\{) (?:" + TEXT + r"""|asset\(["'](?P<asset>[\w./-]+)["']\)) (?:-\}\}\s*|\}\})"""
)
PART = re.compile(TEXT)
PACK_LEVEL = 5
COMPILED_BYTES = 2_500_000  # of all templates and texts in all languages, and more
# Of zlib, for a page that is packed for one person: level, method, gzip with a window of 8 kB, memory. Most
# of the time for a few kilobytes is spent on making room for many: so it is 32 µs, and 105 as gzip does it.
GZIP_QUICKLY = (1, zlib.DEFLATED, 16 + 13, 5)


def gzip_quickly(body: bytes) -> bytes:
    packing = zlib.compressobj(*GZIP_QUICKLY)
    return packing.compress(body) + packing.flush()


@dataclass(frozen=True, slots=True)
class StaticFile:
    content: bytes
    packed: bytes | None  # gzipped
    media_type: str


@cache
def static_files() -> dict[str, StaticFile]:
    """Everything under static/, by its path: `css/base.css`."""
    return dict(_files_in(FOLDER / "static", ""))


@cache
def assets_version() -> str:
    """A name for all files together: in their address, so that a browser may keep them for a year."""
    whole = hashlib.sha256()
    for name, file in sorted(static_files().items()):
        whole.update(name.encode() + b"\0" + file.content)
    return whole.hexdigest()[:12]


def _files_in(folder: Traversable, above: str) -> list[tuple[str, StaticFile]]:
    found: list[tuple[str, StaticFile]] = []
    for entry in folder.iterdir():
        suffix = entry.name.rpartition(".")[2]
        if entry.is_dir():
            found += _files_in(entry, f"{above}{entry.name}/")
        elif suffix in MEDIA_TYPES:
            content = entry.read_bytes()
            if above + entry.name == BASE_STYLE:  # one request instead of two
                content = PAGE_TOKENS.encode() + content
            packed = gzip.compress(content, 9, mtime=0) if suffix in COMPRESSIBLE else None
            found.append((above + entry.name, StaticFile(content, packed, MEDIA_TYPES[suffix])))
    return found


@cache
def localiser_for(locale: str) -> Localiser:
    """`locale` is one of LOCALES."""
    return Localiser(locale, catalogue_for(locale.partition("_")[0]))


@cache
def catalogue_for(language: str) -> MessageCatalogue:
    assert set(LOCALES) == set(LANGUAGES)
    file = FOLDER.joinpath("locales", language, "LC_MESSAGES", "messages.po")
    return load_catalogue(file.read_bytes(), _bytecode_folder()).build()


def load_catalogue(content: bytes, folder: Path | None) -> ParsedCatalogue:
    """Parsed by the first process, which leaves the result for the others, as Python does with modules."""
    if folder is None:
        return parse_catalogue(content)
    file = folder / f"{hashlib.sha256(content).hexdigest()}.catalogue"
    try:
        return msgspec.json.decode(file.read_bytes(), type=ParsedCatalogue)
    except (OSError, msgspec.DecodeError):
        parsed = parse_catalogue(content)
    draft = file.with_suffix(f".{os.getpid()}")
    with suppress(OSError):  # then each process parses it
        draft.write_bytes(msgspec.json.encode(parsed))
        draft.replace(file)  # whole or not at all: other processes read it meanwhile
    return parsed


@cache
def environment_for(language: str) -> "Environment":
    """Of one language: what they say in it, and the addresses of files, is in them as if typed there."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from jinja2.runtime import Context, Macro
    from markupsafe import Markup, escape

    class Direct(Context):
        """Calls functions directly: only macros need the context, and Jinja would check every call."""

        def call(
            self,
            what: Callable[..., Any],
            /,
            *given: Any,
            _loop_vars: Any = None,
            _block_vars: Any = None,
            **named: Any,
        ) -> Any:
            if what.__class__ is Macro:
                return what(self.eval_ctx, *given, **named)
            return what(*given, **named)

    l10n = localiser_for(LOCALES[language][0])

    def alone(found: re.Match[str]) -> str:
        return str(escape(l10n.t(found["text"]) if found["text"] else asset(found["asset"])))

    def part(found: re.Match[str]) -> str:
        return repr(l10n.t(found["text"]))

    def typed(name: str) -> tuple[str, str, None]:
        file = FOLDER.joinpath("templates", *name.split("/"))
        return PART.sub(part, ALONE.sub(alone, file.read_text(encoding="utf-8"))), str(file), None

    made = Environment(
        loader=FunctionLoader(typed),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        bytecode_cache=_bytecode_cache(language),
    )
    made.context_class = Direct
    made.globals["asset"] = asset
    buttons = made.get_template("languages.html").render(l10n=l10n, t=l10n.t, languages=LANGUAGES)
    made.globals["language_buttons"] = Markup(buttons)
    return made


def template_names() -> list[str]:
    return sorted(_html_in(FOLDER / "templates", ""))


def _html_in(folder: Traversable, above: str) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _html_in(entry, f"{above}{entry.name}/")
        elif entry.name.endswith(".html"):
            yield above + entry.name


def _bytecode_cache(language: str) -> "BytecodeCache | None":
    """What templates were compiled to, as Python keeps its own: a process starts sooner by half.

    The cache key is the template's text. Without a writable folder each process compiles for itself.
    """
    from jinja2 import FileSystemBytecodeCache

    folder = _bytecode_folder()
    return FileSystemBytecodeCache(str(folder), f"{language}-%s.compiled") if folder is not None else None


@cache
def _bytecode_folder() -> Path | None:
    """Beside the templates; None if Python must not write bytecode or the disk is full."""
    if sys.dont_write_bytecode:
        return None
    folder = Path(str(FOLDER / "templates" / "__pycache__"))
    try:
        folder.mkdir(exist_ok=True)
        with TemporaryFile(dir=folder) as trial:
            trial.write(bytes(COMPILED_BYTES))
    except OSError:
        return None
    return folder


def asset(name: str) -> str:
    """The URL of a static file; it contains a fingerprint, so it can be cached for a year."""
    return f"/static/{assets_version()}/{name}"


def warm_up() -> None:
    """Loads and compiles templates at start, so that the first page is not a second late."""
    assets_version()
    for language in LANGUAGES:
        for name in template_names():
            environment_for(language).get_template(name)
    now = datetime.now(UTC)
    for first, *_ in LOCALES.values():  # a language's other regions take a few milliseconds each
        l10n = localiser_for(first)
        l10n.number(1000)
        l10n.money(1550, "EUR")
        l10n.day(now)
        l10n.day(now, "UTC", "MMMEd")
        l10n.time(now, "UTC")
