"""pretix from its package, in a virtual environment of its own in the cache folder, and its settings file."""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.errors import BenchError

VERSION = "2026.8.0"
GUNICORN_VERSION = "27.0.1"
# Their versions are part of the results.
NAMED = ("pretix", "gunicorn", "Django", "celery", "psycopg2-binary", "redis")
INSTALL_WITHIN_S = 900


@dataclass(frozen=True)
class PretixSettings:
    """What its guide for one machine sets; the rest has its defaults: no debug mode, templates cached."""

    url: str
    folder: Path  # for uploads, logs and its secret
    database: str
    database_host: str  # the folder of the socket
    database_user: str
    redis: str  # redis://host:port

    def render(self) -> str:
        return f"""[pretix]
instance_name=Peers
url={self.url}
currency=EUR
datadir={self.folder}
; off: it would fetch exchange rates
ecb_rates=off

[database]
backend=postgresql
name={self.database}
user={self.database_user}
host={self.database_host}

[mail]
from=tickets@example.com
host=127.0.0.1

[redis]
location={self.redis}/0
sessions=true

[celery]
backend={self.redis}/1
broker={self.redis}/2
"""


async def install_pretix(cache: Path) -> Path:
    """The Python of its environment; made if it is not there."""
    environment = cache / f"pretix-{VERSION}"
    python, mark = environment / "bin" / "python", environment / ".installed"
    if not mark.exists():
        await run(sys.executable, "-m", "venv", "--clear", str(environment), within_s=INSTALL_WITHIN_S)
        packages = (f"pretix=={VERSION}", f"gunicorn=={GUNICORN_VERSION}")
        await run(str(python), "-m", "pip", "install", "-q", *packages, within_s=INSTALL_WITHIN_S)
        mark.touch()
    return python


async def read_versions(python: Path) -> dict[str, str]:
    lines = (await run(str(python), "-m", "pip", "freeze", within_s=60)).splitlines()
    return {name: version for name, _, version in (line.partition("==") for line in lines) if name in NAMED}


async def run(*command: str, within_s: float, variables: dict[str, str] | None = None, text: str = "") -> str:
    """Run a program on this input; returns its output, or raises a BenchError with its last words."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**clean_environment(), **(variables or {})},
    )
    try:
        output, errors = await asyncio.wait_for(process.communicate(text.encode()), within_s)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise BenchError(f"{command[:4]} took longer than {within_s:.0f} s") from None
    if process.returncode:
        raise BenchError(f"{command[:4]} failed: {errors.decode(errors='replace')[-2000:]}")
    return output.decode()


def clean_environment() -> dict[str, str]:
    """Without the operator's settings of either system, and with modules compiled once."""
    ignored = ("HOLDFAST_", "PRETIX_", "DJANGO_", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(ignored)}
