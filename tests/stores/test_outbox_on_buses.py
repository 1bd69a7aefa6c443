"""Relay and consumer on every bus there is: in order, once, and nothing lost with the bus (R28)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial

import pytest

from holdfast.app import App
from holdfast.engines.errors import EngineDown
from holdfast.outbox import Outbox
from holdfast.outbox.relay import ConsumerWorker, Relay
from holdfast.outbox.store import RELAY
from tests.support.bus_servers import BUSES, Server, a_server, messages_of, positions
from tests.support.fact_recorder import FactRecorder, checkpoint, other_outbox, relayed, turns_are_free
from tests.support.own_engines import Stage
from tests.support.show_fixture import Till, an_owner
from tests.support.wait import until


@dataclass
class Scene:
    """A show, a bus, and a recorder that consumes facts from it."""

    till: Till
    server: Server
    outbox: Outbox
    reader: FactRecorder
    consumer_worker: ConsumerWorker

    @property
    def app(self) -> App:
        return self.till.app

    async def sell(self, *seats: int) -> list[int]:
        """Numbers of bookings that were opened and cancelled."""
        bookings = [await self.till.opened(seat, owner_id=an_owner()) for seat in seats]
        for booking in bookings:
            await self.till.ledger.cancel(booking, booking.owner_id)
        return [booking.number for booking in bookings]

    async def relay(self) -> None:
        await relayed(self.app, Relay(self.outbox, self.app.config))

    async def bus_ends_at(self) -> int:
        return await (await self.outbox.bus()).last()

    async def bus_is_back(self) -> bool:
        try:
            await self.bus_ends_at()
        except EngineDown:
            return False
        return True


@pytest.fixture(scope="module", params=BUSES)
async def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Server]:
    async with a_server(request.param, tmp_path_factory.mktemp(request.param)) as started:
        yield started


@pytest.fixture
async def scene(stage: Stage, server: Server) -> AsyncIterator[Scene]:
    till = await stage.till(20)
    await turns_are_free(stage.app)
    outbox = other_outbox(stage.app, bus_url=server.url)
    reader = await FactRecorder(stage.app).open()
    yield Scene(till, server, outbox, reader, reader.another(outbox))
    await outbox.close()


KINDS = ["booking.held", "booking.cancelled"]


async def test_every_fact_is_received_in_order_and_once(scene: Scene) -> None:
    numbers = await scene.sell(1, 2, 3)
    await scene.relay()
    await scene.reader.consume(scene.consumer_worker)

    assert [scene.reader.of(number) for number in numbers] == [KINDS] * 3
    assert len(scene.reader.ids) == len(set(scene.reader.ids)) == 6


async def test_while_the_bus_is_down_facts_wait_and_then_arrive_in_order(scene: Scene) -> None:
    await scene.sell(1)
    await scene.relay()
    before = await checkpoint(scene.app, RELAY)
    await scene.server.kill()
    try:
        numbers = await scene.sell(2, 3)
        await scene.relay()
        waiting_from = await checkpoint(scene.app, RELAY)
    finally:
        await scene.server.start()
    await until(scene.bus_is_back, within_s=15)
    await scene.relay()
    await scene.relay()
    await scene.reader.consume(scene.consumer_worker)

    assert waiting_from == before
    assert await scene.bus_ends_at() == await checkpoint(scene.app, RELAY) == scene.reader.ids[-1]
    assert [scene.reader.of(number) for number in numbers] == [KINDS] * 2


async def test_facts_missing_on_an_empty_server_are_published_again(scene: Scene) -> None:
    await scene.sell(1)
    await scene.relay()
    await scene.server.forget()
    await until(scene.bus_is_back, within_s=15)
    await scene.sell(2)
    await scene.relay()
    await scene.relay()

    on_the_bus = positions(await messages_of(await scene.outbox.bus()))
    await scene.reader.consume(scene.consumer_worker)

    assert len(scene.reader.received) == 4
    assert set(on_the_bus) >= set(scene.reader.ids)


async def test_a_bus_that_has_been_elsewhere_is_filled_from_the_oldest_checkpoint(scene: Scene) -> None:
    """As when an operator moves from one bus to another: HOLDFAST_BUS_URL is all there is to change."""
    await scene.sell(1)
    await relayed(scene.app)
    await scene.relay()
    await scene.relay()
    await until(partial(is_level, scene))

    await scene.reader.consume(scene.consumer_worker)

    assert len(scene.reader.received) == 2


async def is_level(scene: Scene) -> bool:
    await scene.relay()
    return await scene.bus_ends_at() == await checkpoint(scene.app, RELAY)
