"""Supervised child processes.

    start ─► ready ─► (dies) ─► pause ─► start again …          first at once, then 0.2 s, 0.4 s, … 2 s
                         └─ while DATA/run/<name>.hold exists: not started (an operator's switch)
    renew ─► a second process ─► ready ─► the first one is stopped; not ready: the second one is, and all is
                                          as it was

A group is started together and stopped together; groups stop in the reverse order of their start. Children
are in sessions of their own, so that Ctrl-C reaches us alone and they are stopped in that order; and they are
signalled by the kernel when this process dies unexpectedly.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.engines.embedded.folder import DataFolder
from holdfast.engines.embedded.privilege import User, child_setup
from holdfast.engines.errors import OperatorError

LOOK_S = 0.02  # between two looks at whether a child is ready
HOLD_LOOK_S = 0.1  # between two looks for the hold file
PAUSE_FIRST_S = 0.2
PAUSE_MAX_S = 2.0
STEADY_S = 10.0  # who lived this long is started again at once
RENEWED_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a child is started, known to be ready, and stopped."""

    name: str
    command: tuple[str, ...]
    ready: Callable[[int], Awaitable[bool]]  # of the process with this id
    before: Callable[[], Awaitable[None]] | None = None  # ahead of every start
    env: Mapping[str, str] = field(default_factory=dict)  # overrides our own variables of the same names
    user: User | None = None
    ready_within_s: float = 60.0
    stop_signal: signal.Signals = signal.SIGTERM
    stop_within_s: float = 30.0
    force_signal: signal.Signals = signal.SIGKILL  # for who did not stop in time
    death_signal: signal.Signals = signal.SIGKILL  # what the kernel sends it when we die
    speaks: bool = False  # its words go to our stderr, not to a log file
    is_single: bool = False  # no second process may run beside it: it is not renewed


