"""Fixtures of the journeys. nginx and HAProxy come from the system, not from wheels: some tests need them."""

import shutil
from collections.abc import AsyncIterator

import httpx2
import pytest

from holdfast.app import App
from holdfast.config import Config
from holdfast.web.asgi import Application
from tests.fakes.oidc_provider_process import OidcProvider, oidc_provider
from tests.support.browser_session import Visitor, a_site, a_visitor
from tests.support.organiser import Organiser, Stage, a_stage, sign_in_organiser

NEEDED = {
    "nginx": ["test_nginx.py", "test_nginx_addresses.py", "test_nginx_queue.py", "test_nginx_tls.py"],
    "haproxy": ["test_haproxy.py"],
}
collect_ignore = [name for program, names in NEEDED.items() if not shutil.which(program) for name in names]


@pytest.fixture(scope="module")
async def acme() -> AsyncIterator[OidcProvider]:
    """A sign-in service."""
    async with oidc_provider() as running:
        yield running


@pytest.fixture(scope="module")
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


@pytest.fixture
async def organiser(app: App, api: httpx2.AsyncClient) -> Organiser:
    return await sign_in_organiser(app, api)


@pytest.fixture
async def stage(app: App, api: httpx2.AsyncClient, organiser: Organiser) -> Stage:
    return await a_stage(app, api, organiser)
