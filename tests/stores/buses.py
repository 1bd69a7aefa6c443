"""Real servers for a bus, of the test's own: started, killed, started again on the same data."""

import asyncio
import secrets
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.engines.bus import Bus, BusPlace, Message
from holdfast.engines.buses import open_bus
from holdfast.engines.embedded.privilege import child_setup
from tests.patience import until
from tests.stores.stages import Stage

NATS = Path(sys.executable).parent / "nats-server"


def a_place(url: str, messages_max: int = 1000) -> BusPlace:
    return BusPlace(url=url, name=f"log-{secrets.token_hex(4)}", messages_max=messages_max, timeout_s=5)


def chain(*positions: int, after: int = 0) -> list[Message]:
    befores = [after, *positions[:-1]]
    return [Message(p, before, f"body {p}".encode()) for p, before in zip(positions, befores, strict=True)]


def positions(messages: list[Message]) -> list[int]:
    return [message.position for message in messages]


@dataclass
class NatsServer:
    folder: Path
    port: int = 0
    process: asyncio.subprocess.Process | None = field(default=None, init=False)

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Every acknowledged message is on disk: by default the server would wait two minutes for that."""
        self.port = self.port or a_free_port()
        settings = self.folder / "nats.conf"
        settings.write_text(
            f'listen: "127.0.0.1:{self.port}"\n'
            f'jetstream {{ store_dir: "{self.folder}/store", sync_interval: always }}\n'
        )
        self.process = await asyncio.create_subprocess_exec(
            *(str(NATS), "-c", str(settings)),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            preexec_fn=child_setup(None, signal.SIGTERM),
        )
        await until(self._answers, within_s=20)

    async def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        await self.process.wait()

    async def forget(self) -> None:
        """A new server on an empty disk, at the same address."""
        await self.kill()
        shutil.rmtree(self.folder / "store")
        await self.start()

    async def _answers(self) -> bool:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        line = await reader.readline()
        writer.close()
        return line.startswith(b"INFO")


@dataclass
class ValkeyServer:
    """The one of the stage."""

    stage: Stage

    @property
    def url(self) -> str:
        return self.stage.engines.redis_url

    async def kill(self) -> None:
        await self.stage.engines.valkey.hold()

    async def start(self) -> None:
        await self.stage.bring_valkey_back()

    async def forget(self) -> None:
        await self.kill()
        await self.start()


Server = NatsServer | ValkeyServer


@asynccontextmanager
async def a_nats_server(folder: Path) -> AsyncIterator[NatsServer]:
    server = NatsServer(folder)
    await server.start()
    try:
        yield server
    finally:
        await server.kill()


@asynccontextmanager
async def opened(place: BusPlace) -> AsyncIterator[Bus]:
    bus = open_bus(place)
    try:
        yield bus
    finally:
        await bus.close()


def a_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
