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
# A child process that finds no engine: what it has loaded by then is what it needs to serve.
WORKER = """
import os, runpy, sys
os.environ["HOLDFAST_DATABASE_URL"] = "postgresql://127.0.0.1:1"
os.environ["HOLDFAST_REDIS_URL"] = "redis://127.0.0.1:1"
os.environ["HOLDFAST_GATEWAY"] = "sandbox"
sys.argv = ["holdfast", "jobs"]
try:
    runpy.run_module("holdfast", run_name="__main__")
except SystemExit as ended:
    print(ended.code, [name for name in ("aiohttp", "rich", "structlog", "typer") if name in sys.modules])
"""

# What web workers and jobs import before their first job, as run_child does.
SELLING = """
import sys
from holdfast.lean_import import load_redis
load_redis()
import holdfast.app, holdfast.background, holdfast.routes, holdfast.site.pages, holdfast.web_jobs
print([name for name in ("redis.client", "redis.commands") if name in sys.modules])
"""


def run(program: str) -> str:
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return ended.stdout.strip()


def test_it_loads_nothing_that_serves_or_talks_to_an_engine() -> None:
    assert run(LOADED) == "[]"


def test_a_worker_loads_neither_rich_nor_aiohttp_nor_typer_before_it_needs_them() -> None:
    """Each is several megabytes, in every process of the demo, and time of every start."""
    assert run(WORKER) == "2 ['structlog']"


def test_no_process_that_sells_loads_the_clients_of_redis_py() -> None:
    """Only checks use them. Everything else has connections of its own making."""
    assert run(SELLING) == "[]"
