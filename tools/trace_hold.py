"""Which source files run for one hold that a browser's form sends: the last one of a known guest in a test.

    python -m tools.trace_hold                             prints the files, and the values they pass on
    python -m tools.trace_hold --root DIR --out FILE       of another tree; the list goes to a file as well
    python -m tools.trace_hold tests/journeys/test_x.py    with another test that sends the form twice

It runs pytest with itself as a plugin. Functions count when they run in the request's own context, or in a
task that the request started; background jobs of the same process do not count.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from types import FrameType
from typing import Any

TEST = ("tests/journeys/test_site_seats.py", "-k", "guest")
HOLD = re.compile(r"/shows/\d+/hold")
OUT = "HOLDFAST_HOLD_TRACE"  # in the environment of the pytest that is traced
IS_TRACED: ContextVar[bool] = ContextVar("is_traced", default=False)


@dataclass
class Trace:
    """What ran between the request and the response of one hold."""

    files: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)  # classes of records, as arguments and results

    def __call__(self, frame: FrameType, event: str, result: Any) -> None:
        _, found, rest = frame.f_code.co_filename.rpartition("/src/holdfast/")
        if not found or event not in ("call", "return") or not IS_TRACED.get():
            return
        if frame.f_code.co_name != "<module>":
            self.files.add(rest)
            self.values.update(map(record_name, [result, *frame.f_locals.values()]))

    @contextmanager
    def running(self) -> Iterator[None]:
        token = IS_TRACED.set(True)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            IS_TRACED.reset(token)

    def write(self, path: Path) -> None:
        values = [f"value {name}" for name in sorted(self.values - {""})]
        path.write_text("\n".join([*sorted(self.files), *values]) + "\n")


def record_name(value: Any) -> str:
    """module.Class of a Struct, dataclass or named tuple, also of the first one in a list; else empty."""
    if isinstance(value, list | tuple) and value and not hasattr(value, "_fields"):
        value = value[0]
    kind = type(value)
    is_record = is_dataclass(kind) or hasattr(kind, "__struct_fields__") or hasattr(kind, "_fields")
    package, _, module = kind.__module__.partition(".")
    return f"{module}.{kind.__name__}" if is_record and package == "holdfast" else ""


def pytest_configure() -> None:
    """As a plugin: trace every hold form that the test client sends, and write down the last that worked."""
    if OUT not in os.environ:
        return
    import httpx2

    send = httpx2.ASGITransport.handle_async_request

    async def traced(self: Any, request: Any) -> Any:
        if request.method != "POST" or not HOLD.fullmatch(request.url.path):
            return await send(self, request)
        trace = Trace()
        with trace.running():
            response = await send(self, request)
        if response.status_code == 303 and "cookie" in request.headers:
            trace.write(Path(os.environ[OUT]))
        return response

    httpx2.ASGITransport.handle_async_request = traced  # type: ignore[method-assign]


def traced_hold(root: Path, test: list[str]) -> list[str]:
    """The lines that the plugin wrote."""
    here = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "trace"
        paths = os.pathsep.join(map(str, (root / "src", root, here)))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tools.trace_hold", *test]
        environment = os.environ | {"PYTHONPATH": paths, OUT: str(out)}
        ran = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
        if ran.returncode or not out.exists():
            sys.exit(f"{ran.stdout}\n{ran.stderr}\nno hold of a known guest was traced")
        return out.read_text().splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the tree to trace")
    parser.add_argument("--out", type=Path, help="also write the list to this file")
    parser.add_argument("test", nargs="*", default=list(TEST), help="arguments for pytest")
    options = parser.parse_args()
    lines = traced_hold(options.root.resolve(), options.test)
    values = [line for line in lines if line.startswith("value ")]
    print(f"{len(lines) - len(values)} files, {len(values)} classes of values", *lines, sep="\n")
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
