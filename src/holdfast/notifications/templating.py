"""Reads words and templates from the package, once a process."""

import tomllib
from functools import cache
from importlib import resources

from holdfast.accounts import LANGUAGES
from holdfast.notifications.message import Stationery

FOLDER = resources.files("holdfast.notifications") / "templates"


@cache
def stationery() -> Stationery:
    from jinja2 import Environment, StrictUndefined

    # In a page everything is escaped, whoever typed it; a text has nothing to escape from.
    pages = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    texts = Environment(autoescape=False, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return Stationery(
        words={name: tomllib.loads(_read(f"{name}.toml")) for name in LANGUAGES},
        html=pages.from_string(_read("letter.html")),
        text=texts.from_string(_read("letter.txt")),
        style=_read("letter.css").strip(),
    )


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
