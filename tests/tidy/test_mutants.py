"""The mutants of tools/ still apply to the code they break: else running them proves nothing."""

from pathlib import Path

from tests.tidy.tree import ROOT, assert_no_violations, written
from tools.defects import DEFECTS
from tools.mutants import MUTANTS, Patch, applies

EVERY = (*MUTANTS, *DEFECTS)


def test_a_patch_that_does_not_apply_is_found(tmp_path: Path) -> None:
    written(tmp_path, {"a.py": "x = 1\ny = 2\ny = 2\n"})

    found = [applies(Patch("a.py", old, ""), tmp_path) for old in ("x = 1", "y = 2", "z")]

    assert found == [True, False, False]


def test_every_mutant_applies() -> None:
    patches = [(mutant.name, patch) for mutant in EVERY for patch in mutant.patches]

    assert_no_violations(f"{name}: {patch.file} has changed" for name, patch in patches if not applies(patch))


def test_every_mutant_names_test_files_that_exist() -> None:
    files = {word for mutant in EVERY for words in mutant.tests for word in words if ".py" in word}

    assert [file for file in files if not (ROOT / file.partition("::")[0]).exists()] == []


def test_every_mutant_has_a_name_of_its_own() -> None:
    names = [mutant.name for mutant in EVERY]

    assert len(set(names)) == len(names)
