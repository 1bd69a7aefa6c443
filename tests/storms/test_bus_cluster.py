"""A bus on three nodes, each of them killed and brought back: nothing that was appended is lost (R28).

NATS with --full only: its nodes take many seconds to elect a leader.
"""

import asyncio
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from holdfast.engines.bus import Bus, OutOfStep, in_step
from holdfast.engines.errors import EngineDown
from tests.support.bus_clusters import CLUSTERS, NODES
from tests.support.bus_servers import chain, opened
from tests.support.result_tables import Table
from tests.support.wait import until

BATCH = 10
PAUSE_S = 0.02
MORE, MORE_FULL = 200, 2_000  # messages before each kill, and before the node is back


@dataclass
class Writer:
    """Appends as the relay does: without an answer, it looks where the log ends, and goes on from there."""

    bus: Bus
    end: int = 0
    acknowledged: int = 0
    at: list[float] = field(default_factory=list)  # when each batch was acknowledged
    lost: list[str] = field(default_factory=list)
    is_over: bool = False

    async def write(self) -> None:
        while not self.is_over:
            batch = chain(*range(self.end + 1, self.end + BATCH + 1), after=self.end)
            try:
                await self.bus.append(batch, self.end)
                self.end = self.acknowledged = batch[-1].position
                self.at.append(time.monotonic())
            except OutOfStep as found:
                self.look(found.last)
            except EngineDown:
                await self.find_end()
            await asyncio.sleep(PAUSE_S)

    async def find_end(self) -> None:
        try:
            self.look(await self.bus.last())
        except EngineDown:
            await asyncio.sleep(PAUSE_S)

    def look(self, end: int) -> None:
        if end < self.acknowledged:
            self.lost.append(f"the log ends at {end}, and {self.acknowledged} was acknowledged")
        self.end = end

    def longest_pause_after(self, moment: float) -> float:
        """Between two batches."""
        acknowledged = [moment, *(at for at in self.at if at > moment)]
        return max(later - sooner for sooner, later in pairwise(acknowledged))

    async def more(self, count: int) -> None:
        wanted = self.acknowledged + count
        await until(lambda: asyncio.sleep(0, self.acknowledged >= wanted), within_s=120)


@dataclass
class Listener:
    """Reads from its own position on, as a consumer does."""

    bus: Bus
    found: list[int] = field(default_factory=list)

    async def listen(self) -> None:
        reader = self.bus.reader()
        while True:
            at = self.found[-1] if self.found else 0
            try:
                read = await reader.read(at, 1000, 0.2)
            except EngineDown:
                await asyncio.sleep(PAUSE_S)
                continue
            self.found += [message.position for message in in_step(at, read)]

    async def has_all(self, end: int) -> bool:
        return bool(self.found) and self.found[-1] >= end


@pytest.fixture(scope="module")
def table(pytestconfig: pytest.Config) -> Table:
    """Printed when all tests are over."""
    made = Table("a bus on three nodes, each killed in turn")
    pytestconfig.pluginmanager.register(made, "buses on three nodes")
    return made


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", CLUSTERS if metafunc.config.getoption("--full") else ["kafka"])


async def test_a_lost_node_takes_no_message_with_it(
    name: str, table: Table, tmp_path: Path, is_full: bool
) -> None:
    more, kills = MORE_FULL if is_full else MORE, NODES
    async with CLUSTERS[name](tmp_path) as cluster:
        async with opened(cluster.place) as bus, opened(cluster.place) as other:
            writer, listener = Writer(bus), Listener(other)
            writing, listening = (asyncio.create_task(one) for one in (writer.write(), listener.listen()))
            pauses = []
            for turn in range(kills):
                await writer.more(more)
                killed_at = time.monotonic()
                await cluster.take_away(turn)
                await writer.more(more)
                pauses.append(writer.longest_pause_after(killed_at))
                await cluster.bring_back()
            writer.is_over = True
            await writing
            await until(lambda: listener.has_all(writer.end), within_s=60)
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    for what, value in {
        "nodes killed": kills,
        "acknowledged": writer.acknowledged,
        "read": len(listener.found),
        "lost": len(writer.lost),
        "longest pause": f"{max(pauses):.1f} s",
    }.items():
        table.note(name, what, value)
    assert writer.lost == []
    assert listener.found == list(range(1, writer.end + 1))
