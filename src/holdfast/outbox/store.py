"""The only file in outbox/ that talks to PostgreSQL and opens the bus.

outbox ──settle──► relay ──► bus ──► consumer ──► checkpoint
   └────────── what the bus has forgotten ──────────┘
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from holdfast.config import Config
from holdfast.engines.bus import Bus, BusPlace
from holdfast.engines.buses import open_bus
from holdfast.engines.errors import OperatorError
from holdfast.engines.postgres import Postgres, Queries, Queryable, Transaction, require_row
from holdfast.outbox.body import Body
from holdfast.outbox.consumer import Consumer, Parked, ReaderTurn, last_settled_id, pause_s
from holdfast.outbox.fact import Fact, build_fact
from holdfast.outbox.parts import Part, parts_of
from holdfast.outbox.wire import from_json, to_json

Q = Queries("holdfast.outbox")

RELAY = "relay"  # the group that publishes facts to the bus
TURN_S = 5.0  # a dead process keeps its turn this long
RENEW_S = 3.0  # a turn with less left is renewed
SETTLE_WITHIN_S = 1.0  # for a transaction that has an id in hand; then we look again at the next run
SETTLE_MORE_S = 0.05  # the same, if facts are ready to publish meanwhile
SETTLE_LOOK_S = 0.005


async def add_fact(tx: Transaction, show_id: int, body: Body, number: int | None = None) -> None:
    """Part of the transaction that makes the fact true."""
    await tx.execute(Q.add_fact, show_id, number, body.KIND, msgspec.json.encode(body).decode())


async def hold_facts(tx: Queryable) -> None:
    """Until the transaction ends, no other one commits a fact of this database."""
    await tx.execute(Q.hold_facts)


async def consume_once(tx: Transaction, group: str, fact_id: int) -> bool:
    """Part of the transaction that acts on the fact. False: that was done before, do nothing."""
    return await tx.fetchval(Q.consume_once, group, fact_id) is not None


async def consume_many(tx: Transaction, group: str, fact_ids: Sequence[int]) -> set[int]:
    """The same for several: those to act on now."""
    return {row["fact_id"] for row in await tx.fetch(Q.consume_many, group, list(fact_ids))}


class Outbox:
    def __init__(self, postgres: Postgres, config: Config) -> None:
        self._postgres = postgres
        self._config = config
        self._bus: Bus | None = None

    async def bus(self) -> Bus:
        """The bus that the operator configured, or the built-in one in Redis."""
        if self._bus is None:
            config, row = self._config, require_row(await self._postgres.fetchrow(Q.log))
            self._bus = open_bus(
                BusPlace(
                    url=config.bus_url or config.redis_url,
                    name=row["name"],
                    messages_max=config.bus_messages_max,
                    timeout_s=config.redis_timeout_ms / 1000,
                    replicas=config.bus_replicas,
                )
            )
        return self._bus

    async def close(self) -> None:
        if self._bus is not None:
            bus, self._bus = self._bus, None
            await bus.close()

    # ── facts ──────────────────────────────────────────────────────────────────

    async def settle(self, limit: int) -> int:
        """Finds the last id below which no fact can appear any more, and stores it."""
        async with self._postgres.fresh_plans() as tx:
            settled = int((require_row(await tx.fetchrow(Q.log)))["settled_id"])
            ids = [row["id"] for row in await tx.fetch(Q.ids_after, settled, limit)]
        until = last_settled_id(settled, ids)
        if ids and until < ids[-1]:
            patience_s = SETTLE_WITHIN_S if until == settled else SETTLE_MORE_S
            if await self._writers_have_ended(patience_s):
                until = ids[-1]
        if until > settled:
            await self._postgres.execute(Q.settle, until)
        return until

    async def _writers_have_ended(self, patience_s: float) -> bool:
        """The next id is missing: being written, or never to come?

        A transaction that drew a lower id than one we have seen drew it before, so it is in the first list
        until it ends. When all of those have ended, ids still missing were rolled back. Transactions that
        start later draw higher ids, which is why the list only shrinks (&=).
        """
        give_up_at = time.monotonic() + patience_s
        writers = await self._writers()
        while writers:
            if time.monotonic() > give_up_at:
                return False
            await asyncio.sleep(SETTLE_LOOK_S)
            writers &= await self._writers()
        return True

    async def _writers(self) -> set[str]:
        return {row["virtualtransaction"] for row in await self._postgres.fetch(Q.writers)}

    async def facts_after(self, position: int, limit: int) -> list[Fact]:
        """In order, as far as they are settled."""
        async with self._postgres.fresh_plans() as tx:
            rows = await tx.fetch(Q.facts_after, position, limit)
        return [build_fact(row) for row in rows]

    # ── turns and checkpoints ──────────────────────────────────────────────────

    async def add_group(self, name: str, *, from_oldest: bool, parts: int = 1) -> None:
        """The rows of a group that is new or was divided otherwise: every part goes on from the last fact
        that all of the old ones had passed. What some of them had done beyond that is delivered again."""
        rows = [part.row for part in parts_of(name, parts)]
        async with self._postgres.transaction() as tx:
            await tx.execute(Q.add_group, name, from_oldest)
            # Twice: the first waits for a process that divides the group now, the second sees what it wrote.
            await tx.fetch(Q.lock_group, name)
            old = await tx.fetch(Q.lock_group, name)
            if {row["name"] for row in old} == set(rows):
                return
            await tx.execute(Q.drop_parts, name)
            await tx.execute(Q.add_parts, rows, min(row["checkpoint"] for row in old))

    async def turn(
        self, part: Part, reader: str, may_take: Callable[[Part], bool] = lambda _part: True
    ) -> ReaderTurn | None:
        """Ours for some seconds; None: another process reads this part, or shall. LookupError: it has no row,
        or the group is divided into another number of parts."""
        row = await self._postgres.fetchrow(Q.look, part.row, reader, RENEW_S, part.group)
        if row is None or row["parts"] != part.of:
            raise LookupError(f"no such part: {part}")
        if not row["is_mine"]:
            if not row["is_free"] or not may_take(part):
                return None
            checkpoint = await self._postgres.fetchval(Q.take_turn, part.row, reader, TURN_S)
            if checkpoint is None:
                return None
        else:
            checkpoint = row["checkpoint"]
        return ReaderTurn(
            part, reader, checkpoint, row["settled_id"], row["last_id"], has_parked=row["has_parked"]
        )

    async def give_turn_back(self, turn: ReaderTurn) -> None:
        await self._postgres.execute(Q.give_turn_back, turn.part.row, turn.reader)

    async def move(self, turn: ReaderTurn, checkpoint: int, parked: Sequence[Parked] = ()) -> bool:
        """Everything up to there is done or parked. False: the turn was lost, and nothing is written.

        The update names the old checkpoint, so of two processes that both believe to have the turn only
        one moves it. Parked facts are written in the same transaction: a crash in between would skip them.
        """
        step = (Q.move_checkpoint, turn.part.row, turn.reader, turn.checkpoint, checkpoint)
        if not parked:  # as nearly always: one statement
            return await self._postgres.fetchval(*step) is not None
        async with self._postgres.transaction() as tx:
            moved = await tx.fetchval(*step)
            if moved is not None:
                await tx.execute(
                    Q.park,
                    turn.group,
                    [one.fact.id for one in parked],
                    [one.fact.key for one in parked],
                    [to_json(one.fact) for one in parked],
                    [one.tries for one in parked],
                    [one.reason for one in parked],
                    [pause_s(one.tries) for one in parked],
                )
        return moved is not None

    async def groups_behind(self, show_id: int) -> list[str]:
        """The groups that have facts of this show still to process."""
        return [row["name"] for row in await self._postgres.fetch(Q.unread_of_show, show_id)]

    async def last_of_show(self, show_id: int) -> int:
        """The number of the show's latest fact; 0: there is none."""
        number: int = await self._postgres.fetchval(Q.last_of_show, show_id)
        return number

    async def oldest_checkpoint(self) -> int | None:
        return await self._postgres.fetchval(Q.oldest_checkpoint, RELAY)  # type: ignore[no-any-return]

    # ── what has to wait ───────────────────────────────────────────────────────

    async def keys_waiting(self, group: str, keys: Sequence[str]) -> set[str]:
        return {row["key"] for row in await self._postgres.fetch(Q.keys_waiting, group, list(keys))}

    async def parked_due(self, group: str, limit: int) -> list[Parked]:
        rows = await self._postgres.fetch(Q.parked_due, group, limit)
        return [Parked(from_json(row["fact"]), row["tries"]) for row in rows]

    async def unpark(self, group: str, fact_id: int) -> None:
        await self._postgres.execute(Q.unpark, group, fact_id)

    async def park_again(self, consumer: Consumer, parked: Parked) -> bool:
        """True: that was its last try."""
        is_dead = parked.tries >= consumer.tries_max
        pause = pause_s(parked.tries)
        await self._postgres.execute(
            Q.park_again, consumer.group, parked.fact.id, parked.tries, parked.reason, pause, is_dead
        )
        return is_dead

    # ── for operators ──────────────────────────────────────────────────────────

    async def groups(self) -> list[dict[str, Any]]:
        return [dict(row) for row in await self._postgres.fetch(Q.groups)]

    async def dead(self, group: str = "", limit: int = 1000) -> list[dict[str, Any]]:
        return [dict(row) for row in await self._postgres.fetch(Q.dead, group, limit)]

    async def is_dead(self, group: str, fact_id: int) -> bool:
        return bool(await self._postgres.fetchval(Q.is_dead, group, fact_id))

    async def retry_dead(self, group: str, fact_id: int | None = None) -> int:
        """Of all groups, if `group` is empty."""
        return _count(await self._postgres.execute(Q.retry_dead, group, fact_id))

    async def first_since(self, moment: datetime) -> int | None:
        return await self._postgres.fetchval(Q.first_since, moment)  # type: ignore[no-any-return]

    async def replay(self, group: str, fact_id: int) -> int:
        """Let the group consume everything from that fact on again; returns how many facts that is."""
        oldest = await self._postgres.fetchval(Q.oldest)
        if oldest is None or fact_id < oldest:
            raise OperatorError(f"facts before {oldest} are gone: replay from {oldest}")
        async with self._postgres.transaction() as tx:
            count = await tx.fetchval(Q.rewind, group, fact_id - 1)
            if count is None:
                raise OperatorError(
                    f"no group {group!r} has got as far as fact {fact_id}: see `holdfast facts groups`"
                )
            await tx.execute(Q.forget_consumed_after, group, fact_id - 1)
            await tx.execute(Q.forget_parked_after, group, fact_id - 1)
        return int(count)

    async def forget_group(self, group: str) -> bool:
        async with self._postgres.transaction() as tx:
            await tx.execute(Q.forget_consumed_after, group, 0)
            return _count(await tx.execute(Q.forget_group, group)) > 0

    async def purge(self, keep_h: int, limit: int) -> int:
        """Deletes facts that every group has consumed and that are older than `keep_h`; returns how many."""
        facts = _count(await self._postgres.execute(Q.purge_facts, keep_h, limit))
        return facts + _count(await self._postgres.execute(Q.purge_consumed, keep_h, limit))


def _count(status: str) -> int:
    """DELETE 7 → 7"""
    return int(status.rsplit(" ", 1)[-1])
