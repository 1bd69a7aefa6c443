"""Queries of .sql files, by their names."""

import re
from importlib import resources

# Text of every named query → folder and name, for spans: none of them has a text or a value of a query.
QUERY_NAMES: dict[str, str] = {}
NAME = re.compile(r"^-- name: (\w+)\n((?:--.*\n)*)", re.MULTILINE)


class Queries:
    """Named queries of one .sql file as attributes: `Q.open_holds`."""

    def __init__(self, package: str, name: str = "queries") -> None:
        text = (resources.files(package) / f"{name}.sql").read_text()
        _, *parts = NAME.split(text)
        for name, _why, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            assert name not in self.__dict__, f"{package}: {name} is written twice"
            query = body.strip().rstrip(";")
            QUERY_NAMES[query] = f"{package.removeprefix('holdfast.')}.{name}"
            setattr(self, name, query)

    def __getattr__(self, name: str) -> str:
        raise AttributeError(f"no query named {name}")
