"""Named points at which a test can kill the process, so that recovery is tested.

`HOLDFAST_CRASH_AT` names a file. The process that reaches the point named in it removes the file and kills
itself, with -9: so of many processes one dies, once. Never set, a point costs one comparison.

    before   nothing has happened yet
    during   the request has been sent to the engine or the gateway, and its reply is lost with us
    after    it has happened, and nothing has been made of the answer
"""

import os
import signal
import threading
from pathlib import Path
from types import TracebackType

MOMENT_S = 0.001  # for a request to leave us

_orders: Path | None = None


def arm(file: str) -> None:
    global _orders
    _orders = Path(file) if file else None


def ordered(point: str) -> bool:
    """Whether this process is to die here and now; true once."""
    assert _orders is not None
    try:
        if _orders.read_text().strip() != point:
            return False
        _orders.unlink()
    except FileNotFoundError:  # no crash is planned, or another process was first
        return False
    return True


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class fault_points:
    """Around one effect: `name:before`, `name:during`, `name:after`."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        if _orders is None:
            return
        if ordered(f"{self._name}:before"):
            die()
        if ordered(f"{self._name}:during"):
            threading.Timer(MOMENT_S, die).start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if _orders is not None and ordered(f"{self._name}:after"):
            die()
