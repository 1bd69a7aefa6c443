"""Real servers for a bus, of the test's own: started, killed, started again at the same address."""

import asyncio
import secrets
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from holdfast.engines.bus import Bus, BusPlace, Message
from holdfast.engines.buses import open_bus
from holdfast.engines.embedded.binaries import find_valkey
from holdfast.engines.embedded.privilege import child_setup
from tests.support.wait import is_listening, until

ROOT = Path(__file__).parents[2]
NATS = Path(sys.executable).parent / "nats-server"
READ_WITHIN_S = 20
TIMEOUT_S = 5  # a busy machine, and not a server that is gone


def a_place(url: str, messages_max: int = 1000) -> BusPlace:
    name = f"log-{secrets.token_hex(4)}"
    return BusPlace(url=url, name=name, messages_max=messages_max, timeout_s=TIMEOUT_S)


def chain(*positions: int, after: int = 0, pad: int = 0) -> list[Message]:
    befores, end = [after, *positions[:-1]], b"." * pad
    bodies = [f"body {p}".encode() + end for p in positions]
    return [Message(*one) for one in zip(positions, befores, bodies, strict=True)]


def positions(messages: list[Message]) -> list[int]:
    return [message.position for message in messages]


async def messages_of(bus: Bus, after: int = 0) -> list[Message]:
    """All that there are: a read may bring less."""
    reader, end = bus.reader(), await bus.last()
    found: list[Message] = []
    async with asyncio.timeout(READ_WITHIN_S):
        while (at := found[-1].position if found else after) < end:
            found += await reader.read(at, 1000, 0.2)
    await reader.close()
    return found


@dataclass
class Server:
    """One process. Each kind of server declares its limits here; the table of results shows them."""

    folder: Path
    port: int = 0
    process: asyncio.subprocess.Process | None = field(default=None, init=False)

    name: ClassVar[str]
    scheme: ClassVar[str]
    keeps: ClassVar[bool] = False  # messages survive a kill
    clears: ClassVar[bool] = True  # a log can be cleared
    bytes_max: ClassVar[int] = 0  # of a log, whatever was configured; 0: as many messages as configured

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    async def start(self) -> None:
        self.port = self.port or a_free_port()
        self.process = await asyncio.create_subprocess_exec(
            *self.command(),
            cwd=ROOT,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            preexec_fn=child_setup(None, signal.SIGTERM),
        )
        await until(self.answers, within_s=20)

    async def kill(self) -> None:
        assert self.process is not None
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()

    async def forget(self) -> None:
        """A new server with an empty disk, at the same address."""
        await self.kill()
        await self.start()

    def command(self) -> Sequence[str]:
        raise NotImplementedError

    async def answers(self) -> bool:
        assert self.process is not None
        assert self.process.returncode is None, f"{self.name} has ended: {self.process.returncode}"
        return await is_listening(self.port)


class ValkeyServer(Server):
    """It keeps nothing on disk, as the one that is started beside the holds."""

    name, scheme = "valkey", "redis"

    def command(self) -> Sequence[str]:
        settings = ("--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
        return (str(find_valkey().path), *settings, "--dir", str(self.folder))


class NatsServer(Server):
    """Every acknowledged message is on disk: by default the server would wait two minutes for that."""

    name, scheme = "nats", "nats"
    keeps = True

    def command(self) -> Sequence[str]:
        settings = self.folder / "nats.conf"
        settings.write_text(
            f'listen: "127.0.0.1:{self.port}"\n'
            f'jetstream {{ store_dir: "{self.folder}/store", sync_interval: always }}\n'
        )
        return str(NATS), "-c", str(settings)

    async def forget(self) -> None:
        await self.kill()
        shutil.rmtree(self.folder / "store")
        await self.start()


class KafkaServer(Server):
    """librdkafka's mock cluster: the protocol over TCP, everything in memory, 5 MB a log.

    It has no DeleteRecords, no DeleteTopics and no settings of a topic.
    """

    name, scheme = "kafka", "kafka"
    clears = False
    bytes_max = 5_000_000

    def command(self) -> Sequence[str]:
        return sys.executable, "-m", "tests.fakes.kafka_server", str(self.port)


BUSES: dict[str, type[Server]] = {one.name: one for one in (ValkeyServer, NatsServer, KafkaServer)}


@asynccontextmanager
async def a_server(name: str, folder: Path) -> AsyncIterator[Server]:
    server = BUSES[name](folder)
    try:
        await server.start()
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
