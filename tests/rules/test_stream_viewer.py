"""One viewer: sent to while the network accepts data, queued while it does not, disconnected at the limit."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from starlette.types import Message

from holdfast.errors import Busy
from holdfast.seatmap.live_api import Stream

BACKLOG_MAX = 100


class Network:
    """As a server's send is: it writes and is done, or waits before it writes."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.is_over = False
        self.is_narrow = False  # it takes one piece, and then nothing until the test allows it
        self.takes = asyncio.Event()
        self.takes.set()

    async def send(self, message: Message) -> None:
        await self.takes.wait()
        if message["type"] == "http.response.body":
            self.sent.append(message["body"])
            self.is_over = not message.get("more_body")
            if self.is_narrow:
                self.takes.clear()

    @property
    def text(self) -> bytes:
        return b"".join(self.sent)


@asynccontextmanager
async def watching(network: Network) -> AsyncIterator[tuple[Stream, "asyncio.Task[None]"]]:
    """A viewer in a task of their own, as the server has them; and that task."""
    made: asyncio.Future[Stream] = asyncio.get_running_loop().create_future()

    async def watch() -> None:
        viewer = Stream(network.send, 0, BACKLOG_MAX)
        made.set_result(viewer)
        try:
            await viewer.begin(b"first ")
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not viewer.is_over:
                raise
            await viewer.say_goodbye()

    task = asyncio.create_task(watch())
    viewer = await made
    await turns()
    yield viewer, task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    viewer.stop()


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_pushed_frame_is_sent_before_push_returns() -> None:
    network = Network()
    async with watching(network) as (viewer, _):
        viewer.push(b"one ")

        assert network.text == b"first one "


async def test_changes_before_the_snapshot_is_sent_follow_it() -> None:
    network = Network()
    network.takes.clear()
    async with watching(network) as (viewer, _):
        viewer.push(b"one ")
        viewer.push(b"two ")
        network.takes.set()
        await turns()
        viewer.push(b"three ")

        assert network.text == b"first one two three "


async def test_a_slow_network_gets_everything_in_order_when_it_is_back() -> None:
    network = Network()
    async with watching(network) as (viewer, task):
        network.takes.clear()
        for number in range(5):
            viewer.push(b"%d " % number)
            await turns()
        network.takes.set()
        await turns()
        viewer.push(b"5 ")

        assert network.text == b"first 0 1 2 3 4 5 "
        assert not task.done()


async def test_a_viewer_that_reads_nothing_is_disconnected_cleanly_at_the_limit() -> None:
    network = Network()
    async with watching(network) as (viewer, task):
        network.takes.clear()
        for _ in range(11):
            viewer.push(b"x" * 10)
        await turns()
        was_cut = viewer.is_over
        viewer.push(b"later")
        network.takes.set()
        await asyncio.wait_for(task, 1)

    assert was_cut
    assert (network.text, network.is_over) == (b"first ", True)


async def test_up_to_the_limit_no_viewer_is_cut() -> None:
    network = Network()
    async with watching(network) as (viewer, _):
        network.takes.clear()
        for _ in range(10):
            viewer.push(b"x" * 10)
        await turns()

        assert not viewer.is_over


async def test_data_queued_during_a_send_counts_after_it() -> None:
    network = Network()
    network.is_narrow = True
    async with watching(network) as (viewer, _):
        viewer.push(b"x" * 40)
        await turns()  # on its way
        viewer.push(b"y" * 60)
        was_cut_at_the_limit = viewer.is_over
        network.takes.set()
        await turns()  # the first is out, the second on its way
        viewer.push(b"z" * 40)
        was_cut_at_the_limit_again = viewer.is_over
        viewer.push(b"z")

        assert not was_cut_at_the_limit
        assert not was_cut_at_the_limit_again
        assert viewer.is_over


async def test_a_snapshot_longer_than_the_limit_does_not_disconnect() -> None:
    network = Network()
    async with watching(network) as (viewer, _):
        network.takes.clear()
        viewer.push(b"x" * (BACKLOG_MAX + 1))

        assert not viewer.is_over


async def test_a_closed_viewer_gets_the_final_message() -> None:
    network = Network()
    async with watching(network) as (viewer, task):
        viewer.push(b"one ")
        viewer.end(b"bye")
        await asyncio.wait_for(task, 1)

    assert (network.text, network.is_over) == (b"first one bye", True)


async def test_a_viewer_closed_before_the_start_is_refused() -> None:
    network = Network()
    network.takes.clear()
    async with watching(network) as (viewer, task):
        viewer.end(b"bye")

        with pytest.raises(Busy):
            await asyncio.wait_for(task, 1)
