"""Imports a library without the optional ones that it would load beside it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


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
