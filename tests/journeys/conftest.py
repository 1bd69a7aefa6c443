"""What needs a program that is not here is not looked at: nginx comes from the system, not from a wheel."""

import shutil
from collections.abc import AsyncIterator

import pytest

from holdfast.config import Config
from holdfast.web.asgi import Application
from tests.journeys.visitors import Visitor, a_site, a_visitor

collect_ignore = [] if shutil.which("nginx") else ["test_nginx.py", "test_nginx_tls.py"]


@pytest.fixture(scope="session")
async def site(config: Config) -> AsyncIterator[Application]:
    async with a_site(config) as application:
        yield application


@pytest.fixture
async def ann(site: Application) -> AsyncIterator[Visitor]:
    """With a browser of her own, in which no scripts run."""
    async with a_visitor(site) as visitor:
        yield visitor


@pytest.fixture
async def eve(site: Application) -> AsyncIterator[Visitor]:
    async with a_visitor(site) as visitor:
        yield visitor
