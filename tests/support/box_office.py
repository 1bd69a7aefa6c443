"""A box office of real processes in a temporary folder, the test's way into its engines, and its crowd."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from holdfast.app import App, open_app
from holdfast.audit import AUDIT_WITHIN_S, HouseReport
from holdfast.cli.audit import run_audit
from holdfast.config import Config
from holdfast.engines.embedded.folder import DataFolder
from holdfast.engines.embedded.privilege import child_setup
from holdfast.sandbox import load_or_create_secret
from tests.support.crowd import Plan, Progress, Report, Wish
from tests.support.empty_ledger import fill_with_ledger
from tests.support.engine_folder import engine_folder
from tests.support.killable_transport import client_of_killed
from tests.support.shows import Fan, a_show, fans
from tests.support.wait import until

ROOT = Path(__file__).parents[2]
START_WITHIN_S = 60
STOP_WITHIN_S = 45
WORDS_MAX = 100  # lines of a log
ACCESS_TTL_S = 3600
ANSWER_BYTES_MAX = 2**26  # a crowd's report is one line


@dataclass
class Crowd:
    """The crowd in its own process."""

    process: asyncio.subprocess.Process
    progress: Progress = field(default_factory=lambda: Progress(0, 0))
    listening: "asyncio.Task[Report]" = field(init=False)

    def __post_init__(self) -> None:
        self.listening = asyncio.create_task(self.listen())

    async def held(self, count: int, within_s: float = 30) -> None:
        """Wait until so many holds have been promised."""

        async def enough() -> bool:
            return self.progress.held >= count or self.process.returncode is not None

        await until(enough, within_s=within_s)
        assert self.progress.held >= count, f"the crowd ended with {self.progress.held} holds"

    def go_home(self) -> None:
        """Finish requests in flight, send no new ones."""
        if self.process.returncode is None:
            self.process.terminate()

    async def report(self) -> Report:
        """Its last words."""
        return await asyncio.shield(self.listening)

    async def listen(self) -> Report:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            if not line.startswith(b'{"answers"'):
                return msgspec.json.decode(line, type=Report)
            self.progress = msgspec.json.decode(line, type=Progress)
        raise AssertionError("the crowd ended without a report")


@dataclass(frozen=True)
class Office:
    folder: DataFolder
    url: str
    app: App
    api: httpx2.AsyncClient
    settings: Mapping[str, int | str] = field(default_factory=dict)  # of commands, if engines are elsewhere

    async def a_show(self, **terms: Any) -> int:
        return await a_show(self.app, **terms)

    async def fans(self, how_many: int) -> list[Fan]:
        return await fans(self.app, self.api, how_many)

    def process_id(self, name: str) -> int:
        """Of a child: web-1, work-1, postgres, valkey."""
        return number_in(self.folder.run / f"{name}.pid")

    def kill(self, name: str, sign: signal.Signals = signal.SIGKILL) -> int:
        """`kill -9`; the process id it had."""
        process_id = self.process_id(name)
        os.kill(process_id, sign)
        return process_id

    async def back(self, name: str, after: int, within_s: float = 30) -> float:
        """Wait until the supervisor has restarted it and it is ready; when that was."""
        probes = {"postgres": self._ledger_is_ready, "valkey": self._redis_is_ready}
        is_ready = probes.get(name, partial(self._says_ready, name))

        async def is_back() -> bool:
            return self.process_id(name) not in (0, after) and await is_ready()

        await until(is_back, within_s=within_s)
        returned_at = time.monotonic()
        if name == "valkey":
            await until(self._links_are_new, within_s=within_s)
        return returned_at

    async def _links_are_new(self) -> bool:
        """Each link of `app` to the server before fails once: as many calls at once as there may be links."""
        calls = [self.app.redis.call("PING") for _ in range(self.app.config.redis_links_max)]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        return all(answer == b"PONG" for answer in answers)

    async def _says_ready(self, name: str) -> bool:
        return number_in(self.folder.run / f"{name}.ready") == self.process_id(name)

    async def _ledger_is_ready(self) -> bool:
        lines = lines_in(self.folder.postgres / "postmaster.pid")
        return len(lines) > 7 and lines[0] == str(self.process_id("postgres")) and lines[7].strip() == "ready"

    async def _redis_is_ready(self) -> bool:
        try:
            reader, writer = await asyncio.open_unix_connection(
                self.app.config.redis_url.removeprefix("unix://")
            )
        except OSError:
            return False
        writer.write(b"PING\r\n")
        answer = await reader.readline()
        writer.close()
        return answer == b"+PONG\r\n"

    @asynccontextmanager
    async def crowd(self, fans: Sequence[Fan], wishes: Sequence[Wish], **plan: Any) -> AsyncIterator[Crowd]:
        """A crowd at work; gone when the block ends, whatever happened in it."""
        whole = Plan(url=self.url, tokens=[fan.token for fan in fans], wishes=list(wishes), **plan)
        file = self.folder.path / f"plan-{time.monotonic_ns()}.json"
        file.write_bytes(msgspec.json.encode(whole))
        process = await started(
            "-m", "tests.support.crowd", str(file), stdout=asyncio.subprocess.PIPE, limit=ANSWER_BYTES_MAX
        )
        crowd = Crowd(process)
        try:
            yield crowd
        finally:
            crowd.listening.cancel()
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def storm(self, fans: Sequence[Fan], wishes: Sequence[Wish], **plan: Any) -> Report:
        async with self.crowd(fans, wishes, **plan) as crowd:
            return await crowd.report()

    async def audit(self) -> HouseReport:
        """What `holdfast audit --map --gateway` counts.

        On connections of its own: those of `app` may be older than an engine that was killed.
        """
        config = replace(self.app.config, postgres_timeout_s=AUDIT_WITHIN_S)
        async with open_app(config) as app:
            return await run_audit(app, with_map=True, with_gateway=True, ends=None)

    def last_words(self) -> str:
        """Of the processes, for finding the cause of a failure."""
        logs = sorted(self.folder.path.parent.glob("*.log"))
        return "\n".join(words_in(log) for log in logs)

    async def settled(self, within_s: float = 30) -> None:
        """The audit finds nothing; what is on its way has so long to arrive."""
        give_up_at = time.monotonic() + within_s
        found = await self.audit()
        while found.total and time.monotonic() < give_up_at:
            print("on its way:", found.first()[0], f"and {found.total - 1} more")
            await asyncio.sleep(0.2)
            found = await self.audit()
        assert found.total == 0, found


@asynccontextmanager
async def office(*, web: int = 2, work: bool = True, **settings: int | str) -> AsyncIterator[Office]:
    """`holdfast serve` and, with `work`, `holdfast work` on one folder; stopped and removed at the end."""
    async with AsyncExitStack() as stack:
        path = stack.enter_context(engine_folder("holdfast-storm-"))
        await fill_with_ledger(path / "data")
        words = ("--data", str(path / "data"), "--json")
        serve = ("serve", "--port", "0", "--workers", str(web), *words)
        facts = await stack.enter_async_context(running(path / "serve.log", serve, settings))
        folder = DataFolder(path / "data")
        if work:
            await stack.enter_async_context(jobs(folder, **settings))
        engines = folder.running()
        assert engines is not None
        of_commands = {name: settings[name] for name in ("database_direct_url",) if name in settings}
        config = Config(
            database_url=engines.database_url,
            database_direct_url=str(of_commands.get("database_direct_url", "")),
            redis_url=engines.redis_url,
            gateway_url=(folder.run / "sandbox.url").read_text(),
            gateway_secret=load_or_create_secret(folder.path / "sandbox"),
            access_ttl_s=ACCESS_TTL_S,
        )
        app = await stack.enter_async_context(open_app(config))
        api = await stack.enter_async_context(client_of_killed(facts["url"]))
        yield Office(folder, facts["url"], app, api, of_commands)


@asynccontextmanager
async def jobs(folder: DataFolder, **settings: int | str) -> AsyncIterator[None]:
    """`holdfast work` beside a server that is up."""
    words = ("work", "--data", str(folder.path), "--json")
    async with running(folder.path.parent / "work.log", words, settings):
        yield


@asynccontextmanager
async def running(
    log: Path,
    words: tuple[str, ...],
    settings: Mapping[str, int | str],
    within_s: float = START_WITHIN_S,
) -> AsyncIterator[dict[str, Any]]:
    """A holdfast process that has reported that it is ready."""
    given = {"access_ttl_s": ACCESS_TTL_S, **settings}
    with log.open("wb") as file:
        process = await started(
            "-m", "holdfast", *words, stdout=asyncio.subprocess.PIPE, stderr=file, env=environment(given)
        )
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), within_s)
        assert line, words_in(log)
        yield json.loads(line)
    finally:
        await stopped(process)


async def started(*words: str, **how: Any) -> asyncio.subprocess.Process:
    """A Python process that does not outlive us."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, *words),
        **{"cwd": ROOT, "env": clean(), "preexec_fn": child_setup(None, signal.SIGTERM), **how},
    )


async def stopped(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_WITHIN_S)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise


def environment(settings: Mapping[str, int | str]) -> dict[str, str]:
    """Ours, with these settings of Holdfast and no others."""
    return clean() | {f"HOLDFAST_{name.upper()}": str(value) for name, value in settings.items()}


def clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}


def words_in(log: Path) -> str:
    return "\n".join(lines_in(log)[-WORDS_MAX:])


def number_in(file: Path) -> int:
    """0 while there is none."""
    return int("".join(lines_in(file)) or 0)


def lines_in(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except FileNotFoundError:
        return []
