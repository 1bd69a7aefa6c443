"""Two scenes for a game day: jobs and doctor in this process, and a box office of real processes."""

import asyncio
import os
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

from holdfast.app import App, open_app
from holdfast.background import build_mail_sender, watching_jobs
from holdfast.cli.doctor import findings
from holdfast.config import Config
from holdfast.engines.loop import Job
from holdfast.engines.metrics import metrics
from holdfast.engines.standbys import StandbyGauge
from holdfast.engines.worker_beat import BEAT
from tests.support import gateway_setups
from tests.support.box_office import running, started
from tests.support.cli_process import free_port, run_holdfast
from tests.support.game_day import LONG_DAYS, FindingPage, PublicAddress, Surroundings
from tests.support.killable_transport import client_of_killed
from tests.support.mail_servers import MAIL_FROM, a_mail_server
from tests.support.postgres_server import a_pair, url_of
from tests.support.prometheus_server import Prometheus
from tests.support.promql import evaluate
from tests.support.redis_servers import make_server
from tests.support.redis_servers import running as running_valkey
from tests.support.shows import a_show, fans
from tests.support.slow_link import slow_link
from tests.support.wait import until

FAKETIME = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
NO_MAILBOX = "550 no such mailbox"
DISK_MB, FREE_MIN_MB, FILL_MB = 64, 20, 50


@asynccontextmanager
async def surroundings(folder: Path) -> AsyncIterator[Surroundings]:
    async with AsyncExitStack() as stack:
        primary, standby = await stack.enter_async_context(a_pair())
        valkey = make_server(folder, "valkey")
        clock = folder / "clock"
        clock.write_text("+0s\n")
        valkey.env = _turned_clock(clock)
        await stack.enter_async_context(running_valkey(valkey))
        (folder / "gateway").mkdir()
        url = await stack.enter_async_context(gateway_setups.a_sandbox(folder / "gateway"))
        gateway = await stack.enter_async_context(slow_link(int(url.rpartition(":")[2])))
        public = await stack.enter_async_context(_public_address(folder))
        mail = await stack.enter_async_context(a_mail_server().up())
        yield Surroundings(primary, standby, valkey, clock, gateway, public, mail)


def _turned_clock(file: Path) -> dict[str, str]:
    """Reads the file with every look at the clock; nothing without libfaketime."""
    words = ("FAKETIME_NO_CACHE", "FAKETIME_DONT_FAKE_MONOTONIC", "DONT_FAKE_MONOTONIC")
    turned = {"FAKETIME_TIMESTAMP_FILE": str(file), **dict.fromkeys(words, "1")}
    return {"LD_PRELOAD": str(FAKETIME[0]), **turned} if FAKETIME else {}


@asynccontextmanager
async def _public_address(folder: Path) -> AsyncIterator[PublicAddress]:
    async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    public = PublicAddress(0, context, folder)
    public.renew(LONG_DAYS)
    server = await asyncio.start_server(hang_up, "127.0.0.1", 0, ssl=context)
    try:
        yield replace(public, port=server.sockets[0].getsockname()[1])
    finally:
        server.close()


def settings_for(around: Surroundings) -> dict[str, Any]:
    """Everything that the doctor wants of a box office that sells."""
    stripe = gateway_setups.settings("stripe", f"http://127.0.0.1:{around.gateway.port}")
    return {
        "database_url": url_of(around.primary, around.standby),
        "redis_url": around.valkey.url,
        "ledger_standbys_min": 1,
        "gateway": "stripe",
        "gateway_timeout_ms": 10_000,
        "stripe_secret_key": stripe.stripe_secret_key,
        "stripe_webhook_secrets": stripe.stripe_webhook_secrets,
        "stripe_api_url": stripe.stripe_api_url,
        "public_url": f"https://127.0.0.1:{around.public.port}",
        "mail_url": around.mail.url,
        "mail_from": MAIL_FROM,
        "connections_max": 500,
    }


class LocalScene:
    """The doctor and the jobs that measure, called here. A worker is its lease; a lost mail is its row."""

    def __init__(self, around: Surroundings, app: App) -> None:
        self.around = around
        self._app = app
        self._has_worker = True
        self._jobs = self._build_jobs()

    async def doctor(self) -> Sequence[FindingPage]:
        await self.look()  # a worker renews its lease whether or not an alert is evaluated
        return [finding.page() async for finding in findings(self._app.config)]

    async def evaluate(self, expression: str) -> Sequence[Any]:
        await self.look()
        return list(evaluate(expression, metrics.text().decode()).items())

    async def look(self) -> None:
        """Every job once. One that waits for a standby that is down fails, as it does in a worker."""
        await asyncio.gather(*(job() for job in self._jobs), return_exceptions=True)

    def _build_jobs(self) -> list[Job]:
        jobs = [job for _, job in watching_jobs(self._app)]
        jobs = [job for job in jobs if self._has_worker or job.__qualname__ != BEAT]
        standbys = StandbyGauge(self._app.postgres, self._app.config.ledger_standbys_min)
        return [*jobs, build_mail_sender(self._app).count, standbys.look]

    def _set_disk(self, free_min_mb: int) -> None:
        self._app = replace(self._app, config=replace(self._app.config, disk_free_min_mb=free_min_mb))
        self._jobs = self._build_jobs()

    async def fill_disk(self) -> None:
        """No disk has a petabyte free."""
        self._set_disk(10**9)

    async def clear_disk(self) -> None:
        self._set_disk(1)

    async def lose_mail(self) -> None:
        await self.around.primary.sql(
            "INSERT INTO notice (kind, channel, address, name, locale, show_id, state, due_at, ended_at)"
            " VALUES ('tickets', 'mail', 'a@example.org', 'A', 'en', 1, 'dead', NULL, now())"
        )

    async def find_mail(self) -> None:
        await self.around.primary.sql("DELETE FROM notice WHERE state = 'dead'")

    async def stop_worker(self) -> None:
        self._has_worker, self._jobs = False, []
        self._jobs = self._build_jobs()
        await self.around.primary.sql("UPDATE job_turn SET due_at = now() - interval '2 minutes'")

    async def start_worker(self) -> None:
        self._has_worker = True
        self._jobs = self._build_jobs()
        await self.look()


