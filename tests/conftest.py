"""Real engines for the whole run: PostgreSQL and Valkey, embedded, on sockets in a temporary folder."""

import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import hypothesis
import pytest
import uvicorn
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling, Scheduling

from holdfast.app import App, asgi_app, open_app
from holdfast.config import Config
from holdfast.engines.embedded import Engines, engines
from holdfast.engines.migrate import migrate
from holdfast.engines.postgres import Postgres, Queries
from holdfast.engines.redis import Redis
from holdfast.sandbox.process import KEEP_ALIVE_S, SandboxSetup, open_sandbox
from holdfast.web.asgi import Application
from tests.support import shows as cast
from tests.support.engine_folder import engine_folder
from tests.support.second_ledger import administration, empty_valkey
from tests.support.shows import Fan
from tests.support.wait import until

GATEWAY_SECRET = "whsec_of_the_tests"
NUMBERS_PER_FILE = 100_000
Q = Queries("holdfast.backup")
_ledgers = count(1)
PRISTINE = "pristine"  # a database with every migration and nothing in it
HERE = Path(__file__).parent
ORDER = ("browser", "storms", "stores", "journeys", "tidy", "rules")  # the longest first
# Files that take a minute begin before others of their folder: no process ends long after the others.
LONG = ("schemathesis", "cli", "gate_command", "growth")
# Of folders whose tests share a box office of several processes, or a browser.
HALF = {"browser": "test_r", "storms": "test_d"}  # files before and after these are two groups
WHOLE = "tidy"  # one group: every process that takes a part of it would parse all files
# Storms that measure time, or count on their own time-outs. The others judge outcomes only. In floods, hashes
# of strangers give way to all other work: beside other tests they would wait until their requests time out.
HURRIED = {"floods", "flushall", "kills", "no_worker", "paused"}
HURRIED |= {"price_steps", "sell_out", "stadium", "viewers"}
# No time limit per example: a busy machine is not a failure, and speed is measured in bench/.
hypothesis.settings.register_profile("holdfast", deadline=None)
hypothesis.settings.load_profile("holdfast")
gc.set_threshold(20_000, 20, 100)  # as a worker of the box office has it


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="storms and queues at their whole size: minutes")


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """One process of a parallel run takes a whole group: what the tests of a group share is set up once.

    Not xdist's own groups (`--dist loadgroup`): they have no effect with this version of pytest.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        folder, name = path.split("/")[1:3]
        if folder == WHOLE:
            return folder
        # In halves: the others would be done long before a whole folder.
        return f"{folder} {name < HALF[folder]}" if folder in HALF else path


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    return GroupScheduling(config, log) if config.getvalue("dist") == "loadscope" else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The second part of a run imports only the files whose tests it runs: seconds less."""
    if config.option.markexpr != "alone" or not collection_path.name.startswith("test_"):
        return None
    is_hurried = collection_path.parent.name == "storms" and subject_of(collection_path) in HURRIED
    return None if is_hurried or "mark.alone" in collection_path.read_text() else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest groups begin first; storms that another test would disturb run alone."""
    for item in items:
        if HERE / "storms" in item.path.parents and subject_of(item.path) in HURRIED:
            item.add_marker("alone")
    items.sort(key=lambda item: subject_of(item.path) not in LONG)
    items.sort(key=lambda item: ORDER.index(item.path.relative_to(HERE).parts[0]))


def subject_of(path: Path) -> str:
    return path.stem.removeprefix("test_")


def pytest_collection_finish() -> None:
    """Modules and tests live as long as the process: they are not looked through for garbage again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
async def running_engines() -> AsyncIterator[Engines]:
    # Several box offices of one process share them.
    with engine_folder() as folder:
        async with engines(folder, connections_max=200) as both:
            connection = await asyncpg.connect(both.database_url)
            await migrate(connection)
            await connection.close()
            async with administration(both.database_url) as postgres:
                await postgres.execute(f"CREATE DATABASE {PRISTINE} TEMPLATE holdfast")
            yield both


