"""The mutants of tools/mutants.py still fit the code they break: else running them proves nothing."""

from pathlib import Path

from tests.tidy.tree import ROOT, assert_no_violations, written
from tools.mutants import MUTANTS, Patch, fits


def test_a_patch_that_does_not_fit_is_found(tmp_path: Path) -> None:
    written(tmp_path, {"a.py": "x = 1\ny = 2\ny = 2\n"})

    assert [fits(Patch("a.py", old, ""), tmp_path) for old in ("x = 1", "y = 2", "z")] == [True, False, False]


def test_every_mutant_fits() -> None:
    patches = [(mutant.name, patch) for mutant in MUTANTS for patch in mutant.patches]

    assert_no_violations(f"{name}: {patch.file} has changed" for name, patch in patches if not fits(patch))


def test_every_mutant_has_tests_that_are_there() -> None:
    files = {word for mutant in MUTANTS for words in mutant.tests for word in words if word.endswith(".py")}

    assert [file for file in files if not (ROOT / file).exists()] == []