@asynccontextmanager
async def local_scene(folder: Path) -> AsyncIterator[LocalScene]:
    async with surroundings(folder) as around:
        data = folder / "data"
        given: dict[str, Any] = {"data_dir": str(data), "disk_free_min_mb": 1, "postgres_timeout_s": 1}
        config = Config(**settings_for(around), **given)
        await around.primary.sql("INSERT INTO backup_made (made_by) VALUES ('game day')")
        async with open_app(config) as app:
            scene = LocalScene(around, app)
            await scene.look()
            yield scene


@dataclass
class OfficeScene:
    """`holdfast serve` and `holdfast work`, scraped; the doctor is the command."""

    around: Surroundings
    env: dict[str, str]
    data: Path
    app: App
    api: httpx2.AsyncClient
    prometheus: Prometheus | None
    disk: Path  # the data folder's file system has this file's room, too
    fill_mb: int
    worker: asyncio.subprocess.Process | None = None

    async def doctor(self) -> Sequence[FindingPage]:
        ended = await run_holdfast("doctor", "--json", "--data", str(self.data), **self.env)
        pages: Sequence[FindingPage] = ended.page
        return pages

    async def evaluate(self, expression: str) -> Sequence[Any]:
        if self.prometheus is not None:
            return await self.prometheus.query(expression)
        return list(evaluate(expression, (await self.api.get("/metrics")).text).items())

    async def fill_disk(self) -> None:
        with self.disk.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, self.fill_mb * 1_000_000)

    async def clear_disk(self) -> None:
        self.disk.unlink()

    async def lose_mail(self) -> None:
        """A buyer's address does not exist: the mail with the ticket is given up."""
        self.around.mail.says = lambda _address: NO_MAILBOX
        show = await a_show(self.app, 20, price_minor=0)
        (fan,) = await fans(self.app, self.api, 1)
        held = await fan.holds(show, best={"count": 1}, key="game-day")
        assert held.json()["state"] == "confirmed", held.text

    async def find_mail(self) -> None:
        """What the doctor says."""
        self.around.mail.says = lambda _address: None
        words = ("notices", "replay", "--all-dead", "--data", str(self.data))
        ended = await run_holdfast(*words, **self.env)
        assert ended.code == 0, ended

    async def stop_worker(self) -> None:
        assert self.worker is not None
        self.worker.kill()  # its child is signalled by the kernel
        await self.worker.wait()

    async def start_worker(self) -> None:
        self.worker = await started(
            *("-m", "holdfast", "work", "--data", str(self.data), "--json"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, **self.env},
        )
        assert self.worker.stdout is not None
        assert await asyncio.wait_for(self.worker.stdout.readline(), 60), "holdfast work did not start"


@contextmanager
def a_small_disk(folder: Path) -> Iterator[tuple[int, int]]:
    """HOLDFAST_DISK_FREE_MIN_MB for it, and megabytes that fill it; a file system of its own for root."""
    folder.mkdir()
    words = ("mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(folder))
    if subprocess.run(words, capture_output=True, check=False).returncode == 0:
        try:
            yield FREE_MIN_MB, FILL_MB
        finally:
            subprocess.run(("umount", "--lazy", str(folder)), check=True)
        return
    free_mb = shutil.disk_usage(folder).free // 1_000_000
    yield max(free_mb - 1000, 1), 2000


@asynccontextmanager
async def office_scene(folder: Path) -> AsyncIterator[OfficeScene]:
    """Without Prometheus; `OfficeScene.prometheus` may be set once it scrapes."""
    async with AsyncExitStack() as stack:
        around = await stack.enter_async_context(surroundings(folder))
        data = folder / "data"
        free_min_mb, fill_mb = stack.enter_context(a_small_disk(data))
        settings = {**settings_for(around), "disk_free_min_mb": free_min_mb}
        env = {f"HOLDFAST_{name.upper()}": str(value) for name, value in settings.items()}
        words = ("serve", "--port", str(free_port()), "--workers", "1", "--data", str(data), "--json")
        facts = await stack.enter_async_context(running(folder / "serve.log", words, settings))
        app = await stack.enter_async_context(open_app(Config(**settings, data_dir=str(data))))
        api = await stack.enter_async_context(client_of_killed(facts["url"]))
        scene = OfficeScene(around, env, data, app, api, None, data / "filler", fill_mb)
        stack.push_async_callback(partial(_stop_worker, scene))
        await scene.start_worker()
        made = await run_holdfast(
            "backup", "create", str(folder / "night.backup"), "--data", str(data), **env
        )
        assert made.code == 0, made
        await until(partial(_is_measured, scene))
        yield scene


async def _is_measured(scene: OfficeScene) -> bool:
    """Every job that measures has run in the worker or the web process."""
    text = (await scene.api.get("/metrics")).text
    wanted = ("gateway_probe_seconds", "certificate_days_left", "backup_age_seconds", "disk_free_bytes")
    return all(f"holdfast_{name}" in text for name in wanted)


async def _stop_worker(scene: OfficeScene) -> None:
    if scene.worker is not None and scene.worker.returncode is None:
        scene.worker.terminate()
        await scene.worker.wait()