@pytest.fixture(scope="session")
async def sandbox(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """The address of a payment gateway that sends no notices: a test that wants them has its own."""
    setup = SandboxSetup(folder=tmp_path_factory.mktemp("sandbox"), secret=GATEWAY_SECRET)
    async with open_sandbox(setup) as application, served(application) as url:
        yield url


@asynccontextmanager
async def served(application: Any) -> AsyncIterator[str]:
    """On a free port, in the loop of the tests."""
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        settings = uvicorn.Config(
            application,
            lifespan="off",
            log_config=None,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(settings)
        serving = asyncio.create_task(server.serve(sockets=[port]))
        await until(lambda: asyncio.sleep(0, server.started))
        try:
            yield f"http://127.0.0.1:{port.getsockname()[1]}"
        finally:  # a server that outlives its socket would answer for the next server with its port
            server.should_exit = True
            await serving


@pytest.fixture(scope="session")
def shared_config(running_engines: Engines, sandbox: str) -> Config:
    """For what makes databases of its own."""
    return Config(
        database_url=running_engines.database_url,
        redis_url=running_engines.redis_url,
        gateway_url=sandbox,
        gateway_secret=GATEWAY_SECRET,
        requests_per_second_max=0,
        logins_per_minute_max=0,
        logins_per_account_hour_max=0,
        logins_per_address_minute_max=0,
        logins_house_minute_max=0,
        signups_per_address_hour_max=0,
        resets_per_account_hour_max=0,
        resets_per_address_hour_max=0,
    )


@pytest.fixture(scope="module")
async def config(shared_config: Config, tmp_path_factory: pytest.TempPathFactory) -> Config:
    """A new ledger for each file: no test depends on which files ran before it in the same process."""
    async with administration(shared_config.database_url) as postgres:
        await postgres.execute("DROP DATABASE IF EXISTS holdfast WITH (FORCE)")
        await postgres.execute(f"CREATE DATABASE holdfast TEMPLATE {PRISTINE} STRATEGY file_copy")
    ledger = await asyncpg.connect(shared_config.database_url)
    await ledger.execute("UPDATE ledger_mark SET ledger_id = gen_random_uuid()")
    # Each file has numbers of its own: what is left of another test is not taken for one of this file's.
    await ledger.fetch(Q.skip_numbers, next(_ledgers) * NUMBERS_PER_FILE)
    await ledger.close()
    await empty_valkey(shared_config.redis_url)
    return replace(shared_config, data_dir=str(tmp_path_factory.mktemp("data")))


@pytest.fixture(scope="module")
async def app(config: Config) -> AsyncIterator[App]:
    async with open_app(config) as opened:
        yield opened


@pytest.fixture(scope="module", params=["batched", "direct"])
async def either_app(request: pytest.FixtureRequest, config: Config) -> AsyncIterator[App]:
    """The box office with batching, and with batching switched off: the same tests pass on both."""
    async with open_app(config if request.param == "batched" else replace(config, batch_max=1)) as opened:
        yield opened


@pytest.fixture(scope="module")
def postgres(app: App) -> Postgres:
    return app.postgres


@pytest.fixture(scope="module")
def redis(app: App) -> Redis:
    return app.redis


@pytest.fixture(scope="module")
async def api(config: Config) -> AsyncIterator[httpx2.AsyncClient]:
    """The ASGI application itself, without a network in between."""
    application = asgi_app(config)
    async with started(application):
        transport = httpx2.ASGITransport(application)
        async with httpx2.AsyncClient(transport=transport, base_url="http://box.office") as client:
            yield client


@asynccontextmanager
async def started(application: Application) -> AsyncIterator[None]:
    """The lifespan that a server would give the application."""
    to_app: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    from_app: asyncio.Queue[Any] = asyncio.Queue()
    task = asyncio.create_task(application({"type": "lifespan"}, to_app.get, from_app.put))
    await to_app.put({"type": "lifespan.startup"})
    assert (await from_app.get())["type"] == "lifespan.startup.complete"
    yield
    await to_app.put({"type": "lifespan.shutdown"})
    assert (await from_app.get())["type"] == "lifespan.shutdown.complete"
    await task


@pytest.fixture
def a_show(app: App) -> Callable[..., Any]:
    return partial(cast.a_show, app)


@pytest.fixture
async def alice(app: App, api: httpx2.AsyncClient) -> Fan:
    return (await cast.fans(app, api, 1))[0]


@pytest.fixture
async def bob(app: App, api: httpx2.AsyncClient) -> Fan:
    return (await cast.fans(app, api, 1))[0]
