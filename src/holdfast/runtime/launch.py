"""Which processes a command is made of.

    holdfast demo ─┬─ postgres, valkey      unless the operator has their own
                   ├─ sandbox               the payment gateway, unless the operator has one
                   ├─ prepare               checks, migrations, demo data; ends before the others open
                   ├─ web-1 … web-N         all on one port; the kernel deals the connections out
                   └─ work-1                the jobs

The parent only supervises. It imports nothing that serves, and stays small.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.config import Config
from holdfast.engines.embedded import CONNECTIONS_MAX, engines
from holdfast.engines.embedded.folder import DataFolder
from holdfast.engines.embedded.supervise import Recipe, Supervisor
from holdfast.engines.errors import OperatorError
from holdfast.runtime.check_settings import is_trial
from holdfast.runtime.children import build_command, build_environment, read_number, says_ready
from holdfast.runtime.exit_codes import EXPECTED
from holdfast.runtime.ports import is_alive, reserve_port, url_for, wait_until_ready
from holdfast.runtime.sandbox_beside import refuse_without_gateway, sandbox_beside, sandbox_recipe
from holdfast.runtime.secret_files import SecretWatch

DRAIN_S = 30  # for requests under way when a web worker is stopped
PREPARED_WITHIN_S = 600.0
SECRETS_RETRY_S = 10.0  # changed secrets that do not work yet
DEMO_POOL_MAX = 3  # a connection to the ledger is up to 9 MB, and a demo has few visitors


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions:
    """Which processes run, and where."""

    config: Config
    host: str = "127.0.0.1"
    port: int = 0
    web: int = 0
    work: int = 0
    only: str = ""  # the subjects that are served or worked for: subjects.py; none: all
    is_demo: bool = False  # demo data, words to log files, engines of its own or none
    is_trial: bool = False  # nothing is sold: no warnings about mail and addresses
    begins: bool = False  # print the link of the first administrator, if there is none
    sandbox_port: int = 0  # of the payment gateway beside us; 0: none


@dataclass(frozen=True, slots=True)
class Launched:
    """The result of a launch, printed once everything is ready."""

    url: str
    data: str
    facts: dict[str, Any]  # of the demo: accounts and shows


async def run(options: LaunchOptions, announce: Callable[[Launched], None]) -> None:
    """Start everything, call `announce`, and run until SIGTERM or SIGINT; a second one kills the children."""
    options = replace(options, config=_with_demo_defaults(options.config)) if options.is_demo else options
    refuse_without_gateway(options.config)
    options = replace(options, is_trial=is_trial(options.config))
    folder = DataFolder(options.config.data_dir)
    folder.make()
    supervisor = Supervisor(folder)
    try:
        with (
            reserve_port(options.host, options.port, folder.run) if options.web else nullcontext(0) as port,
            sandbox_beside(options.config, folder, may_start=options.web > 0) as (config, sandbox_port),
            _handle_signals(supervisor),
        ):
            options = replace(options, config=config, port=port, sandbox_port=sandbox_port)
            wanted = CONNECTIONS_MAX + max(0, options.web - 4) * options.config.postgres_pool_max
            async with engines_of(
                options.config, may_join=not options.is_demo, connections_max=wanted
            ) as config:
                try:
                    # Before any process reads them: what changes while they start is noticed afterwards.
                    watch = SecretWatch(os.environ)
                    facts = await _start(supervisor, replace(options, config=config), folder)
                    if options.web:
                        await wait_until_ready(options.host, port)
                    if options.sandbox_port:
                        facts["sandbox"] = options.config.gateway_url
                    if options.work and options.config.work_address:
                        facts["health"] = f"http://{options.config.work_address}/healthz"
                    if options.web and options.config.mail_page and not options.config.mail_url:
                        facts["mail"] = f"{url_for(options.host, port)}/demo/mail"
                    if "begin" in facts:
                        site = options.config.public_url.rstrip("/") or url_for(options.host, port)
                        facts["begin"] = site + facts["begin"]
                    announce(
                        Launched(url_for(options.host, port) if options.web else "", str(folder.path), facts)
                    )
                    await _follow_secrets(supervisor, replace(options, config=config), watch)
                finally:
                    await supervisor.stop()
                    _forget_sums(folder)
                    _prepared(folder).unlink(missing_ok=True)
    except asyncio.CancelledError:  # stopped by a signal, and every child has ended
        return


async def _follow_secrets(supervisor: Supervisor, options: LaunchOptions, watch: SecretWatch) -> None:
    """Until we are stopped: when a file of a secret changes, every process is replaced, one after the other.

    The file may have been changed before the server that it is for: wrong secrets are tried again.
    """
    while True:
        await watch.changed()
        while not await _replace_processes(supervisor, options):
            with suppress(TimeoutError):
                await asyncio.wait_for(watch.changed(), SECRETS_RETRY_S)
        print("holdfast: every process was replaced and has read its secrets again", file=sys.stderr)


async def _replace_processes(supervisor: Supervisor, options: LaunchOptions) -> bool:
    """The new secrets are tried first, by a preparation as at a start: wrong ones change nothing."""
    try:
        await _prepare(replace(options, is_demo=False, begins=False))
    except OperatorError as trouble:
        print(f"holdfast: the processes keep their secrets: {str(trouble) or 'see above'}", file=sys.stderr)
        return False
    return await supervisor.renew()


def _with_demo_defaults(config: Config) -> Config:
    """Unless it is configured otherwise, the demo shows its mails, moves no money and has few connections."""
    mail_page = config.mail_page if "HOLDFAST_MAIL_PAGE" in os.environ else 1
    pool_max = config.postgres_pool_max if "HOLDFAST_POSTGRES_POOL_MAX" in os.environ else DEMO_POOL_MAX
    return replace(
        config, mail_page=mail_page, postgres_pool_max=pool_max, gateway=config.gateway or "sandbox"
    )


@asynccontextmanager
async def engines_of(
    config: Config, *, may_join: bool = True, must_exist: bool = False, connections_max: int = CONNECTIONS_MAX
) -> AsyncIterator[Config]:
    """The config with engines that are up: the operator's, those of another process, or new ones."""
    if config.database_url and config.redis_url:
        yield config
        return
    folder = DataFolder(config.data_dir)
    if may_join and (found := folder.running()):
        yield replace(
            config,
            database_url=config.database_url or found.database_url,
            redis_url=config.redis_url or found.redis_url,
        )
        return
    if must_exist and not config.database_url and not folder.postgres.exists():
        raise OperatorError(
            f"there is nothing in {folder.path} yet: run `holdfast demo`, choose another folder with --data, "
            "or set HOLDFAST_DATABASE_URL"
        )
    async with engines(
        folder.path,
        database_url=config.database_url,
        redis_url=config.redis_url,
        connections_max=connections_max,
    ) as started:
        yield replace(config, database_url=started.database_url, redis_url=started.redis_url)


