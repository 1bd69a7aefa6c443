"""Reads templates, words and files from the package, once a process."""

import gzip
import hashlib
import re
import tomllib
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

from holdfast.engines.cache import Cache
from holdfast.people import LANGUAGES
from holdfast.site.visit import LOCALES
from holdfast.site.words import Words

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = resources.files("holdfast.site")
KINDS = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "woff2": "font/woff2",
    "webmanifest": "application/manifest+json",
}
PACKED = frozenset({"css", "js", "svg", "webmanifest"})  # the others are packed already


# In a template: a sentence that has nothing to be filled in, the address of a file.
ALWAYS_THE_SAME = re.compile(
    r"""\{\{ (?:say\(["'](?P<say>[a-z_]+\.[a-z_]+)["']\)|asset\(["'](?P<asset>[\w./-]+)["']\)) \}\}"""
)
FRESH_S = 1.0
STALE_S = 2.0  # older than that nobody is shown how many seats are left, while the engines are there
KEPT_MAX = 2_000  # pages; a locale each
PACK_LEVEL = 5
PACK_LEVEL_OF_ONE = 1  # for a page that is one person's: a third of the time, a tenth more bytes


@dataclass(frozen=True, slots=True)
class Wanted:
    """A page that many ask for at once, and how one of them makes it."""

    key: tuple[Hashable, ...]
    make: Callable[[], Awaitable[bytes]] = field(compare=False)


@dataclass(frozen=True, slots=True)
class Kept:
    body: bytes
    packed: bytes  # gzipped
    etag: str


def kept_pages() -> Cache[Wanted, Kept]:
    """Pages that are the same for everybody, made once a second at most."""
    return Cache(_made, fresh_s=FRESH_S, stale_max_s=STALE_S, size_max=KEPT_MAX)


async def _made(wanted: Wanted) -> Kept:
    body = await wanted.make()
    etag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
    return Kept(body, gzip.compress(body, PACK_LEVEL, mtime=0), etag)


@dataclass(frozen=True, slots=True)
class File:
    content: bytes
    packed: bytes | None  # gzipped
    media_type: str


@cache
def files() -> dict[str, File]:
    """Everything under static/, by its path: `css/base.css`."""
    return dict(_files_in(FOLDER / "static", ""))


@cache
def edition() -> str:
    """A name for all files together: in their address, so that a browser may keep them for a year."""
    whole = hashlib.sha256()
    for name, file in sorted(files().items()):
        whole.update(name.encode() + b"\0" + file.content)
    return whole.hexdigest()[:12]


def _files_in(folder: Traversable, above: str) -> list[tuple[str, File]]:
    found: list[tuple[str, File]] = []
    for entry in folder.iterdir():
        suffix = entry.name.rpartition(".")[2]
        if entry.is_dir():
            found += _files_in(entry, f"{above}{entry.name}/")
        elif suffix in KINDS:
            content = entry.read_bytes()
            packed = gzip.compress(content, 9, mtime=0) if suffix in PACKED else None
            found.append((above + entry.name, File(content, packed, KINDS[suffix])))
    return found


@cache
def words_of(locale: str) -> Words:
    """`locale` is one of LOCALES."""
    return Words(locale, sentences()[locale.partition("_")[0]])


@cache
def sentences() -> dict[str, dict[str, dict[str, str | dict[str, str]]]]:
    """By language, by subject (a file each), by name."""
    assert set(LOCALES) == set(LANGUAGES)
    return {
        language: {
            entry.name.removesuffix(".toml"): tomllib.loads(entry.read_text(encoding="utf-8"))
            for entry in (FOLDER / "words" / language).iterdir()
            if entry.name.endswith(".toml")
        }
        for language in LANGUAGES
    }


@cache
def templates(language: str) -> "Environment":
    """Of one language: what they say in it, and the addresses of files, is in them as if typed there."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from jinja2.ext import Extension
    from markupsafe import escape

    spoken = words_of(LOCALES[language][0])

    def typed(found: re.Match[str]) -> str:
        return str(escape(spoken.say(found["say"]) if found["say"] else asset(found["asset"])))

    class Typed(Extension):
        def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
            return ALWAYS_THE_SAME.sub(typed, source)

    made = Environment(
        loader=PackageLoader("holdfast.site", "templates"),
        autoescape=True,  # whoever typed it
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        extensions=[Typed],
    )
    made.globals["asset"] = asset
    return made


def asset(name: str) -> str:
    """Where a file is to be had, for ever."""
    return f"/static/{edition()}/{name}"


def warm_up() -> None:
    """Read and compile what the first who asks for a page would wait for: a second, not in a loop."""
    edition()
    for language in LANGUAGES:
        for name in templates(language).list_templates():
            templates(language).get_template(name)
    now = datetime.now(UTC)
    for first, *_ in LOCALES.values():  # a language's other regions take a few milliseconds each
        spoken = words_of(first)
        spoken.number(1000)
        spoken.money(1550, "EUR")
        spoken.day(now)
        spoken.day(now, "UTC", "MMMEd")
        spoken.time(now, "UTC")
