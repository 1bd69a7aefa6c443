"""Named queries from a package's queries.sql, as attributes: Q.open_holds."""

import re
from importlib import resources

NAME = re.compile(r"^-- name: (\w+)\n((?:--.*\n)*)", re.MULTILINE)


class Queries:
    def __init__(self, package: str, name: str = "queries") -> None:
        text = (resources.files(package) / f"{name}.sql").read_text()
        _, *parts = NAME.split(text)
        for name, _why, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            assert name not in self.__dict__, f"{package}: {name} is written twice"
            setattr(self, name, body.strip().rstrip(";"))

    def __getattr__(self, name: str) -> str:
        raise AttributeError(f"no query named {name}")
