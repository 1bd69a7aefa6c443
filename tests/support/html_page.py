"""A page as a reader without scripts has it: its elements, its links, its forms, its words."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import httpx2

Element = tuple[str, dict[str, str]]

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}


@dataclass
class Reading(HTMLParser):
    """What a browser would make of the text."""

    elements: list[Element] = field(default_factory=list)
    data_blocks: list[str] = field(default_factory=list)  # JSON for machines
    words: list[str] = field(default_factory=list)
    still_open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.still_open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.still_open[-1:] == [tag], f"</{tag}> after {self.still_open[-3:]}"
        self.still_open.pop()

    def handle_data(self, data: str) -> None:
        if self.still_open and self.still_open[-1] == "script":
            self.data_blocks.append(data)
        else:
            self.words.append(data)

    def all(self, tag: str, **attrs: str) -> list[dict[str, str]]:
        return [
            had
            for name, had in self.elements
            if name == tag and all(had.get(each) == value for each, value in attrs.items())
        ]

    def links(self, beginning: str = "/") -> list[str]:
        return [had["href"] for had in self.all("a") if had.get("href", "").startswith(beginning)]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def reading(text: str) -> Reading:
    read = Reading()
    read.feed(text)
    read.close()
    assert not read.still_open, read.still_open
    return read


async def opens(
    api: httpx2.AsyncClient, path: str, *, language: str = "en", status: int = 200, **more: Any
) -> Reading:
    """Opens a page and checks that it is well-formed HTML."""
    headers = {"Accept": "text/html", "Accept-Language": language} | more.pop("headers", {})
    answer = await api.get(path, headers=headers, **more)
    assert answer.status_code == status, (path, answer.status_code, answer.text[:300])
    assert answer.headers["Content-Type"].startswith("text/html")
    return reading(answer.text)


def city_cookie(city: str) -> dict[str, str]:
    """Headers of a browser in which this city was chosen."""
    return {"Cookie": f"holdfast_city={city}"}
