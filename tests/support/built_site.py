"""A static site on disk: links that lead nowhere, and what its pages would load from other hosts."""

import os
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

LOADING = {("link", "href"), ("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src")}
CSS_HOST = re.compile(r"""(?:url\(|@import)\s*["']?(?:https?:)?//([^/"')]+)""")


class SitePage(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if not value:
                continue
            if name == "id":
                self.ids.add(value)
            elif name in ("href", "src"):
                self.links.add(value)
                if (tag, name) in LOADING:
                    self.loaded.add(value)


@cache
def read_page(path: Path) -> SitePage:
    return SitePage(path)


def dead_links(site: Path) -> Iterator[str]:
    for path in sorted(site.rglob("*.html")):
        for link in read_page(path).links:
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = unquote(link).partition("#")
            there = Path(os.path.normpath(path.parent / name.partition("?")[0])) if name else path
            if not there.is_file():
                yield f"{path.relative_to(site)} links to {link}, which is not there"
            elif anchor and there.suffix == ".html" and anchor not in read_page(there).ids:
                yield f"{path.relative_to(site)} links to {link}, and that page has no such anchor"


def foreign_loads(site: Path) -> Iterator[str]:
    for path in sorted(site.rglob("*.html")):
        for address in read_page(path).loaded:
            if re.match(r"(?:https?:)?//", address):
                yield f"{path.relative_to(site)} loads {address}"
    for path in sorted(site.rglob("*.css")):
        yield from (
            f"{path.relative_to(site)} loads from {host}" for host in CSS_HOST.findall(path.read_text())
        )
