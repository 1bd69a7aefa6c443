"""`holdfast gate`, as a steward runs it: a scanner that types, a network that comes and goes (R30, G2)."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
import uvicorn

from holdfast.app import Box, asgi_app
from holdfast.config import Config
from holdfast.people import Role
from tests import cast
from tests.cast import Fan
from tests.journeys.gates import a_pass, a_ticket, made
from tests.journeys.test_schemathesis import Server
from tests.patience import until


@pytest.fixture
async def show(a_show: Callable[..., Any]) -> int:
    return int(await a_show(30, price_minor=0, owner_seats_max=30))


@pytest.fixture
async def admin(box: Box, api: httpx2.AsyncClient) -> Fan:
    return (await cast.fans(box, api, 1, Role.ADMIN))[0]


class TestTheCommand:
    """`holdfast gate`, as a steward runs it: a scanner that types, and a network that comes and goes."""

    @pytest.fixture
    async def server(self, config: Config) -> AsyncIterator["Switch"]:
        switch = Switch(config)
        await switch.on()
        yield switch
        await switch.off()

    async def test_it_goes_on_without_a_network_and_tells_later(
        self, server: "Switch", admin: Fan, alice: Fan, show: int, tmp_path: Path
    ) -> None:
        code = (await made(admin, a_pass(show)))["code"]
        tickets = [(await a_ticket(alice, show, f"A-{n}"))["code"] for n in (1, 2, 3)]
        steward = Steward(tmp_path, server.url)
        await steward.start("--code", code)

        online = [await steward.scans(one) for one in (tickets[0], tickets[0], "HELLO")]
        await server.off()
        alone = [await steward.scans(one) for one in (tickets[0], tickets[1], tickets[1])]
        await steward.killed()
        await steward.start()
        restarted = [await steward.scans(one) for one in (tickets[1], tickets[2])]
        await server.on()

        async def told() -> bool:
            inside: int = (await admin.get(f"/admin/shows/{show}/door/counts")).json()["inside"]
            return inside == 3

        await until(told, within_s=20)
        back = await steward.scans(tickets[2])
        await steward.ends()

        assert [(one["verdict"], one["offline"]) for one in online] == [
            ("admitted", False),
            ("used", False),
            ("unknown", False),
        ]
        assert [(one["verdict"], one["offline"]) for one in alone] == [
            ("used", True),
            ("admitted", True),
            ("used", True),
        ]
        assert [one["verdict"] for one in restarted] == ["used", "admitted"]
        assert (back["verdict"], back["offline"]) == ("used", False)
        assert (await admin.get(f"/admin/shows/{show}/door/conflicts")).json()["conflicts"] == []

    async def test_without_a_pass_it_says_so(self, server: "Switch", tmp_path: Path) -> None:
        steward = Steward(tmp_path, server.url)

        await steward.start("--code", "A" * 32)

        assert await steward.ends() == 2
        assert "Not a pass of ours" in steward.complaint


class Switch:
    """A server on a port of its own, that can be switched off and on."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._port = 0
        self._running: Server | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def on(self) -> None:
        application = asgi_app(self._config)
        made_by = uvicorn.Config(
            application, host="127.0.0.1", port=self._port, log_config=None, access_log=False, ws="none"
        )
        self._running = Server(made_by)
        self._serving = asyncio.create_task(self._running.serve())
        running = self._running

        async def started() -> bool:
            return running.started

        await until(started, within_s=10)
        self._port = running.servers[0].sockets[0].getsockname()[1]

    async def off(self) -> None:
        if self._running is not None and self._serving is not None:
            self._running.should_exit = self._running.force_exit = True
            await self._serving
            self._running = None


class Steward:
    """Somebody with `holdfast gate --json`."""

    def __init__(self, folder: Path, server: str) -> None:
        self._folder = folder
        self._server = server
        self._process: asyncio.subprocess.Process | None = None
        self.complaint = ""

    async def start(self, *options: str) -> None:
        self._process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("holdfast")),
            "gate",
            "--json",
            f"--server={self._server}",
            f"--folder={self._folder / 'gate'}",
            *options,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"PATH": os.environ.get("PATH", "")},
        )

    async def scans(self, code: str) -> dict[str, Any]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(code.encode() + b"\n")
        async with asyncio.timeout(20):
            line = await process.stdout.readline()
        return msgspec.json.decode(line, type=dict[str, Any])

    async def killed(self) -> None:
        assert self._process is not None
        self._process.kill()
        await self._process.communicate()

    async def ends(self) -> int:
        assert self._process is not None
        async with asyncio.timeout(20):
            _, complaint = await self._process.communicate(b"")
        self.complaint = complaint.decode()
        assert self._process.returncode is not None
        return self._process.returncode
