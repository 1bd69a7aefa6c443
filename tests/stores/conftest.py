"""Offices of people, an unused address, and a stage where engines may break.

What is dear to make lasts for all files of this folder, and ends before a process goes on to other folders.
"""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx2
import pytest

from holdfast.accounts import Accounts
from holdfast.app import App, asgi_app, open_app
from holdfast.background import worker_jobs
from holdfast.claim import Pool, Pools
from holdfast.config import Config
from holdfast.engines.loop import running
from holdfast.engines.postgres import Postgres
from holdfast.engines.redis import Redis
from tests.conftest import started
from tests.support.account_processes import Offices
from tests.support.claim_implementations import SIZE, Implementation, Store, new_pool_id, on_valkey
from tests.support.engine_folder import engine_folder
from tests.support.own_engines import Stage, a_stage
from tests.support.pod_house import PodHouse, a_pod_house, without_pod
from tests.support.search_demo import demo_listed


@pytest.fixture
async def offices(postgres: Postgres, redis: Redis) -> AsyncIterator[Offices]:
    offices = Offices(postgres, redis)
    yield offices
    await offices.close()


@pytest.fixture
async def apart(postgres: Postgres, redis: Redis) -> AsyncIterator[Offices]:
    """Offices with signing keys of their own: other users of this ledger keep theirs."""
    schema = f"apart_{secrets.token_hex(4)}"
    await postgres.execute(f"CREATE SCHEMA {schema}")
    await postgres.execute(f"CREATE TABLE {schema}.signing_key (LIKE signing_key INCLUDING ALL)")
    url = f"{postgres._url}{'&' if '?' in postgres._url else '?'}search_path={schema}%2Cpublic"
    own = Postgres(url, pool_max=6, timeout_s=5)
    offices = Offices(own, redis)
    yield offices
    await offices.close()
    await own.close()
    await postgres.execute(f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture(scope="package")
async def pod_house(
    shared_config: Config, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[PodHouse]:
    """Home and two pods, for all files of tests/stores/test_pods_*.py. A test leaves it whole."""
    own = replace(shared_config, data_dir=str(tmp_path_factory.mktemp("data")))
    async with a_pod_house(own, first_redis=12) as made:
        yield made


@pytest.fixture(scope="package")
async def pod_app(pod_house: PodHouse) -> AsyncIterator[App]:
    """With a worker that processes facts."""
    async with open_app(pod_house.config) as opened, running(worker_jobs(opened, {"outbox"})):
        yield opened


@pytest.fixture(scope="package")
async def app_without_east(pod_house: PodHouse) -> AsyncIterator[App]:
    """Of a machine that does not reach the pod `east`."""
    async with open_app(without_pod(pod_house.config, "east")) as opened:
        yield opened


@pytest.fixture(scope="package")
async def pod_api(pod_house: PodHouse) -> AsyncIterator[httpx2.AsyncClient]:
    async with _client(pod_house.config) as client:
        yield client


@pytest.fixture(scope="package")
async def api_without_east(pod_house: PodHouse) -> AsyncIterator[httpx2.AsyncClient]:
    async with _client(without_pod(pod_house.config, "east")) as client:
        yield client


@asynccontextmanager
async def _client(config: Config) -> AsyncIterator[httpx2.AsyncClient]:
    application = asgi_app(config)
    async with started(application):
        transport = httpx2.ASGITransport(application)
        async with httpx2.AsyncClient(transport=transport, base_url="http://box.office") as client:
            yield client


@pytest.fixture
async def people(offices: Offices) -> Accounts:
    return await offices.open()


@pytest.fixture
def email() -> str:
    return f"{secrets.token_hex(8)}@example.org"


@pytest.fixture(scope="package")
async def stage() -> AsyncIterator[Stage]:
    """Engines of their own, which a test may stop, flush and kill; it leaves them running."""
    with engine_folder() as folder:
        async with a_stage(folder) as set_up:
            yield set_up


@pytest.fixture(scope="package")
async def demo(shared_config: Config) -> AsyncIterator[App]:
    """The demo as search has it."""
    async with demo_listed(shared_config) as app:
        yield app


@pytest.fixture(scope="package", params=["batched", "direct"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Implementation]:
    """Implementations of the claim library: the same tests pass on all of them."""
    async with on_valkey(batch_max=128 if request.param == "batched" else 1) as implementation:
        yield implementation


@pytest.fixture
async def pools(server: Implementation) -> AsyncIterator[Pools]:
    async with server.connect() as connected:
        yield connected


@pytest.fixture
def pool_id() -> int:
    return new_pool_id()


@pytest.fixture
async def pool(pools: Pools, pool_id: int) -> Pool:
    return await pools.open(pool_id, size=SIZE)


@pytest.fixture
def store() -> Store:
    return Store()
