"""What runs inside a child process: a web worker, the jobs, or the preparation before them."""

import asyncio
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Container
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from holdfast.config import Config
from holdfast.engines.aside import favour_loop
from holdfast.engines.embedded.folder import DataFolder
from holdfast.engines.errors import OperatorError
from holdfast.lean_import import freeze_imports
from holdfast.runtime.launch import DRAIN_S
from holdfast.runtime.probes import serve_probes
from holdfast.runtime.subjects import SERVED, WORKED, parse_only

BACKLOG = 4096
# Longer than the 60 s of the usual proxies: who closes an idle connection first must not be us.
KEEP_ALIVE_S = 75
SOCKETS_MAX = 65_536
WARM_WITHIN_S = 0.3  # readiness waits no longer than that for templates; the rest is read beside the loop
TAKES_NOTHING_MS = 20_000  # shorter than DRAIN_S: a viewer without a network must not block stopping
SHOWS_PRINTED_MAX = 100  # of the demo, in one line of JSON: line readers often stop at 64 KB

Progress = Callable[[str, int, int], None]  # what, done, of how many


async def prepare(
    config: Config, *, is_demo: bool, trial: bool, begins: bool, progress: Progress
) -> dict[str, Any]:
    """Settings and engines fit, schema up to date and, for the demo, a populated box office.

    With `begins` the facts have the link of the first administrator, if there is none yet.
    """
    from holdfast.backup import refuse_older_ledger, refuse_other_ledger
    from holdfast.demo.only_demo_data import refuse_other_data
    from holdfast.engines.startup_checks import check_engines, connect
    from holdfast.runtime.check_redis import warn_of_other_servers
    from holdfast.runtime.check_settings import refuse_or_warn
    from holdfast.runtime.house_schema import migrate_house

    warnings = refuse_or_warn(config, trial=trial) + await warn_of_other_servers(config)
    connection = await connect(config.session_url)
    try:
        await check_engines(connection, config.redis_url)
        if is_demo:
            await refuse_other_data(connection)
        away = (await migrate_house(config, connection)).away
        warnings += [f"{pod}: not reached, its shows refuse; {trouble}" for pod, trouble in away.items()]
        await refuse_older_ledger(connection, config.redis_url, Path(config.data_dir))
        await refuse_other_ledger(connection, config.redis_url)
    finally:
        await connection.close()
    await _refuse_restored_pods(config, away)
    for warning in warnings:
        print(f"holdfast: warning: {warning}", file=sys.stderr)
    if not is_demo and not begins:
        return {}

    from holdfast.app import open_app
    from holdfast.demo.seed import populate
    from holdfast.notifications.jobs import begin_now

    async with open_app(config) as app:
        if not is_demo:
            link = await app.first_admin.issue_link()
            return {} if link is None else {"begin": link}
        facts = await populate(app, progress)
        await begin_now(app.outbox)
    return {"accounts": facts.accounts, "shows": facts.shows[:SHOWS_PRINTED_MAX]}


async def _refuse_restored_pods(config: Config, away: Container[str]) -> None:
    from holdfast.backup import refuse_older_ledger, refuse_other_ledger
    from holdfast.engines.startup_checks import connect
    from holdfast.pods import parse_pods
    from holdfast.pods.store import is_pod

    for place in parse_pods(config.pods):
        if place.name in away:
            continue
        connection, own = await connect(place.database_url), place.configure(config)
        try:
            if await is_pod(connection, place.name):
                await refuse_older_ledger(connection, own.redis_url, Path(own.data_dir))
                await refuse_other_ledger(connection, own.redis_url)
        except OperatorError as trouble:
            raise OperatorError(f"{place.name}: {trouble}") from None
        finally:
            await connection.close()


@dataclass(frozen=True, slots=True)
class Cue:
    """When to begin, and how the parent learns that we have."""

    after: Path | None  # wait until this file is there
    ready: Path | None  # then write our process id to this one

    def wait(self) -> None:
        while self.after is not None and not self.after.exists():
            time.sleep(0.02)

    def tell(self) -> None:
        """Whole or not at all: the parent reads it meanwhile."""
        if self.ready is not None:
            draft = self.ready.with_suffix(".draft")
            draft.write_text(str(os.getpid()))
            draft.rename(self.ready)


def serve_here(config: Config, *, host: str, port: int, cue: Cue, only: str = "") -> None:
    """One web worker, until SIGTERM; then nothing new, and what is under way is finished."""
    from uvicorn.config import Config as UvicornConfig

    from holdfast.app import asgi_app
    from holdfast.engines.metrics import metrics
    from holdfast.engines.quiet_server import QuietServer
    from holdfast.site.templates_env import warm_up
    from holdfast.web import log
    from holdfast.web.connections import limited_http

    served = parse_only(only, SERVED)
    application = asgi_app(config, only=served)
    warming = Thread(
        target=warm_up if served is None or {"site", "desk"} & set(served) else None, name="warm-up"
    )
    warming.start()

    class WorkerServer(QuietServer):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            application.is_draining = True  # /readyz says so on connections that are still open
            await super().shutdown(sockets)

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                cue.tell()

    log.set_up(config.log_format)
    metrics.share(DataFolder(config.data_dir).meter, "web")
    freeze_imports()
    favour_loop()
    allow_connections()
    cue.wait()
    warming.join(WARM_WITHIN_S)
    server = WorkerServer(
        UvicornConfig(
            application,
            loop="uvloop",
            http=limited_http(config),
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=DRAIN_S,
            forwarded_allow_ips=config.trusted_proxies,
        )
    )
    server.run(sockets=[_shared_port(host, port)])
    if not server.started:
        sys.exit(3)


def allow_connections() -> None:
    """As many open sockets as the system lets us: every viewer of a live map is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = SOCKETS_MAX if hard == resource.RLIM_INFINITY else min(hard, SOCKETS_MAX)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def work_here(config: Config, *, cue: Cue, only: str = "") -> None:
    """The jobs, until SIGTERM."""
    import uvloop

    from holdfast.app import open_app
    from holdfast.background import worker_jobs
    from holdfast.engines.loop import running
    from holdfast.engines.metrics import metrics
    from holdfast.engines.send_traces import send_traces
    from holdfast.web import log

    log.set_up(config.log_format)
    metrics.share(DataFolder(config.data_dir).meter, "work")
    freeze_imports()

    async def work() -> None:
        stop = asyncio.Event()
        for sign in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(sign, stop.set)
        async with (
            send_traces(config, "work"),
            open_app(config) as app,
            running(worker_jobs(app, parse_only(only, WORKED))),
            serve_probes(app),
        ):
            cue.tell()
            await stop.wait()

    cue.wait()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work())


def _shared_port(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    shared = socket.socket(family, kind, protocol)
    shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # inherited by every connection: who takes nothing is gone
        shared.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, TAKES_NOTHING_MS)
    shared.bind(address)
    return shared
