"""Every log that can be a bus keeps the same promises: order, one place for each message, no silent holes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial

import pytest

from holdfast.engines.bus import Bus, OutOfStep, in_step
from holdfast.engines.errors import EngineDown
from tests.support.bus_servers import BUSES, Server, a_place, a_server, chain, messages_of, opened, positions
from tests.support.result_tables import OutcomeTable
from tests.support.wait import until

LONG_S = 20.0
Note = Callable[[str, object], None]  # into the table of results


@pytest.fixture(scope="module", autouse=True)
def table(pytestconfig: pytest.Config) -> None:
    """Printed when all tests are over."""
    pytestconfig.pluginmanager.register(OutcomeTable("what a bus promises", __name__), "promises of buses")


@pytest.fixture(scope="module", params=BUSES)
async def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Server]:
    async with a_server(request.param, tmp_path_factory.mktemp(request.param)) as started:
        yield started


@pytest.fixture
async def bus(server: Server) -> AsyncIterator[Bus]:
    async with opened(a_place(server.url)) as one:
        yield one


async def all_of(bus: Bus, after: int = 0) -> list[int]:
    return positions(await messages_of(bus, after))


async def test_appended_messages_are_read_unchanged_and_in_order(bus: Bus) -> None:
    messages = [*chain(3, 4, 9), *chain(10, after=9)]
    await bus.append(messages[:3], 0)
    await bus.append(messages[3:], 9)

    assert await messages_of(bus) == messages
    assert await bus.last() == 10


async def test_an_empty_log_ends_at_nothing_and_has_nothing(bus: Bus) -> None:
    assert await bus.last() == 0
    assert await bus.reader().read(0, 100, 0.05) == []


async def test_an_idle_log_is_not_taken_for_a_dead_one_by_repeated_reads(bus: Bus) -> None:
    reader = bus.reader()

    for _ in range(20):
        assert await reader.read(0, 100, 0.05) == []


async def test_a_reader_goes_on_from_any_position(bus: Bus) -> None:
    await bus.append(chain(2, 3, 5, 8), 0)
    reader = bus.reader()

    assert positions(await reader.read(3, 1, 0.5)) == [5]
    assert positions(await reader.read(5, 100, 0.5)) == [8]
    assert positions(await reader.read(2, 100, 0.5)) == [3, 5, 8]
    assert positions(await reader.read(4, 100, 0.5)) == [5, 8]
    assert await reader.read(8, 100, 0.05) == []


async def test_readers_do_not_take_anything_from_each_other(bus: Bus) -> None:
    await bus.append(chain(1, 2), 0)
    readers = [bus.reader(), bus.reader()]

    found = await asyncio.gather(*(reader.read(0, 100, 0.5) for reader in readers))

    assert [positions(one) for one in found] == [[1, 2], [1, 2]]


async def test_a_waiting_reader_gets_a_message_before_its_timeout(bus: Bus) -> None:
    await bus.append(chain(1), 0)
    reader = bus.reader()
    await reader.read(0, 100, 0.5)

    async def hear() -> list[int]:
        while not (found := await reader.read(1, 100, LONG_S)):
            pass  # Valkey is polled every second
        return positions(found)

    async with asyncio.timeout(LONG_S):
        waiting = asyncio.create_task(hear())
        await asyncio.sleep(0.1)
        await bus.append(chain(2, after=1), 1)

        assert await waiting == [2]


async def test_a_message_has_one_position_for_every_writer(bus: Bus, server: Server) -> None:
    await bus.append(chain(1, 2), 0)

    with pytest.raises(OutOfStep) as twice:
        await bus.append(chain(1, 2), 0)
    with pytest.raises(OutOfStep) as too_far:
        await bus.append(chain(5, after=4), 4)

    assert (twice.value.last, too_far.value.last) == (2, 2)
    assert await all_of(bus) == [1, 2]


async def test_two_that_append_at_once_shuffle_nothing(server: Server) -> None:
    place = a_place(server.url)
    async with opened(place) as one, opened(place) as two:
        await one.append(chain(1), 0)
        refused = 0

        async def keep_appending(bus: Bus) -> None:
            nonlocal refused
            while (last := await bus.last()) < 60:
                try:
                    await bus.append(chain(*range(last + 1, last + 6), after=last), last)
                except OutOfStep:
                    refused += 1

        await asyncio.gather(keep_appending(one), keep_appending(two))

        found = await messages_of(one)
        assert positions(found) == list(range(1, found[-1].position + 1))
        assert [m.after for m in found] == list(range(found[-1].position))


async def test_it_is_bounded_and_a_hole_is_seen(server: Server, record_property: Note) -> None:
    """Valkey trims whole nodes of a hundred entries: about so many. Kafka's bound is a topic's setting."""
    pad = server.bytes_max // 500
    async with opened(a_place(server.url, messages_max=100)) as bus:
        for begin in range(0, 1000, 100):
            await bus.append(chain(*range(begin + 1, begin + 101), after=begin, pad=pad), begin)
        found = await messages_of(bus, 5)

    if server.bytes_max:
        record_property("note", f"by the server: {server.bytes_max // 1_000_000} MB")
        assert 100 <= len(found) <= 600
    else:
        assert 100 <= len(found) <= 200
    assert found[-1].position == 1000
    assert in_step(5, found) == []
    assert in_step(found[0].after, found) == found


async def test_a_cleared_log_starts_over(bus: Bus, server: Server, record_property: Note) -> None:
    await bus.append(chain(7, 8), 0)
    reader = bus.reader()
    await reader.read(0, 100, 0.5)
    if not server.clears:
        record_property("note", "not in the mock; it says so")
        with pytest.raises(EngineDown) as cannot:
            await bus.clear()
        assert "DeleteRecords" in repr(cannot.value.__cause__)
        return
    await bus.clear()

    assert await bus.last() == 0
    await bus.append(chain(3, 4, after=2), 0)
    assert await all_of(bus) == [3, 4]
    assert positions(await reader.read(2, 100, 0.5)) == [3, 4]


async def test_an_outage_raises_and_reading_continues_afterwards(bus: Bus, server: Server) -> None:
    await bus.append(chain(1, 2), 0)
    reader = bus.reader()
    await reader.read(0, 100, 0.5)
    await server.kill()
    try:
        with pytest.raises(EngineDown):
            await bus.append(chain(3, after=2), 2)
        with pytest.raises(EngineDown):
            await reader.read(2, 100, 0.05)
    finally:
        await server.start()

    await until(partial(answers, bus), within_s=15)
    last = await bus.last()
    await bus.append(chain(3, after=2), last)
    assert positions(await reader.read(2, 100, 1.0)) == [3]
    # Messages in memory are lost, messages on disk are not: `last` shows which.
    assert last == (2 if server.keeps else 0)


async def test_a_server_that_lost_all_data_is_detected(bus: Bus, server: Server) -> None:
    await bus.append(chain(1, 2, 3), 0)
    reader = bus.reader()
    await reader.read(0, 100, 0.5)
    await server.forget()
    await until(partial(answers, bus), within_s=15)

    assert await bus.last() == 0
    await bus.append(chain(3, 4, after=2), 0)
    assert positions(await reader.read(3, 100, 1.0)) == [4]


async def answers(bus: Bus) -> bool:
    try:
        await bus.last()
    except EngineDown:
        return False
    return True
