"""The command line before it does anything: every process of a box office starts with it."""

import subprocess
import sys

HEAVY = (
    "aiohttp",
    "asyncpg",
    "cryptography",
    "matplotlib",
    "numpy",
    "redis",
    "rich",
    "starlette",
    "structlog",
    "holdfast.app",
)
LOADED = f"import sys, holdfast.cli.main; print([name for name in {HEAVY!r} if name in sys.modules])"


def test_it_loads_nothing_that_serves_or_talks_to_an_engine() -> None:
    ended = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)

    assert ended.stdout.strip() == "[]"
