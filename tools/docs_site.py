"""Build the documentation as a static site: `make site`. It needs no network, and neither does a reader.

*.md                  ─► pages: links between them are adapted, links to source files become plain text
docs/README.md        ─► the navigation: a part per heading, a page per link
```mermaid            ─► drawings (SVG)
OpenAPI documents     ─► reference/*.html: Swagger UI, from the package that serves it at /docs
all of these          ─► Sphinx with MyST and Furo ─► build/site/index.html

The same files give the same bytes. `--source URL` links source files to a forge.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from string import Template

import msgspec

from holdfast.routes import ROUTES
from holdfast.web.audiences import DOCUMENTS
from holdfast.web.openapi import documents
from holdfast.web.reference import STATIC, SWAGGER_UI, swagger_ui_file
from tools.state_diagram import draw_states

ROOT = Path(__file__).parents[1]
SETTINGS = ROOT / "tools" / "site"
OUTPUT = ROOT / "build" / "site"
INDEX = "docs/README.md"
DECISIONS = "docs/decisions"
FENCE = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
MERMAID = re.compile(r"```mermaid\n(.*)```", re.DOTALL)
# In an OpenAPI document: addresses of a running server, which the site has pages for.
SERVED = re.compile(r"\]\((/[^)]+)\)")


@dataclass(frozen=True)
class Site:
    """The pages and where they are staged for Sphinx."""

    folder: Path
    source: str = ""  # address of the repository's files on a forge
    only: tuple[str, ...] = ()  # these pages beside README.md and the index; empty: all

    @cached_property
    def pages(self) -> dict[str, str]:
        """Path in the repository → path in the site: pages at the root, in docs, and in the index."""
        written = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
        paths = {str(path.relative_to(ROOT)) for path in written}
        paths |= {wanted for wanted in listed((ROOT / INDEX).read_text()) if wanted.endswith(".md")}
        if self.only:
            paths &= {"README.md", INDEX, *self.only}
        return {path: re.sub(r"README\.md\Z", "index.md", path) for path in sorted(paths)}

    @cached_property
    def folders(self) -> dict[str, str]:
        """Folders that have a page in the site."""
        own = {DECISIONS: f"{DECISIONS}/index.md"} if self.decisions else {}
        return own | {
            str(PurePosixPath(path).parent): page
            for path, page in self.pages.items()
            if PurePosixPath(page).name == "index.md"
        }

    @property
    def decisions(self) -> list[str]:
        return [PurePosixPath(page).name for page in self.pages if page.startswith(f"{DECISIONS}/")]

    def stage(self) -> None:
        for path, page in self.pages.items():
            self.write(page, self.adapt(path, (ROOT / path).read_text()))
        self.write("index.md", self.adapt("README.md", (ROOT / "README.md").read_text()) + self.navigation())
        if self.decisions:
            self.write(f"{DECISIONS}/index.md", self.list_decisions())
        self.write("docs/reference.md", self.adapt("docs/reference.md", list_references()))
        stage_references(self.folder / "extra" / "reference")
        shutil.copy(SETTINGS / "conf.py", self.folder)
        (self.folder / "static").mkdir()
        shutil.copy(SETTINGS / "site.css", self.folder / "static")
        (self.folder / "static" / "icon.svg").write_bytes((STATIC / "icon.svg").read_bytes())

    def write(self, page: str, text: str) -> None:
        path = self.folder / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def adapt(self, path: str, text: str) -> str:
        """Links outside of blocks lead to pages of the site; drawings are drawn."""
        parts = FENCE.split(text)
        parts[::2] = [LINK.sub(lambda found: self.link(path, found), part) for part in parts[::2]]
        parts[1::2] = map(draw, parts[1::2])
        return "".join(parts)

    def link(self, path: str, found: re.Match[str]) -> str:
        is_picture, text, target = found.groups()
        if "://" in target or target.startswith(("#", "mailto:")):
            return found[0]
        name, mark, anchor = target.partition("#")
        here = PurePosixPath(path).parent
        wanted = os.path.normpath(here / name)
        if is_picture:
            copy = self.folder / wanted
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / wanted, copy)
            return found[0]
        if page := self.pages.get(wanted) or self.folders.get(wanted):
            return f"[{text}]({os.path.relpath(page, here)}{mark}{anchor})"
        return f"[{text}]({self.source}/{wanted})" if self.source else str(text)

    def navigation(self) -> str:
        """Tables of contents that are only shown at the side, in the order of docs/README.md."""
        text = (ROOT / INDEX).read_text()
        _, *parts = HEADING.split(text)
        sections = [("", [self.pages[INDEX]])]
        for name, part in zip(parts[::2], parts[1::2], strict=True):
            entries = [self.pages.get(wanted) or self.folders.get(wanted, "") for wanted in listed(part)]
            sections.append(
                (name, [*filter(None, entries), *(["docs/reference.md"] if "API" in name else [])])
            )
        return "".join(contents(name, entries) for name, entries in sections)

    def list_decisions(self) -> str:
        head = ["# Decisions", "", "One page per design decision.", "", "```{toctree}"]
        return "\n".join([*head, *self.decisions, "```", ""])


def listed(text: str) -> Iterator[str]:
    """Where links of the index lead, as paths in the repository."""
    for found in LINK.finditer(text):
        yield os.path.normpath(PurePosixPath(INDEX).parent / found[3].partition("#")[0])


def contents(caption: str, entries: list[str]) -> str:
    head = ["```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", *head, "", *dict.fromkeys(entries), "```", ""])


def draw(block: str) -> str:
    """A block as Sphinx gets it: Mermaid as a drawing, languages that Pygments does not know as text."""
    if found := MERMAID.fullmatch(block):
        drawing = draw_states(found[1])
        return f'```{{raw}} html\n<figure class="diagram">{drawing}</figure>\n```'
    return re.sub(r"\A```(?:csv|http|po)?$", "```text", block, flags=re.MULTILINE)


def list_references() -> str:
    lines = ["# API reference", ""]
    lines += ["Every operation with its parameters, bodies, responses and error codes. All operations in one"]
    lines += ["table: [api.md](api.md).", "", "<ul>"]
    for audience, about in DOCUMENTS.items():
        intro = about.intro.partition(". ")[0]
        lines.append(f'<li><a href="../reference/{audience}.html">{about.title}</a>: {intro}.</li>')
    return "\n".join([*lines, "</ul>", ""])


def stage_references(folder: Path) -> None:
    """A page per OpenAPI document, with Swagger UI beside it."""
    folder.mkdir(parents=True)
    for name in SWAGGER_UI:
        shutil.copy(swagger_ui_file(name), folder / name)
    for name in ("docs.css", "icon.svg"):
        (folder / name).write_bytes((STATIC / name).read_bytes())
    shutil.copy(SETTINGS / "reference.js", folder)
    shell = Template((SETTINGS / "reference.html").read_text())
    for audience, document in documents(ROUTES).items():
        file = PurePosixPath(DOCUMENTS[audience].path).name
        text = SERVED.sub(lambda found: f"]({place(found[1])})", msgspec.json.encode(document).decode())
        (folder / file).write_text(text)
        (folder / f"{audience}.js").write_text(f"window.openapi = {text};\n")
        links = "\n".join(
            f'    <a href="{one}.html"{" aria-current=page" * (one is audience)}>{one.capitalize()}</a>'
            for one in DOCUMENTS
        )
        values = {"title": DOCUMENTS[audience].title, "audience": audience, "file": file, "links": links}
        (folder / f"{audience}.html").write_text(shell.substitute(values))


def place(served: str) -> str:
    """Where the site has what a running server has there."""
    for audience, about in DOCUMENTS.items():
        if served == about.path:
            return f"{audience}.html"
    _, subject, code = served.split("/")
    assert subject == "problems", served
    return f"../docs/problems.html#{code}"


def run_sphinx(pages: Path, output: Path) -> None:
    """Warnings are errors: a link or an anchor that is not there, a page outside of the navigation."""
    with tempfile.TemporaryDirectory() as doctrees:
        words = ["-b", "html", "-W", "--keep-going", "-q", "-d", doctrees, str(pages), str(output)]
        subprocess.run([sys.executable, "-m", "sphinx", *words], check=True)
    (output / ".buildinfo").unlink()
    (output / "_sources").rmdir()


def differing_files(one: Path, other: Path) -> list[str]:
    found = [
        {str(path.relative_to(site)): path.read_bytes() for path in site.rglob("*") if path.is_file()}
        for site in (one, other)
    ]
    return sorted(name for name in found[0] | found[1] if found[0].get(name) != found[1].get(name))


def main() -> None:
    parser = argparse.ArgumentParser("tools.docs_site", description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder of the site; it is replaced")
    parser.add_argument("--source", default="", help="address of the repository's files on a forge")
    parser.add_argument("pages", nargs="*", help="only these pages, for a quick look: docs/live.md")
    parser.add_argument("--twice", action="store_true", help="build it again and compare every byte")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        pages, again = Path(work) / "pages", Path(work) / "again"
        Site(pages, words.source.rstrip("/"), tuple(words.pages)).stage()
        shutil.rmtree(words.output, ignore_errors=True)
        builds = [words.output, again] if words.twice else [words.output]
        with ThreadPoolExecutor() as both:  # two processes at the same time: each takes one processor
            list(both.map(lambda output: run_sphinx(pages, output), builds))
        if words.twice and (different := differing_files(words.output, again)):
            sys.exit(f"two builds differ: {', '.join(different)}")
    print(f"open {words.output / 'index.html'}")


if __name__ == "__main__":
    main()
