"""A wheel installs what its bounds allow, not what the lock files say: every dependency has two bounds."""

import re
import tomllib
from collections.abc import Iterator

from packaging.requirements import Requirement

from tests.tidy.tree import ROOT, assert_no_violations

LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


def find_unbounded(names: list[str], locked: dict[str, str]) -> Iterator[str]:
    for requirement in map(Requirement, names):
        bounds = {one.operator for one in requirement.specifier}
        if not {">=", "<"} <= bounds:
            yield f"{requirement.name}: give it a lower and an upper bound"
        elif not requirement.specifier.contains(locked[requirement.name]):
            yield f"{requirement.name}: the bounds exclude {locked[requirement.name]} of the lock file"


def test_a_dependency_without_bounds_or_outside_of_them_is_found() -> None:
    locked = {"a": "1.2", "b": "1.2", "c": "1.2"}

    found = list(find_unbounded(["a", "b>=1,<2", "c>=2,<3"], locked))

    assert [line.partition(":")[0] for line in found] == ["a", "c"]


def test_every_dependency_has_bounds_that_the_lock_file_meets() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [name for names in project["optional-dependencies"].values() for name in names]
    locked = dict(LOCKED.findall((ROOT / "requirements" / "dev.txt").read_text()))

    assert_no_violations(find_unbounded([*project["dependencies"], *extras], locked))
