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
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.config import Config
from holdfast.engines.embedded import CONNECTIONS_MAX, engines
from holdfast.engines.embedded.folder import DataFolder
from holdfast.engines.embedded.supervise import Recipe, Supervisor
from holdfast.engines.errors import OperatorError
from holdfast.sandbox import is_in_use, load_or_create_secret

DRAIN_S = 30  # for requests under way when a web worker is stopped
SERVES_WITHIN_S = 60.0
PREPARED_WITHIN_S = 600.0
EXPECTED = 2  # exit code of trouble that the operator can put right
SANDBOX_URL = "sandbox.url"  # in the folder of what runs


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions:
    """Which processes run, and where."""

    config: Config
    host: str = "127.0.0.1"
    port: int = 0
    web: int = 0
    work: int = 0
    only: str = ""  # the subjects that are served or worked for: roles.py; none: all
    is_demo: bool = False  # demo data, words to log files, engines of its own or none
    sandbox_port: int = 0  # of the payment gateway beside us; 0: none


@dataclass(frozen=True, slots=True)
class Launched:
    """The result of a launch, printed once everything is ready."""

    url: str
    data: str
    facts: dict[str, Any]  # of the demo: accounts and shows


async def run(options: LaunchOptions, announce: Callable[[Launched], None]) -> None:
    """Start everything, call `announce`, and run until SIGTERM or SIGINT; a second one kills the children."""
    if options.is_demo and "HOLDFAST_MAIL_PAGE" not in os.environ:
        options = replace(options, config=replace(options.config, mail_page=1))
    folder = DataFolder(options.config.data_dir)
    folder.make()
    supervisor = Supervisor(folder)
    try:
        with (
            _port(options) as port,
            _sandbox(replace(options, port=port), folder) as options,
            _handle_signals(supervisor),
        ):
            wanted = CONNECTIONS_MAX + max(0, options.web - 4) * options.config.postgres_pool_max
            async with engines_of(
                options.config, may_join=not options.is_demo, connections_max=wanted
            ) as config:
                try:
                    facts = await _start(supervisor, replace(options, config=config), folder)
                    if options.web:
                        await _serves(options.host, port)
                    if options.sandbox_port:
                        facts["sandbox"] = options.config.gateway_url
                    if options.web and options.config.mail_page and not options.config.mail_url:
                        facts["mail"] = f"{_url(options.host, port)}/demo/mail"
                    announce(
                        Launched(_url(options.host, port) if options.web else "", str(folder.path), facts)
                    )
                    await asyncio.Event().wait()
                finally:
                    await supervisor.stop()
                    _forget_sums(folder)
                    _prepared(folder).unlink(missing_ok=True)
    except asyncio.CancelledError:  # stopped by a signal, and every child has ended
        return


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
    # The sandbox is a group of its own, and the first: it stops last.
    groups = (
        [_sandbox_recipe(options, folder)] if options.sandbox_port else [],
        _recipes(options, folder, prepared),
    )
    starting = [asyncio.create_task(supervisor.start(*group)) for group in groups]
    try:
        facts = await _prepare(options.config, options.is_demo)
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


