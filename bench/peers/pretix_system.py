"""pretix as real processes, as its guide for one machine says: PostgreSQL, Valkey, gunicorn, a Celery worker.

PostgreSQL and Valkey are the programs that Holdfast uses, with the same settings and on the same disk. The
database is migrated once and then copied for each run.
"""

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import httpx2

from bench.environment import find_free_port
from bench.errors import BenchError, require
from bench.peers.client import Client, expect
from bench.peers.plan import Hall, SeatCount
from bench.peers.pretix_install import PretixSettings, clean_environment, run
from bench.peers.pretix_journeys import CSRF_COOKIE
from bench.peers.pretix_setup import LISTING, ORGANIZER
from holdfast.engines.embedded import Engines, engines
from holdfast.engines.embedded.binaries import find_valkey
from holdfast.engines.embedded.privilege import child_setup
from holdfast.engines.postgres import Queries

Q = Queries("bench.peers")

TEMPLATE, DATABASE = "pretix_template", "pretix"  # in queries.sql, too
MIGRATE_WITHIN_S = 600
SETUP_WITHIN_S = 300
START_WITHIN_S = 120
STOP_WITHIN_S = 30
SETUP = Path(__file__).parent / "pretix_setup.py"
# Every queue but that of mails: Holdfast sends none during the bench either.
QUEUES = "default,checkout,background,notifications"


@dataclass(frozen=True)
class Kind:
    """Halls of one price; a run takes some of them, so that no seat is sold twice."""

    price: str
    count: int


@dataclass(frozen=True)
class Pretix:
    url: str
    token: str
    csrf: str  # the cookie of a page, and the hidden field of its forms
    halls: Mapping[str, Iterator[Hall]]  # by kind: those that no run has taken yet
    database_url: str
    engines: Engines

    async def count_seats(self, halls: list[Hall]) -> SeatCount:
        """Of these halls: seats in a cart or an order."""
        connection = await asyncpg.connect(self.database_url)
        try:
            row = await connection.fetchrow(Q.pretix_seats, [hall.event for hall in halls])
        finally:
            await connection.close()
        assert row is not None
        return SeatCount(**row)


@asynccontextmanager
async def start_pretix(
    cache: Path, python: Path, rows: list[list[str]], kinds: Mapping[str, Kind], *, workers: int
) -> AsyncIterator[Pretix]:
    folder = cache / "pretix-data"
    folder.mkdir(parents=True, exist_ok=True)
    port, redis_port = find_free_port(), find_free_port()
    redis, url = f"redis://127.0.0.1:{redis_port}", f"http://127.0.0.1:{port}"
    valkey = (str(find_valkey().path), "--port", str(redis_port), "--bind", "127.0.0.1", "--save", "")
    async with (
        engines(folder / "engines", redis_url=redis) as both,
        _process("valkey", *valkey, "--loglevel", "warning", folder=folder, variables={}),
    ):
        variables = {"PRETIX_CONFIG_FILE": str(_write_settings(folder, both, url, redis, TEMPLATE))}
        await _create_database(both.database_url, python, variables)
        variables = {"PRETIX_CONFIG_FILE": str(_write_settings(folder, both, url, redis, DATABASE))}
        token, halls = await _create_halls(python, rows, kinds, variables)
        gunicorn = ("gunicorn", "pretix.wsgi", "--workers", str(workers), "--bind", f"127.0.0.1:{port}")
        celery = ("celery", "-A", "pretix.celery_app", "worker", "-l", "warning", "-Q", QUEUES)
        async with (
            _process("celery", str(python), "-m", *celery, folder=folder, variables=variables),
            _process("gunicorn", str(python), "-m", *gunicorn, folder=folder, variables=variables),
        ):
            await _wait_for(f"{url}/healthcheck/", folder)
            database_url = replace_database(both.database_url, DATABASE)
            yield Pretix(url, token, await _load_csrf(url), halls, database_url, both)


def replace_database(url: str, name: str) -> str:
    """postgresql://user@/old?host=… with another database."""
    return re.sub(r"(?<=@/)\w+", name, url)


def _write_settings(folder: Path, both: Engines, url: str, redis: str, database: str) -> Path:
    address = urlsplit(both.database_url)
    data = folder / "data"
    data.mkdir(exist_ok=True)
    settings = PretixSettings(
        url=url,
        folder=data,
        database=database,
        database_host=parse_qs(address.query)["host"][0],
        database_user=address.username or "",
        redis=redis,
    )
    file = folder / f"{database}.cfg"
    file.write_text(settings.render())
    return file


async def _create_database(url: str, python: Path, variables: dict[str, str]) -> None:
    """A copy of the migrated database; the first run migrates it, which takes minutes."""
    connection = await asyncpg.connect(url)
    try:
        if not await connection.fetchval(Q.template_is_ready):
            await connection.execute(Q.drop_template)
            await connection.execute(Q.create_template)
            migrate = (str(python), "-m", "pretix", "migrate", "--noinput")
            await run(*migrate, within_s=MIGRATE_WITHIN_S, variables=variables)
            await connection.execute(Q.finish_template)
        await connection.execute(Q.drop_copy)
        await connection.execute(Q.create_copy)
    finally:
        await connection.close()


async def _create_halls(
    python: Path, rows: list[list[str]], kinds: Mapping[str, Kind], variables: dict[str, str]
) -> tuple[str, dict[str, Iterator[Hall]]]:
    wish = {"rows": rows, "kinds": {name: {"price": k.price, "count": k.count} for name, k in kinds.items()}}
    output = await run(
        *(str(python), "-P", str(SETUP)), within_s=SETUP_WITHIN_S, variables=variables, text=json.dumps(wish)
    )
    found = json.loads(output.splitlines()[-1])
    halls = {kind: iter([Hall(**hall) for hall in each]) for kind, each in found["halls"].items()}
    return found["token"], halls


async def _load_csrf(url: str) -> str:
    client = Client(url)
    expect(await client.get(f"/{ORGANIZER}/{LISTING}/"), 200)
    client.close()
    require(CSRF_COOKIE in client.cookies, "pretix' event page sets no cookie for its forms")
    return client.cookies[CSRF_COOKIE]


@asynccontextmanager
async def _process(
    name: str, *command: str, folder: Path, variables: dict[str, str]
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that writes into a log and does not outlive us."""
    with (folder / f"{name}.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env={**clean_environment(), **variables},
            stdout=log,
            stderr=log,
            preexec_fn=child_setup(None, signal.SIGTERM),
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_WITHIN_S)
        except TimeoutError:
            process.kill()
            await process.wait()


async def _wait_for(url: str, folder: Path) -> None:
    try:
        async with asyncio.timeout(START_WITHIN_S), httpx2.AsyncClient(timeout=30) as client:
            while True:
                try:
                    if (await client.get(url)).status_code == 200:
                        return
                except httpx2.TransportError:
                    pass
                await asyncio.sleep(0.2)
    except TimeoutError:
        words = (folder / "gunicorn.log").read_text(errors="replace")[-2000:]
        raise BenchError(f"pretix did not start: {words}") from None
