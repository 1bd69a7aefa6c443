"""Points at which a process can be told to die, so that what happens then is tested and not hoped for.

A point has a name. `HOLDFAST_CRASH_AT=gateway.charge:after` makes a process kill itself, with -9, when it comes
there the first time; `…:after#3` the third time. Never set, it costs one comparison.

    before   nothing has happened yet
    after    it has happened, and nobody has looked at the answer: the reply is lost
"""

import os
import signal
from types import TracebackType

_armed = ""
_passes_left = 0


def arm(where: str) -> None:
    global _armed, _passes_left
    _armed, _, nth = where.partition("#")
    _passes_left = int(nth or 1)


def at(point: str) -> None:
    if not _armed or point != _armed:
        return
    global _passes_left
    _passes_left -= 1
    if _passes_left == 0:
        os.kill(os.getpid(), signal.SIGKILL)


class crash_points:  # noqa: N801 (reads as a verb in `with`)
    """Around one effect: `name:before`, `name:after`."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        if _armed:
            at(self._name + ":before")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if _armed:
            at(self._name + ":after")