async def _prepare(config: Config, is_demo: bool) -> dict[str, Any]:
    """In a process of its own: what it imports is gone when the others start."""
    process = await asyncio.create_subprocess_exec(
        *_command("prepare", *(("--demo",) if is_demo else ())),
        env={**os.environ, **_environment(config)},
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


@contextmanager
def _sandbox(options: LaunchOptions, folder: DataFolder) -> Iterator[LaunchOptions]:
    """The options with a payment gateway: the operator's, one that runs in this folder, or a new one.

    Its port is reserved here, so that every process knows its address before it is up.
    """
    if options.config.gateway != "sandbox" or options.config.gateway_url:
        yield options
        return
    config = with_gateway(options.config)
    if is_in_use(folder.path / "sandbox") or not options.web:
        yield replace(options, config=config)
        return
    with _port(replace(options, port=0)) as port:
        url = _url(options.host, port)
        folder.write(SANDBOX_URL, url)
        try:
            yield replace(options, config=replace(config, gateway_url=url), sandbox_port=port)
        finally:
            (folder.run / SANDBOX_URL).unlink(missing_ok=True)


def with_gateway(config: Config) -> Config:
    """The config with the address and the secret of the sandbox in its folder, if it has no gateway."""
    if config.gateway != "sandbox" or config.gateway_url:
        return config
    folder = DataFolder(config.data_dir)
    address = folder.run / SANDBOX_URL
    secret = config.gateway_secret or load_or_create_secret(folder.path / "sandbox")
    return replace(config, gateway_url=address.read_text() if address.exists() else "", gateway_secret=secret)


def _sandbox_recipe(options: LaunchOptions, folder: DataFolder) -> Recipe:
    ready = folder.run / "sandbox.ready"
    place = (
        "--host",
        options.host,
        "--port",
        str(options.sandbox_port),
        "--data",
        str(folder.path / "sandbox"),
    )
    notify = ("--notify", f"{_url(options.host, options.port)}/webhooks/sandbox")
    return Recipe(
        name="sandbox",
        command=_command("sandbox-worker", *place, *notify, "--ready", str(ready)),
        env=_environment(options.config),
        ready=_says_ready(ready),
        stop_within_s=10.0,
        speaks=False,  # it stands in for another company's server, so its output is not logged
    )


def _recipes(options: LaunchOptions, folder: DataFolder, prepared: Path) -> list[Recipe]:
    only = ("--only", options.only) if options.only else ()
    web = ("web-worker", "--host", options.host, "--port", str(options.port), *only)
    children: dict[str, tuple[str, ...]] = dict.fromkeys(_free_names(folder, "web", options.web), web)
    children |= dict.fromkeys(_free_names(folder, "work", options.work), ("jobs", *only))
    return [
        Recipe(
            name=name,
            command=_command(
                *command, "--after", str(prepared), "--ready", str(folder.run / f"{name}.ready")
            ),
            env=_environment(options.config),
            ready=_says_ready(folder.run / f"{name}.ready"),
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
        process_id = _number_in(folder.run / f"{kind}-{number}.pid")
        if not process_id or not _is_alive(process_id):
            names.append(f"{kind}-{number}")
    return names


def _is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except OSError:
        return False
    return True


def _number_in(file: Path) -> int:
    """0 when it is not there yet, or not written yet."""
    try:
        return int(file.read_text() or 0)
    except FileNotFoundError:
        return 0


def _says_ready(file: Path) -> Callable[[int], Any]:
    async def ready(process_id: int) -> bool:
        return _number_in(file) == process_id

    return ready


def _command(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "holdfast", *words)


def _environment(config: Config) -> dict[str, str]:
    return {
        "HOLDFAST_DATABASE_URL": config.database_url,
        "HOLDFAST_REDIS_URL": config.redis_url,
        "HOLDFAST_DATA_DIR": str(Path(config.data_dir).absolute()),
        **({"HOLDFAST_GATEWAY_URL": config.gateway_url} if config.gateway_url else {}),
        **({"HOLDFAST_GATEWAY_SECRET": config.gateway_secret} if config.gateway_secret else {}),
        **({"HOLDFAST_MAIL_PAGE": "1"} if config.mail_page else {}),
        # A worker has few threads; without this each costs an arena of its own.
        "MALLOC_ARENA_MAX": "2",
    }


@contextmanager
def _port(options: LaunchOptions) -> Iterator[int]:
    """Reserve the port, though only the workers listen on it. 0 without web workers."""
    if not options.web:
        yield 0
        return
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            # Without SO_REUSEPORT, which would let two of our processes share it.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
        reserved = socket.socket(family, kind, protocol)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind(address)
    except socket.gaierror as error:
        raise OperatorError(
            f"no such address: {options.host} ({error.strerror}); choose one with --host"
        ) from None
    except OSError as error:
        raise OperatorError(
            f"cannot listen on {options.host}:{options.port}: {error.strerror}; choose another port "
            "with --port, or --port 0 for a free one"
        ) from None
    with reserved:
        yield int(reserved.getsockname()[1])


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


async def _serves(host: str, port: int) -> None:
    """Wait until /readyz succeeds, so that the printed address works at once."""
    answer = b"nothing"
    try:
        async with asyncio.timeout(SERVES_WITHIN_S):
            while True:
                answer = await _first_line(host, port, "/readyz")
                if b" 200 " in answer:
                    return
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise OperatorError(
            f"it does not serve: /readyz returned {answer.decode(errors='replace').strip()}"
        ) from None


async def _first_line(host: str, port: int, path: str) -> bytes:
    try:
        reader, writer = await asyncio.open_connection(_reachable(host), port)
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            return await reader.readline()
        finally:
            writer.close()
    except OSError as error:
        return str(error).encode()


def _reachable(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)


def _url(host: str, port: int) -> str:
    host = _reachable(host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
