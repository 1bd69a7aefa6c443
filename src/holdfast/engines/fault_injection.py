"""Named points at which a test can kill the process, so that recovery is tested.

`HOLDFAST_CRASH_AT` names a file. The process that reaches the point named in it removes the file and kills
itself, with -9: so of many processes one dies, once. Without it, `fault_points` does nothing.

    before   nothing has happened yet
    during   the request has been sent to the engine or the gateway, and its reply is lost with us
    after    it has happened, and nothing has been made of the answer
"""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import TracebackType

MOMENT_S = 0.001  # for a request to leave us

_orders: Path | None = None
# Around one effect: `with fault_injection.fault_points("map.hold"):`. `arm` replaces it, so callers find it
# through the module at each use. Without a planned crash, a hold runs no function of this module.
fault_points: Callable[[str], AbstractContextManager[object, None]] = nullcontext


def arm(file: str) -> None:
    global _orders, fault_points
    _orders = Path(file) if file else None
    fault_points = FaultPoints if file else nullcontext


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


class FaultPoints:
    """Around one effect: `name:before`, `name:during`, `name:after`."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        if ordered(f"{self._name}:before"):
            die()
        if ordered(f"{self._name}:during"):
            threading.Timer(MOMENT_S, die).start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if ordered(f"{self._name}:after"):
            die()
