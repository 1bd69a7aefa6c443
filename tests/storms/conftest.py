"""`pytest tests/storms --full` (make storm) runs the storms at their whole size; without it, smaller ones."""

from collections.abc import AsyncIterator

import pytest

from tests.support.box_office import Office, office


@pytest.fixture(scope="session")
def is_full(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("--full"))


@pytest.fixture(scope="package")
async def stage() -> AsyncIterator[Office]:
    """Two web workers and the jobs, for all storms that need nothing else."""
    async with office() as opened:
        yield opened
