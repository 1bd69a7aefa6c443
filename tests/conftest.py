"""Real engines for the whole run: PostgreSQL and Valkey, embedded, on sockets in a temporary folder."""

import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import hypothesis
import pytest
import uvicorn
import uvloop
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling, Scheduling

from holdfast.app import App
from holdfast.config import Config
from holdfast.engines.embedded import Engines, engines
from holdfast.engines.postgres import Postgres
from holdfast.engines.redis import Redis
from holdfast.sandbox.process import KEEP_ALIVE_S, SandboxSetup, open_sandbox
from holdfast.web.asgi import Application
from tests.support import shows as cast
from tests.support.empty_ledger import (
    fill_early,
    fill_with_ledger,
    provide_place,
    remove_place,
    turn_on_the_machine,
)
from tests.support.engine_folder import engine_folder
from tests.support.opened import asgi_app, enter_house, open_app
from tests.support.second_ledger import PRISTINE, administration, empty_valkey, make_ledger
from tests.support.shows import Fan
from tests.support.spread_ledgers import CONNECTIONS_MAX, SERVER, SpreadLedgers
from tests.support.spread_run import turn_of
from tests.support.wait import until

GATEWAY_SECRET = "whsec_of_the_tests"
NUMBERS_PER_FILE = 100_000
_ledgers = count(1)
HERE = Path(__file__).parent
ORDER = ("browser", "storms", "stores", "journeys", "tidy", "rules")  # the longest first
# Files that take a minute begin before others of their folder: no process ends long after the others.
LONG = ("schemathesis", "cli", "gate_command", "growth", "crash_points", "kills", "roles", "waitlist")
HALF = "test_r"  # tests in a browser share it and a box office: files before and after this are two groups
WHOLE = "tidy"  # one group: every process that takes a part of it would parse all files
# Storms with a box office of their own. The others share one, and are one group.
APART = {"agreement", "bus_cluster", "buses", "crash_points", "failover", "floods", "game_day", "mail"}
APART |= {"no_worker", "offline_gates", "payment_storm", "pods", "recovery", "redis_cluster", "roles"}
APART |= {"rolling_upgrade", "waitlist"}
# Files of the stores that share what is dear to make, by the name of their group.
TOGETHER = {"archive": "house with pods", "search": "indexed demo", "search_pages": "indexed demo"}
# Storms that measure time, or count on their own time-outs. The others judge outcomes only. In floods, hashes
# of strangers give way to all other work: beside busy tests they would wait until their requests time out.
HURRIED = {"floods", "no_worker", "price_steps", "viewers"}
BUSY = {"sell_out", "stadium"}  # storms that measure time and take the whole machine meanwhile
# No time limit per example: a busy machine is not a failure, and speed is measured in bench/.
hypothesis.settings.register_profile("holdfast", deadline=None)
hypothesis.settings.load_profile("holdfast")
# As a worker of the box office has them. With Python's own loop, tests take a quarter more of the processor.
gc.set_threshold(20_000, 20, 100)
asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="storms and queues at their whole size: minutes")
    parser.addoption(
        "--pods",
        type=int,
        default=0,
        metavar="N",
        help="tests/stores and tests/journeys in a house with N pods, over which their shows are spread",
    )


