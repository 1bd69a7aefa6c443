"""The batcher: many callers, one batch, as its docstring promises."""

import asyncio
from collections.abc import Sequence

import pytest

from holdfast.engines.batch import Batcher, Onward
from holdfast.errors import Busy


class Wire:
    """Sends batches one at a time, when the test lets it; answers each item with its double."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.under_way = 0
        self.open = asyncio.Event()
        self.open.set()
        self.gone = asyncio.Event()

    async def send(self, items: Sequence[int]) -> list[int]:
        self.batches.append(list(items))
        self.gone.set()
        self.under_way += 1
        assert self.under_way == 1, "two batches at once"
        await self.open.wait()
        await asyncio.sleep(0)
        self.under_way -= 1
        if 13 in items:
            raise ValueError("thirteen")
        return [item * 2 for item in items]


def a_batcher(wire: Wire, *, batch_max: int = 4, waiting_max: int = 100) -> Batcher[int, int]:
    return Batcher(wire.send, batch_max=batch_max, waiting_max=waiting_max)


async def turns(count: int) -> None:
    """Turn the loop so often that a batch which waits for nothing is gone."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_each_caller_gets_the_answer_to_his_own_question() -> None:
    wire = Wire()
    ask = a_batcher(wire)

    assert await asyncio.gather(*(ask(n) for n in range(10))) == [n * 2 for n in range(10)]


async def test_batches_are_between_one_and_the_limit_and_in_order() -> None:
    wire = Wire()
    ask = a_batcher(wire)
    await asyncio.gather(*(ask(n) for n in range(10)))

    assert [len(batch) for batch in wire.batches] == [4, 4, 2]
    assert [n for batch in wire.batches for n in batch] == list(range(10))


async def test_while_one_batch_is_under_way_the_next_one_gathers() -> None:
    wire = Wire()
    ask = a_batcher(wire, batch_max=100)
    wire.open.clear()
    first = ask(0)
    await wire.gone.wait()
    rest = [ask(n) for n in range(1, 6)]
    wire.open.set()
    await asyncio.gather(first, *rest)

    assert wire.batches == [[0], [1, 2, 3, 4, 5]]


async def test_an_idle_batcher_does_not_wait() -> None:
    wire = Wire()

    assert await asyncio.wait_for(a_batcher(wire)(21), 0.5) == 42
    assert wire.batches == [[21]]


async def test_a_limit_of_one_switches_batching_off() -> None:
    wire = Wire()
    ask = a_batcher(wire, batch_max=1)
    await asyncio.gather(*(ask(n) for n in range(3)))

    assert wire.batches == [[0], [1], [2]]


async def test_a_cancelled_caller_does_not_stop_the_others() -> None:
    wire = Wire()
    ask = a_batcher(wire)
    wire.open.clear()
    calls = [ask(n) for n in range(3)]
    await wire.gone.wait()
    calls[1].cancel()
    wire.open.set()

    assert await calls[0] == 0
    assert await calls[2] == 4
    assert calls[1].cancelled()


async def test_an_error_reaches_only_the_callers_of_its_batch() -> None:
    wire = Wire()
    ask = a_batcher(wire, batch_max=2)
    answers = await asyncio.gather(*(ask(n) for n in (1, 2, 13, 3, 4, 5)), return_exceptions=True)

    assert [type(answer) for answer in answers] == [int, int, ValueError, ValueError, int, int]
    assert await ask(6) == 12, "and the batcher goes on"


async def test_a_full_batcher_refuses_at_once() -> None:
    wire = Wire()
    ask = a_batcher(wire, batch_max=2, waiting_max=3)
    wire.open.clear()
    first = ask(0)
    await wire.gone.wait()
    waiting = [ask(n) for n in (1, 2, 3)]

    with pytest.raises(Busy) as refused:
        ask(4)

    assert refused.value.details == {"retry_after_s": 1}
    wire.open.set()
    assert await asyncio.gather(first, *waiting) == [0, 2, 4, 6]
    assert await ask(5) == 10, "and there is room again"


async def test_a_forwarded_caller_waits_for_the_second_batch_only() -> None:
    """Losers of the first stage have their answer while winners wait on, each with the place they had."""

    async def first(items: Sequence[int]) -> list[int | Onward]:
        return [Onward(item * 10, second) if item % 2 else item for item in items]

    wire = Wire()
    second = a_batcher(wire)
    ask: Batcher[int, int] = Batcher(first, batch_max=10, waiting_max=10)

    assert await asyncio.gather(*(ask(n) for n in range(4))) == [0, 20, 2, 60]
    assert wire.batches == [[10, 30]]


async def test_a_batch_waits_for_the_callers_that_are_about_to_come_on() -> None:
    claims, ledger = Wire(), Wire()
    claim, open_one = a_batcher(claims, batch_max=100), a_batcher(ledger, batch_max=100)
    open_one.follow(claim, wait_s=60)
    claims.open.clear()
    under_way = claim(0)
    await claims.gone.wait()
    first = open_one(1)
    await turns(20)
    second = open_one(2)
    claims.open.set()
    await asyncio.gather(under_way, first, second)

    assert ledger.batches == [[1, 2]]


async def test_a_batcher_goes_on_without_the_one_that_it_follows() -> None:
    claims, ledger = Wire(), Wire()
    claim, open_one = a_batcher(claims), a_batcher(ledger)
    open_one.follow(claim, wait_s=0.01)
    claims.open.clear()
    stuck = claim(0)
    await claims.gone.wait()

    assert await asyncio.wait_for(open_one(21), 30) == 42
    assert not stuck.done()

    claims.open.set()
    await stuck


async def test_a_result_that_is_an_exception_is_raised_to_its_caller_alone() -> None:
    async def send(items: Sequence[int]) -> list[int | Exception]:
        return [ValueError(item) if item == 2 else item for item in items]

    ask: Batcher[int, int] = Batcher(send, batch_max=10, waiting_max=10)

    found = await asyncio.gather(*(ask(n) for n in (1, 2, 3)), return_exceptions=True)

    assert [type(one) for one in found] == [int, ValueError, int]