class Child:
    def __init__(self, recipe: Recipe, folder: DataFolder) -> None:
        self.recipe = recipe
        self.restarts = 0
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None
        self._is_up = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self.recipe.name

    @property
    def pid(self) -> int:
        """0 while it is not running."""
        return self._process.pid if self._process and self._process.returncode is None else 0

    @property
    def is_held(self) -> bool:
        return self.hold_file.exists()

    @property
    def hold_file(self) -> Path:
        return self._folder.run / f"{self.name}.hold"

    async def start(self) -> None:
        """Up and ready when this returns; Trouble when it ends before it is ready."""
        await self._spawn()
        try:
            async with asyncio.timeout(self.recipe.ready_within_s):
                is_ready = await self._wait_ready()
        except TimeoutError:
            is_ready = False
        if not is_ready:
            await self._end()
            raise OperatorError(f"{self.name} did not start: {self._last_words()}")
        self._keeper = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        await self._stop_keeping()
        await self._end()

    async def renew(self) -> bool:
        """A new process takes the place of the running one, which then finishes what it has under way.

        False: the new one did not start, and the old one goes on. A child that is held, or is just being
        started again, reads its settings then.
        """
        if self.recipe.is_single or not self.pid or self.is_held or not self._is_up.is_set():
            return True
        await self._stop_keeping()
        old = self._process
        assert old is not None
        try:
            is_ready = await self._spawn_beside()
        except asyncio.CancelledError:  # we are stopped: `stop` ends the new one
            _kill(old)
            raise
        new, self._process = self._process, self._process if is_ready else old
        await self._end_process(old if is_ready else new)
        if not is_ready:
            for kind in ("pid", "ready"):
                self._folder.write(f"{self.name}.{kind}", str(old.pid))
        self._is_up.set()
        self._keeper = asyncio.create_task(self._keep())
        return is_ready

    async def _spawn_beside(self) -> bool:
        try:
            await self._spawn()
            async with asyncio.timeout(RENEWED_WITHIN_S):
                return await self._wait_ready()
        except (OperatorError, TimeoutError) as error:
            _say(f"{self.name} cannot be renewed: {error}")
            return False

    async def _stop_keeping(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeper

    async def up(self, *, after: int = 0) -> int:
        """Wait until it is ready, as another process than `after`; its process id."""
        while True:
            await self._is_up.wait()
            if self.pid not in (0, after):
                return self.pid
            await asyncio.sleep(LOOK_S)  # it died a moment ago, and that is not known here yet

    def kill(self) -> None:
        """As the kernel's out-of-memory killer would."""
        if self.pid:
            self._is_up.clear()
            os.kill(self.pid, signal.SIGKILL)

    async def hold(self) -> None:
        """Stop it, and do not start it again until `release`."""
        self.hold_file.touch()
        if self.pid and self._process is not None:
            os.kill(self.pid, self.recipe.stop_signal)
            await self._process.wait()

    async def release(self) -> int:
        self.hold_file.unlink(missing_ok=True)
        return await self.up()

    async def _keep(self) -> None:
        pause_s = 0.0
        while True:
            began = time.monotonic()
            await self._outlive()
            pause_s = 0.0 if time.monotonic() - began > STEADY_S else pause_s
            while True:
                await asyncio.sleep(HOLD_LOOK_S if self.is_held else pause_s)
                pause_s = 0.0 if self.is_held else min(max(PAUSE_FIRST_S, pause_s * 2), PAUSE_MAX_S)
                if await self._start_again():
                    break

    async def _outlive(self) -> None:
        assert self._process is not None
        code = await self._process.wait()
        self._is_up.clear()
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        next_step = f"held by {self.hold_file}" if self.is_held else "starting it again"
        _say(f"{self.name} {how}; {next_step}")

    async def _start_again(self) -> bool:
        if self.is_held:
            return False
        try:
            await self._spawn()
        except (OperatorError, OSError) as error:
            _say(f"{self.name} cannot be started yet: {error}")
            return False
        if not await self._wait_ready():
            _say(f"{self.name} did not start: {self._last_words()}")
            return False
        self.restarts += 1
        return True

    async def _spawn(self) -> None:
        recipe = self.recipe
        if recipe.before is not None:
            await recipe.before()
        words = 2 if recipe.speaks else self._folder.open_log(self.name)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *recipe.command,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                env={**os.environ, **recipe.env},
                start_new_session=True,
                preexec_fn=child_setup(recipe.user, recipe.death_signal),
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise OperatorError(f"{recipe.command[0]} cannot be run: {error}") from None
        finally:
            if not recipe.speaks:
                os.close(words)
        self._folder.write(f"{self.name}.pid", str(self._process.pid))

    async def _wait_ready(self) -> bool:
        assert self._process is not None
        while self._process.returncode is None:
            if await self.recipe.ready(self._process.pid):
                self._is_up.set()
                return True
            await asyncio.sleep(LOOK_S)
        return False

    async def _end(self) -> None:
        if self._process is None:
            return
        await self._end_process(self._process)
        self._is_up.clear()
        for kind in ("pid", "ready"):
            (self._folder.run / f"{self.name}.{kind}").unlink(missing_ok=True)

    async def _end_process(self, process: asyncio.subprocess.Process | None) -> None:
        for sign in (self.recipe.stop_signal, self.recipe.force_signal, signal.SIGKILL):
            if process is None or process.returncode is not None:
                break
            process.send_signal(sign)
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), self.recipe.stop_within_s)

    def _last_words(self) -> str:
        if self.recipe.speaks:
            return "see above"
        path = self._folder.log_of(self.name)
        lines = path.read_text(errors="replace").split("\n") if path.exists() else []
        words = next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")
        return f"{words} (see {path})"


class Supervisor:
    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._groups: list[list[Child]] = []

    async def start(self, *recipes: Recipe) -> list[Child]:
        """Start a group. When one of it does not start, the Trouble is raised, and `stop` ends the others."""
        group = [Child(recipe, self._folder) for recipe in recipes]
        self._groups.append(group)
        started = await asyncio.gather(*(child.start() for child in group), return_exceptions=True)
        for outcome in started:
            if isinstance(outcome, BaseException):
                raise outcome
        return group

    async def renew(self) -> bool:
        """Replace every child, one after the other. False: one did not start, and it and the rest stay."""
        for child in (child for group in self._groups for child in group):
            if not await child.renew():
                _say(f"{child.name} did not start again: the processes before it stay")
                return False
        return True

    async def stop(self) -> None:
        while self._groups:
            await asyncio.gather(*(child.stop() for child in self._groups[-1]))
            self._groups.pop()

    def kill(self) -> None:
        """The operator is out of patience."""
        for child in (child for group in self._groups for child in group):
            child.kill()


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()


def _say(line: str) -> None:
    print(f"holdfast: {line}", file=sys.stderr, flush=True)
