"""How a tool that builds something ends: with what must be put right, on one line, and exit code 1."""

from collections.abc import Callable


class Refused(Exception):
    """It cannot be built here, or something about it is wrong."""


def exit_code(build: Callable[[], None]) -> int:
    try:
        build()
    except Refused as refused:
        print(f"no    {refused}")
        return 1
    return 0
