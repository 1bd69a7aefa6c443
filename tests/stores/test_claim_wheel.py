"""The claim library as a wheel of its own (R41): what is in it, and its tutorial in an empty environment."""

import asyncio
import os
import re
import sys
import tomllib
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from holdfast.engines.embedded import engines
from tests.support.engine_folder import engine_folder

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "claim.md"
PROJECT = ROOT / "wheels" / "claim"
URL = "redis://127.0.0.1:6379/0"  # in the tutorial
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")
LIST_MODULES = (
    "import sys, holdfast.claim\nprint(*[name for name in sys.modules if name.startswith('holdfast')])"
)
# The environment without what would change which modules a program finds.
OURS = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


async def run(*words: str | Path, cwd: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *map(str, words), cwd=cwd, env=OURS, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, output.decode()
    return output.decode()


def dependencies_of(names: list[str]) -> Iterator[Distribution]:
    """These distributions of our own environment, and what they need on this Python."""
    for requirement in map(Requirement, names):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            found = distribution(requirement.name)
            yield found
            yield from dependencies_of(found.requires or [])


def link_packages(packages: Path, names: list[str]) -> None:
    """Into a new environment, as if they had been installed there; no other package can be imported."""
    for found in dependencies_of(names):
        tops = {path.parts[0] for path in found.files or () if path.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(found.locate_file(top))))


@pytest.fixture(scope="module")
async def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    await run(
        *(*PIP, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", folder, PROJECT), cwd=folder
    )
    (built,) = folder.glob("holdfast_claim-*.whl")
    return built


@pytest.fixture(scope="module")
async def python(wheel: Path) -> Path:
    """Of an environment with the wheel and what it declares to need; pip checks that this is all."""
    folder = wheel.parent / "environment"
    await asyncio.to_thread(venv.create, folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    link_packages(
        packages, tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["dependencies"]
    )
    found = folder / "bin" / "python"
    await run(*PIP, "--python", found, "install", "--no-index", wheel, cwd=folder)
    return found


def modules_in(wheel: Path) -> set[str]:
    files = [name for name in ZipFile(wheel).namelist() if name.endswith(".py")]
    return {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in files}


async def test_the_wheel_has_exactly_the_modules_that_the_library_loads(wheel: Path, python: Path) -> None:
    loaded = await run(python, "-c", LIST_MODULES, cwd=wheel.parent)

    assert modules_in(wheel) == set(loaded.split())
    assert "holdfast/py.typed" in ZipFile(wheel).namelist()
    assert not [name for name in ZipFile(wheel).namelist() if name.endswith(".sql")]


async def test_the_box_office_loads_no_more_for_the_library(wheel: Path) -> None:
    """The big wheel has the same library: importing it there costs the same."""
    loaded = await run(sys.executable, "-c", LIST_MODULES, cwd=wheel.parent)

    assert set(loaded.split()) == modules_in(wheel)


async def test_the_tutorial_prints_what_it_says(python: Path, tmp_path: Path) -> None:
    pairs = re.findall(r"```python\n(.*?)```\n\nIt prints:\n\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(pairs) == PAGE.read_text().count("```python")
    with engine_folder() as folder:
        async with engines(folder, database_url="not used") as both:
            for program, expected in pairs:
                assert URL in program
                (tmp_path / "tutorial.py").write_text(program.replace(URL, both.redis_url))

                assert await run(python, "tutorial.py", cwd=tmp_path) == expected


def test_the_bounds_are_those_of_the_box_office() -> None:
    own = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["dependencies"]
    all_of_them = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]

    assert set(own) <= set(all_of_them)
