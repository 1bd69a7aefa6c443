"""`pytest tests/storms --full` (make storm) runs the storms at their whole size; without it, smaller ones."""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.box_office import Office, office
from tests.support.patroni_pair import missing_programs

# Programs that come from the system, and not from wheels.
MISSING = {
    "test_cluster.py": [name for name in ("haproxy", "nginx") if not shutil.which(name)],
    "test_patroni.py": missing_programs(),
}
collect_ignore = [name for name, programs in MISSING.items() if programs]


ONLY_FULL = {"test_cluster.py", "test_patroni.py"}  # too long to be run each time


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if collection_path.name in ONLY_FULL and not config.getoption("--full") else None


def pytest_configure() -> None:
    if collect_ignore and os.environ.get("CI"):
        raise pytest.UsageError(f"install what these tests need: {MISSING}")


@pytest.fixture(scope="session")
def is_full(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("--full"))


@pytest.fixture(scope="package")
async def stage() -> AsyncIterator[Office]:
    """Two web workers and the jobs, for all storms that need nothing else."""
    async with office() as opened:
        yield opened
