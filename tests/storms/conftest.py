"""`pytest tests/storms --full` (make storm) runs the storms at their whole size; without it, smaller ones."""

from collections.abc import AsyncIterator

import pytest

from tests.support.box_office import Office, office


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="storms at their whole size: minutes")


@pytest.fixture(scope="session")
def is_full(pytestconfig: pytest.Config) -> bool:
    # A run of all tests reads this file too late to know the option: then it cannot have been given.
    return bool(pytestconfig.getoption("--full", default=False))


@pytest.fixture(scope="package")
async def stage() -> AsyncIterator[Office]:
    """Two web workers and the jobs, for all storms that need nothing else."""
    async with office() as opened:
        yield opened