async def _start(supervisor: Supervisor, options: LaunchOptions, folder: DataFolder) -> dict[str, Any]:
    """Workers load their code while everything is prepared, and open when it is: with two cores that pays."""
    prepared = _prepared(folder)
    prepared.unlink(missing_ok=True)  # of a killed process that had our number
    _forget_sums(folder)
    web_url = url_for(options.host, options.port)
    # The sandbox is a group of its own, and the first: it stops last.
    groups = (
        [sandbox_recipe(options.config, folder, port=options.sandbox_port, web_url=web_url)]
        if options.sandbox_port
        else [],
        _recipes(options, folder, prepared),
    )
    starting = [asyncio.create_task(supervisor.start(*group)) for group in groups]
    try:
        facts = await _prepare(options)
        prepared.touch()
        for group in starting:
            await group
    finally:
        for group in starting:
            group.cancel()
        await asyncio.gather(*starting, return_exceptions=True)
    return facts


def _prepared(folder: DataFolder) -> Path:
    return folder.run / f"prepared-{os.getpid()}"


async def _prepare(options: LaunchOptions) -> dict[str, Any]:
    """In a process of its own: what it imports is gone when the others start."""
    flags = {"--demo": options.is_demo, "--trial": options.is_trial, "--begin": options.begins}
    process = await asyncio.create_subprocess_exec(
        *build_command("prepare", *(flag for flag, is_set in flags.items() if is_set)),
        env={**os.environ, **build_environment(options.config)},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    if process.returncode:
        has_printed_why = process.returncode == EXPECTED
        raise OperatorError(
            "" if has_printed_why else f"the preparation ended with code {process.returncode}"
        )
    facts: dict[str, Any] = json.loads(output)
    return facts


def _recipes(options: LaunchOptions, folder: DataFolder, prepared: Path) -> list[Recipe]:
    only = ("--only", options.only) if options.only else ()
    web = ("web-worker", "--host", options.host, "--port", str(options.port), *only)
    children: dict[str, tuple[str, ...]] = dict.fromkeys(_free_names(folder, "web", options.web), web)
    children |= dict.fromkeys(_free_names(folder, "work", options.work), ("jobs", *only))
    return [
        Recipe(
            name=name,
            command=build_command(
                *command, "--after", str(prepared), "--ready", str(folder.run / f"{name}.ready")
            ),
            env=build_environment(options.config),
            ready=says_ready(folder.run / f"{name}.ready"),
            ready_within_s=PREPARED_WITHIN_S,
            stop_within_s=DRAIN_S + 5.0,
            speaks=not options.is_demo,
        )
        for name, command in children.items()
    ]


def _forget_sums(folder: DataFolder) -> None:
    """If no other process runs here, the sums for /metrics are reset."""
    if _free_names(folder, "web", 1) == ["web-1"] and _free_names(folder, "work", 1) == ["work-1"]:
        shutil.rmtree(folder.meter, ignore_errors=True)


def _free_names(folder: DataFolder, kind: str, count: int) -> list[str]:
    """web-1, web-2, …, without those of other processes in the same folder."""
    names: list[str] = []
    number = 0
    while len(names) < count:
        number += 1
        process_id = read_number(folder.run / f"{kind}-{number}.pid")
        if not process_id or not is_alive(process_id):
            names.append(f"{kind}-{number}")
    return names


@contextmanager
def _handle_signals(supervisor: Supervisor) -> Iterator[None]:
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    is_stopping = False

    def stop() -> None:
        nonlocal is_stopping
        if is_stopping:
            supervisor.kill()
        else:
            is_stopping = True
            task.cancel()

    for sign in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sign, stop)
    try:
        yield
    finally:
        for sign in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(sign)
