"""Builds the mutants of this folder."""

import shlex

from tools.mutants import Mutant, Patch


def undo(name: str, tests: str, *patches: tuple[str, str, str]) -> Mutant:
    """`tests`: arguments of one run of pytest. A patch: a file, a text that is in it once, and another."""
    return Mutant(name, tuple(Patch(*patch) for patch in patches), (tuple(shlex.split(tests)),))
