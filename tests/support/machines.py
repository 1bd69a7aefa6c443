"""Machines of a cluster: a command of Holdfast with a data folder of its own, or a proxy in front of them.

All run on this computer. A machine is killed as by a power cut: every process of it at once.
"""

import asyncio
import json
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.engines.embedded.privilege import child_setup
from tests.support.box_office import ACCESS_TTL_S, START_WITHIN_S, environment, started, stopped, words_in
from tests.support.cli_process import free_port
from tests.support.wait import is_listening, until
from tools.nginx import NginxSetup

NAMES = ("127.0.0.1", "storm", "here")  # of requests of tests, buyers and viewers
NO_RATES = dict.fromkeys(("browse", "buy", "forms", "holds", "sign_in", "probes"), 100_000)


def end_all(process_id: int) -> None:
    """SIGKILL to a process and its children. It is stopped first: it could start them again."""
    os.kill(process_id, signal.SIGSTOP)
    children = Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()
    for one in (*map(int, children), process_id):
        os.kill(one, signal.SIGKILL)


@dataclass
class Machine:
    """`holdfast serve` or `holdfast work`."""

    folder: Path
    words: Sequence[str]
    settings: Mapping[str, int | str]
    facts: dict[str, Any] = field(default_factory=dict)  # what it printed when it was ready
    process: asyncio.subprocess.Process | None = field(default=None, init=False)

    async def start(self) -> None:
        log = self.folder.with_suffix(".log")
        given = {"access_ttl_s": ACCESS_TTL_S, **self.settings}
        with log.open("ab") as file:
            self.process = await started(
                *("-m", "holdfast", *self.words, "--data", str(self.folder), "--json"),
                stdout=asyncio.subprocess.PIPE,
                stderr=file,
                env=environment(given),
            )
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), START_WITHIN_S)
        assert line, words_in(log)
        self.facts = json.loads(line)

    async def kill(self) -> None:
        assert self.process is not None
        end_all(self.process.pid)
        await self.process.wait()

    async def stop(self) -> None:
        """As systemd does it: requests under way are finished."""
        if self.process is not None:
            await stopped(self.process)


@dataclass
class WebMachine(Machine):
    port: int = field(default_factory=free_port)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


def web_machine(folder: Path, settings: Mapping[str, int | str]) -> WebMachine:
    port = free_port()
    words = ("serve", "--port", str(port), "--workers", "1")
    return WebMachine(folder, words, settings, port=port)


def work_machine(folder: Path, settings: Mapping[str, int | str]) -> Machine:
    return Machine(folder, ("work",), settings)


@dataclass
class Nginx:
    """On deploy/nginx.conf, without its limits per address: all clients of a storm have one."""

    folder: Path
    apps: Sequence[str]
    port: int = field(default_factory=free_port)
    process: asyncio.subprocess.Process | None = field(default=None, init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        setup = NginxSetup(
            folder=self.folder,
            port=self.port,
            apps=self.apps,
            workers="1",
            names=NAMES,
            rates=NO_RATES,
            per_address=10_000,
        )
        setup.write()
        self.process = await asyncio.create_subprocess_exec(
            *setup.command(), preexec_fn=child_setup(None, signal.SIGTERM)
        )
        await until(lambda: is_listening(self.port))

    async def kill(self) -> None:
        assert self.process is not None
        end_all(self.process.pid)
        await self.process.wait()

    async def stop(self) -> None:
        if self.process is not None and self.process.returncode is None:
            await self.kill()
