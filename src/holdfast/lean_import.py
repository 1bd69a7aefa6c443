"""Imports with less work: a library without the optional ones that it would load beside it."""

import atexit
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec

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


def load_redis() -> None:
    """The connections of redis-py without its clients and commands, which we do not use: 19 MB.

    With OpenTelemetry installed it would count its own calls, which we do not read: another 9 MB.
    """
    for name in ("redis", "redis.asyncio"):
        defer_package(name)
    with without("opentelemetry"):
        import redis.asyncio.connection  # noqa: F401


def load_uvicorn() -> None:
    """The server without its command line and its supervisors: 2 MB."""
    defer_package("uvicorn")
    import uvicorn.server  # noqa: F401


def defer_package(name: str) -> None:
    """Modules of the package can be imported without its __init__, which imports all of them.

    The first use of a name of the package itself runs it.
    """
    spec = find_spec(name)
    if name in sys.modules or spec is None or spec.loader is None:
        return
    package = module_from_spec(spec)

    def load(attribute: str) -> object:
        if attribute.startswith("__"):  # the import system looks for some of these
            raise AttributeError(attribute)
        if parent:  # its own modules import names of the parent, and that must not begin in their midst
            _load_deferred(parent)
        _load_deferred(name)
        return getattr(package, attribute)

    package.__dict__["__getattr__"] = load
    sys.modules[name] = package
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, package)


def _load_deferred(name: str) -> None:
    package = sys.modules[name]
    spec = package.__spec__
    if package.__dict__.pop("__getattr__", None) is not None and spec is not None and spec.loader is not None:
        spec.loader.exec_module(package)
