"""Markdown pages as the rules about docs read them: fenced blocks, headings, links."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.tidy.tree import ROOT, short

PARSER = MarkdownIt("commonmark").enable("table")
NOT_RUNNABLE = re.compile(r"<!-- not runnable: (.+?) -->")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code; `section` is the anchor of the heading above it."""

    page: str
    line: int
    language: str
    text: str
    section: str
    reason: str  # why it cannot be run, if the page says so: `<!-- not runnable: reason -->` above the block

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


@cache
def parsed(path: Path) -> tuple[Token, ...]:
    return tuple(PARSER.parse(path.read_text()))


def blocks(path: Path, root: Path = ROOT) -> Iterator[Block]:
    reason = section = before = ""
    for token in parsed(path):
        if token.type in ("fence", "code_block"):
            line = token.map[0] + 1 if token.map else 0
            yield Block(short(path, root), line, token.info.strip(), token.content, section, reason)
        if before == "heading_open":
            section = slug(plain(token))
        found = NOT_RUNNABLE.search(token.content) if token.type == "html_block" else None
        reason, before = found[1] if found else "", token.type


def anchors(path: Path) -> set[str]:
    """The anchors that a forge gives to the headings of a page: a second of the same words gets `-1`."""
    tokens = parsed(path)
    seen: Counter[str] = Counter()
    found = set()
    for before, token in pairwise(tokens):
        if before.type == "heading_open":
            name = slug(plain(token))
            found.add(f"{name}-{seen[name]}" if seen[name] else name)
            seen[name] += 1
    return found


def plain(inline: Token) -> str:
    return "".join(one.content for one in inline.children or () if one.type in ("text", "code_inline"))


def slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def links(path: Path) -> Iterator[str]:
    """Where the links and pictures of a page lead."""
    for token in parsed(path):
        for one in token.children or ():
            target = one.attrGet("href") if one.type == "link_open" else one.attrGet("src")
            if target:
                yield str(target)
