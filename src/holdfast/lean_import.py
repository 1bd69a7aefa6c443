"""Imports with less work: a library without the optional ones that it would load beside it."""

import atexit
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS_MAX = 200_000  # that a command imports
GC_EVERY = 20_000  # new objects between two looks for garbage in cycles, in a server


def skip_collecting() -> None:
    """No look for garbage in cycles while a command imports what it needs: all of that stays."""
    gc.set_threshold(OBJECTS_MAX, 20, 100)
    # msgspec 0.22 may crash while the interpreter takes its objects apart; it needs none of that to end.
    atexit.register(gc.freeze)


def freeze_imports() -> None:
    """Of a server: everything loaded so far lives as long as the process, and little garbage is in cycles.

    With Python's own thresholds a busy worker spends several hundredths of its time looking for some.
    """
    gc.freeze()
    gc.set_threshold(GC_EVERY, 20, 100)


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Inside the block an import of them fails, unless they are loaded already."""
    missing = [name for name in names if name not in sys.modules]
    for name in missing:
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        for name in missing:
            del sys.modules[name]


def load_structlog() -> None:
    """Before anything else imports it: with rich it would draw tracebacks, which we never show, for 4 MB."""
    with without("rich"):
        import structlog  # noqa: F401
