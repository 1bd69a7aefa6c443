"""The lease queue keeps its contract: engines/leases.py.

A table of its own, so that the rules are tested without any subject's rules on top.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from holdfast.engines.leases import LeasedBatch, LeaseQueue, LeaseTable
from holdfast.engines.postgres import Postgres, Queries, Row
from holdfast.engines.row_lease import Lease, pause_after

Q = Queries("tests.stores", "leases")
LEASE_S = 60.0
ERRANDS = LeaseTable(name="errand", key={"shop": "text", "number": "int"}, queries=Q)


@dataclass(frozen=True)
class Errand:
    shop: str
    number: int
    turn: int

    @property
    def lease(self) -> Lease:
        return Lease((self.shop, self.number), self.turn)


@pytest.fixture
async def own(postgres: Postgres) -> AsyncIterator[Postgres]:
    """A ledger with an empty leased table in a schema of its own."""
    schema = f"leases_{secrets.token_hex(4)}"
    await postgres.execute(f"CREATE SCHEMA {schema}")
    url = f"{postgres._url}{'&' if '?' in postgres._url else '?'}search_path={schema}%2Cpublic"
    own = Postgres(url, pool_max=6, timeout_s=5)
    await own.execute(Q.create)
    yield own
    await own.close()
    await postgres.execute(f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture
def queue(own: Postgres) -> LeaseQueue:
    return LeaseQueue(own, ERRANDS)


async def add(queue: LeaseQueue, *numbers: int, shop: str = "baker") -> None:
    """The first is due longest."""
    for number in numbers:
        await queue.postgres.execute(Q.add, shop, number, 1000 - number)


async def take(queue: LeaseQueue, limit: int = 10, shop: str = "baker") -> list[Errand]:
    rows = await queue.take(limit, LEASE_S, shop)
    return [Errand(row["shop"], row["number"], row["turn"]) for row in rows]


async def stored(queue: LeaseQueue, number: int, shop: str = "baker") -> Row:
    (row,) = await queue.postgres.fetch(Q.errand, shop, number)
    return row


class TestTaking:
    """Each due row goes to one worker, for the length of a lease."""

    async def test_takes_the_rows_that_have_been_due_longest(self, queue: LeaseQueue) -> None:
        await add(queue, 1, 2, 3)

        assert {one.number for one in await take(queue, 2)} == {1, 2}
        assert {one.number for one in await take(queue, 2)} == {3}
        assert await take(queue) == []

    async def test_passes_own_parameters_and_returns_further_columns(self, queue: LeaseQueue) -> None:
        await add(queue, 1)
        await add(queue, 2, shop="smith")

        (row,) = await queue.take(10, LEASE_S, "smith")

        assert (row["number"], row["sign"], row["tries"], row["turn"]) == (2, "SMITH", 1, 1)

    async def test_two_workers_never_take_the_same_row(self, queue: LeaseQueue) -> None:
        await add(queue, *range(1, 41))

        taken = await asyncio.gather(*(take(queue, 10) for _ in range(6)))

        numbers = [one.number for batch in taken for one in batch]
        assert sorted(numbers) == sorted(set(numbers))

    async def test_a_lease_that_ended_is_taken_by_another_worker(self, queue: LeaseQueue) -> None:
        await add(queue, 1)
        (first,) = await take(queue)
        await queue.postgres.execute(Q.end_leases)

        (second,) = await take(queue)

        assert second.turn == first.turn + 1
        assert (await stored(queue, 1))["tries"] == 2, "a worker that died has used up a try"

    async def test_the_length_of_a_lease_may_depend_on_the_try(self, queue: LeaseQueue) -> None:
        await add(queue, 1)
        lengths = []
        for _ in range(3):
            await queue.take(1, (10, 100), "baker")
            lengths.append(round((await stored(queue, 1))["due_in_s"], -1))
            await queue.postgres.execute(Q.end_leases)

        assert lengths == [10, 100, 100]

    async def test_take_over_ends_the_lease_of_another_worker(self, queue: LeaseQueue) -> None:
        await add(queue, 1)
        (first,) = await take(queue)

        row = await queue.take_over(("baker", 1), LEASE_S)

        assert row is not None
        assert (row["turn"], row["tries"]) == (2, 1)
        assert not await queue.finish(first.lease, None, "done", None)
        assert await queue.finish(Lease(("baker", 1), 2), None, "done", None)
        assert await queue.take_over(("baker", 1), LEASE_S) is None, "it has ended"


class TestTheFence:
    """A worker that lost its lease changes nothing, whatever it tries."""

    async def test_a_late_worker_cannot_finish_renew_or_give_back(self, queue: LeaseQueue) -> None:
        await add(queue, 1)
        (late,) = await take(queue)
        await queue.postgres.execute(Q.end_leases)
        (current,) = await take(queue)

        assert not await queue.finish(late.lease, None, "done", None)
        assert await queue.renew([late.lease], LEASE_S) == set()
        await queue.give_back([late.lease], "late")

        row = await stored(queue, 1)
        assert (row["state"], row["tries"], row["reason"]) == ("queued", 2, None)
        assert await queue.renew([current.lease], LEASE_S) == {("baker", 1)}

    async def test_a_replay_takes_the_lease_away(self, queue: LeaseQueue) -> None:
        await add(queue, 1)
        (busy,) = await take(queue)

        await queue.replay(Q.replay_one, "baker", 1)

        assert not await queue.finish(busy.lease, None, "done", None)
        assert (await stored(queue, 1))["state"] == "queued"

    async def test_nothing_changes_once_the_row_has_ended(self, queue: LeaseQueue) -> None:
        await add(queue, 1)
        (mine,) = await take(queue)
        assert await queue.finish(mine.lease, None, "done", None)

        assert not await queue.finish(mine.lease, None, "dead", "again")
        assert await queue.renew([mine.lease], LEASE_S) == set()
        await queue.give_back([mine.lease], "late")

        row = await stored(queue, 1)
        assert (row["state"], row["due_at"], row["reason"]) == ("done", None, None)

    async def test_a_table_without_a_fence_accepts_the_last_writer(self, own: Postgres) -> None:
        queue = LeaseQueue(
            own, LeaseTable(name="errand", key=ERRANDS.key, queries=Q, prefix="plain", is_fenced=False)
        )
        await add(queue, 1)

        (row,) = await queue.take(1, LEASE_S)

        assert (row["tries"], row["turn"]) == (1, 0)
        assert await queue.renew([Lease(("baker", 1))], LEASE_S) == {("baker", 1)}
        await queue.give_back([Lease(("baker", 1))])
        assert (await stored(queue, 1))["tries"] == 0
        assert await queue.finish(Lease(("baker", 1)), None)
        assert await queue.count() == {"queued": 0, "dead": 0}


class TestResults:
    async def test_a_failed_try_is_due_after_its_pause(self, queue: LeaseQueue) -> None:
        await add(queue, 1)
        (mine,) = await take(queue)

        assert await queue.finish(mine.lease, 30.0, "queued", "busy")

        row = await stored(queue, 1)
        assert 25 < row["due_in_s"] <= 30
        assert (row["state"], row["reason"], row["tries"]) == ("queued", "busy", 1)

    async def test_rows_given_back_are_due_at_once_and_untried(self, queue: LeaseQueue) -> None:
        await add(queue, 1, 2)
        taken = await take(queue)

        await queue.give_back([one.lease for one in taken], "away")

        rows = [await stored(queue, number) for number in (1, 2)]
        assert [(row["tries"], row["reason"]) for row in rows] == [(0, "away")] * 2
        assert len(await take(queue)) == 2

    async def test_a_result_is_part_of_the_callers_transaction(self, queue: LeaseQueue) -> None:
        await add(queue, 1)
        (mine,) = await take(queue)

        async def finish_and_fail() -> None:
            async with queue.postgres.transaction() as tx:
                assert await queue.finish(mine.lease, None, "done", None, tx=tx)
                raise RuntimeError

        with pytest.raises(RuntimeError):
            await finish_and_fail()

        assert (await stored(queue, 1))["state"] == "queued"

    async def test_dead_rows_are_counted_and_can_be_replayed(self, queue: LeaseQueue) -> None:
        await add(queue, 1, 2, 3)
        first, second, _ = sorted(await take(queue), key=lambda one: one.number)
        await queue.finish(first.lease, None, "dead", "refused")
        await queue.finish(second.lease, None, "done", None)
        assert await queue.count() == {"queued": 1, "dead": 1}

        (row,) = await queue.replay(Q.replay_one, "baker", 1)

        assert (row["state"], row["tries"], row["reason"]) == ("queued", 0, None)
        assert await queue.count() == {"queued": 2, "dead": 0}
        assert [one.number for one in await take(queue)] == [1]

    def test_pauses_end_with_the_last_one(self) -> None:
        assert [pause_after(tries, (5, 60)) for tries in (1, 2, 3)] == [5.0, 60.0, None]


class TestABatch:
    """Rows that one worker carries out one after the other."""

    async def test_renews_its_leases_while_the_block_lasts(self, queue: LeaseQueue) -> None:
        await add(queue, 1, 2)
        batch = LeasedBatch(queue, await take(queue), taken_at=time.monotonic(), lease_s=0.4)

        async with batch.renewed():
            await asyncio.sleep(0.6)  # longer than the lease
            assert batch.next() is not None

    async def test_stops_when_its_lease_has_passed(self, queue: LeaseQueue) -> None:
        await add(queue, 1)
        batch = LeasedBatch(queue, await take(queue), taken_at=time.monotonic() - LEASE_S, lease_s=LEASE_S)

        assert batch.next() is None, "another worker may have it by now"

    async def test_gives_back_only_the_rows_that_are_not_done(self, queue: LeaseQueue) -> None:
        await add(queue, 1, 2)
        batch = LeasedBatch(queue, await take(queue), taken_at=time.monotonic(), lease_s=LEASE_S)
        first = batch.next()
        assert first is not None
        await queue.finish(first.lease, None, "done", None)
        batch.done(first)

        await batch.give_back("away")

        assert not batch.has(first)
        assert batch.next() is None
        assert len(await take(queue)) == 1