def pytest_configure(config: pytest.Config) -> None:
    # Other processes of a parallel run, and runs that a test begins, have the place of the first one.
    if provide_place():
        config.add_cleanup(remove_place)
        if config.getvalue("dist") == "loadscope":  # a whole run: many tests need it
            fill_early()
    if config.option.pods:
        config.pluginmanager.register(import_module("tests.support.spread_run"))


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """One process of a parallel run takes a whole group: what the tests of a group share is set up once.

    Not xdist's own groups (`--dist loadgroup`): they have no effect with this version of pytest.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        folder, name = path.split("/")[1:3]
        if folder == "browser":
            return f"{folder} {name < HALF}"
        subject = subject_of(Path(path))
        if folder == "stores":
            return "house with pods" if subject.startswith("pods_") else TOGETHER.get(subject, path)
        return folder if folder == WHOLE or (folder == "storms" and subject not in APART) else path


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    return GroupScheduling(config, log) if config.getvalue("dist") == "loadscope" else None


def pytest_collection(session: pytest.Session) -> None:
    """Each process of a parallel run begins with other files: what it compiles, the others find compiled."""
    given = getattr(session.config, "workerinput", None)
    if given is None or is_of_alone(session.config):
        return
    places = [Path(one.partition("::")[0]).absolute() for one in session.config.args]
    files = sorted(
        file for place in places for file in ([place] if place.is_file() else place.rglob("test_*.py"))
    )
    share = -(-len(files) // given["workercount"])
    first = share * int(given["workerid"].removeprefix("gw"))
    for file in files[first : first + share]:
        with suppress(Exception):  # it is imported again when it is collected: then the trouble is reported
            import_module(".".join(file.relative_to(HERE.parent).with_suffix("").parts))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The second part of a run imports only the files whose tests it runs: seconds less."""
    if not is_of_alone(config) or not collection_path.name.startswith("test_"):
        return None
    is_storm = collection_path.parent.name == "storms" and subject_of(collection_path) in HURRIED | BUSY
    text = collection_path.read_text()
    return None if is_storm or "mark.alone" in text or "mark.busy" in text else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest groups begin first; what another test would disturb runs alone."""
    places = {path: path.relative_to(HERE).parts[0] for path in {item.path for item in items}}
    ranks = {path: (ORDER.index(at), subject_of(path) not in LONG) for path, at in places.items()}
    for item in items:
        subject = subject_of(item.path) if places[item.path] == "storms" else ""
        if subject in BUSY:
            item.add_marker("busy")
        if subject in HURRIED or item.get_closest_marker("busy"):
            item.add_marker("alone")
    # Tests that take turns on the machine come last: no process waits for its turn with others left to run.
    items.sort(key=lambda item: (item.get_closest_marker("busy") is not None, ranks[item.path]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Tests that mostly wait run side by side, a busy one by itself."""
    if not is_of_alone(item.config):
        return (yield)
    with turn_on_the_machine(by_itself=item.get_closest_marker("busy") is not None):
        return (yield)


def is_of_alone(config: pytest.Config) -> bool:
    """The second part of a run, which has only tests that run alone."""
    return bool(config.option.markexpr == "alone")


def subject_of(path: Path) -> str:
    return path.stem.removeprefix("test_")


def pytest_collection_finish() -> None:
    """Modules and tests live as long as the process: they are not looked through for garbage again."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Figures that a test has found, without `-s`: `record_property("figure", …)`."""
    properties = [pair for report in terminalreporter.getreports("passed") for pair in report.user_properties]
    if figures := [figure for name, figure in properties if name == "figure"]:
        terminalreporter.section("figures")
        for figure in figures:
            terminalreporter.write_line(figure)


@pytest.fixture(scope="session")
async def running_engines(pytestconfig: pytest.Config) -> AsyncIterator[Engines]:
    # Several box offices of one process share them.
    with engine_folder() as folder:
        await fill_with_ledger(folder)
        has_pods = pytestconfig.option.pods > 0
        connections_max, settings = (CONNECTIONS_MAX, SERVER) if has_pods else (200, None)
        async with engines(folder, connections_max=connections_max, postgres_settings=settings) as both:
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


@pytest.fixture(scope="session")
async def spread_ledgers(
    shared_config: Config, pytestconfig: pytest.Config
) -> AsyncIterator[SpreadLedgers | None]:
    """None, unless the run has pods."""
    if not pytestconfig.option.pods:
        yield None
        return
    ledgers = SpreadLedgers(shared_config, pytestconfig.option.pods)
    await ledgers.make_templates()
    enter_house(ledgers)
    yield ledgers
    await ledgers.close()


@pytest.fixture(scope="module")
async def config(
    request: pytest.FixtureRequest,
    shared_config: Config,
    spread_ledgers: SpreadLedgers | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Config:
    """A new ledger for each file: no test depends on which files ran before it in the same process."""
    # Each file has numbers of its own: what is left of another test is not taken for one of this file's.
    numbers_from = next(_ledgers) * NUMBERS_PER_FILE
    data_dir = str(tmp_path_factory.mktemp("data"))
    if spread_ledgers is not None:
        await spread_ledgers.renew(numbers_from, turn_of(request.path, spread_ledgers))
        return replace(spread_ledgers.config, data_dir=data_dir)
    await make_ledger(shared_config.database_url, numbers_from=numbers_from)
    await empty_valkey(shared_config.redis_url)
    return replace(shared_config, data_dir=data_dir)


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
    """Of people and requests, in a house with pods."""
    return app.catalogue_home.postgres


@pytest.fixture(scope="module")
def redis(app: App) -> Redis:
    return app.catalogue_home.redis


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
