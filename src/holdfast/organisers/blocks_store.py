"""Seat blocks: written to the ledger first, then to the seat map, so that viewers see the seats change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg
import structlog

from holdfast.bookings import public_id
from holdfast.catalogue import ShowOnSale
from holdfast.claim import Claim, Settlement
from holdfast.engines.postgres import AGAIN, Postgres, Queries, require_row
from holdfast.errors import Busy
from holdfast.holds import HoldService, TooManyBlocks
from holdfast.organisers.forms import BLOCKS_MAX, BlockRelease
from holdfast.web.audit_log import AuditEntry, record

Q = Queries("holdfast.organisers", "blocks")
log = structlog.get_logger(__name__)
TRIES_MAX = 4


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """A block as stored in the ledger."""

    number: int
    owner_id: int
    claim_id: str
    seats: tuple[int, ...]
    name: str
    made_at: datetime
    release_at: datetime | None
    hours_before: int | None
    withdrawn: bool


class BlockStore:
    def __init__(self, postgres: Postgres, holds: HoldService) -> None:
        self._postgres = postgres
        self._holds = holds

    async def add(
        self, show: ShowOnSale, seats: Sequence[int], *, name: str, actor_id: int, release: BlockRelease
    ) -> StoredBlock | tuple[int, ...]:
        """The new block; or the seats that are taken, and nothing was changed."""
        show_id = show.show_id
        if len(await self.all(show_id)) >= BLOCKS_MAX:
            raise TooManyBlocks(limit=BLOCKS_MAX)
        for _ in range(TRIES_MAX):
            try:
                number, taken = await self._add(show, seats, (name, actor_id), release)
                break
            except (*AGAIN, asyncpg.UniqueViolationError):  # lost a race for one of the seats: try again
                continue
        else:
            raise Busy(retry_after_s=1)
        if number is None:
            return tuple(taken)
        (block,) = await self.all(show_id, number)
        await self._holds.update_map(show_id, Settlement("block", _claim(block, block.seats)))
        return block

    async def all(self, show_id: int, number: int | None = None) -> list[StoredBlock]:
        """The blocks of a show, oldest first, or only the one with this number."""
        rows = await self._postgres.fetch(Q.blocks, show_id, number)
        return [StoredBlock(**{**row, "seats": tuple(row["seats"])}) for row in rows]

    async def change(
        self, show_id: int, block: StoredBlock, name: str | None, release: BlockRelease | None
    ) -> None:
        async with self._postgres.transaction() as tx:
            old: dict[str, object] = {}
            new: dict[str, object] = {}
            if name is not None:
                old, new = {"name": block.name}, {"name": name}
                await tx.execute(Q.rename, show_id, block.number, name)
            if release is not None:
                old["release_at"], new["release_at"] = block.release_at, release.at
                await tx.execute(Q.set_release, show_id, block.number, release.at, release.hours_before)
            if new:
                await record(tx, _entry("block.changed", (show_id, block.number), block.name, old, new))

    async def release(
        self,
        show_id: int,
        block: StoredBlock,
        seats: Sequence[int] | None,
        actor_id: int | None,
        labels: Sequence[str] = (),
    ) -> tuple[int, ...] | None:
        """Put some or all seats on sale and return them. None: the block does not exist any more.

        `labels`: of the show's seats, for the audit log; a release by a job is not in it.
        """
        wanted = None if seats is None else list(seats)
        async with self._postgres.transaction() as tx:
            row = await tx.fetchrow(Q.release, show_id, block.number, wanted, actor_id)
            if row is None:
                return None
            if labels:
                after = {"seats": [labels[seat] for seat in row["released"]]}
                await record(tx, _entry("block.released", (show_id, block.number), block.name, {}, after))
        was, released = tuple(row["was"]), tuple(row["released"])
        still_blocked = tuple(seat for seat in was if seat not in released)
        if released:
            parts = [Settlement("unblock", _claim(block, was))]
            # In one message, so that viewers never see the seats that stay blocked as free.
            parts += [Settlement("block", _claim(block, still_blocked))] if still_blocked else []
            await self._holds.update_map(show_id, *parts)
        return released

    async def release_due(self, limit: int) -> int:
        """Release due blocks; returns how many. Safe with several workers: each block is released once."""
        count = 0
        for row in await self._postgres.fetch(Q.due, limit):
            for block in await self.all(row["show_id"], row["number"]):
                try:
                    count += await self.release(row["show_id"], block, None, None) is not None
                except AGAIN as error:  # locked, or its show is being moved: other blocks are released
                    log.info("a block waits for a lock", show_id=row["show_id"], error=repr(error))
        return count

    async def _add(
        self, show: ShowOnSale, seats: Sequence[int], name_and_actor: tuple[str, int], release: BlockRelease
    ) -> tuple[int | None, Any]:
        async with self._postgres.transaction() as tx:
            show_id, (name, _) = show.show_id, name_and_actor
            row = require_row(await tx.fetchrow(Q.block, show_id, sorted(seats), *name_and_actor))
            if row["number"] is not None:
                await tx.execute(Q.set_release, show_id, row["number"], release.at, release.hours_before)
                after = {"seats": [show.layout.labels[seat] for seat in seats], "release_at": release.at}
                await record(tx, _entry("block.created", (show_id, row["number"]), name, {}, after))
        return row["number"], row["taken"]


def _entry(
    action: str,
    block: tuple[int, int],
    name: str,
    before: Mapping[str, object],
    after: Mapping[str, object],
) -> AuditEntry:
    return AuditEntry(
        action=action,
        subject=("block", public_id(*block)),
        show_id=block[0],
        name=name,
        before=before,
        after={"show_id": block[0], **after},
    )


def _claim(block: StoredBlock, seats: tuple[int, ...]) -> Claim:
    """The block as a claim in Redis."""
    return Claim(block.claim_id, block.owner_id, tuple(sorted(seats)))
