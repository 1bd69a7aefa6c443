"""Opens queues and ends them: the steps that the job, organisers and demand have in common."""

import secrets
from dataclasses import dataclass
from datetime import datetime

from holdfast.engines.postgres import Queries, Transaction
from holdfast.outbox import QueueClosed, QueueDrained, QueueOpened, add_fact
from holdfast.waitingroom.draw import SEED_BYTES, commit
from holdfast.waitingroom.room import RoomState

Q = Queries("holdfast.waitingroom", "jobs")


@dataclass(frozen=True, slots=True)
class Beacon:
    """The public value that a draw waits for, as it is published when the room opens."""

    source: str = ""  # empty: none
    until: datetime | None = None  # whole seconds

    @classmethod
    def planned(cls, source: str, until: datetime | None) -> "Beacon":
        return cls(source, until.replace(microsecond=0) if source and until is not None else None)


async def open_queue(
    tx: Transaction, show_id: int, opening: int, *, by: str, beacon: Beacon | None = None
) -> bool:
    """False: it is open already. With a draw, its commitment is published from this moment on.

    Without a beacon, not even an empty one, there is no draw: people come in as they arrive.
    """
    seed: bytes | None = None
    commitment: bytes | None = None
    stated = beacon or Beacon()
    if beacon is not None:
        seed = secrets.token_bytes(SEED_BYTES)
        commitment = commit(show_id, opening, seed, stated.source, stated.until)
    state = RoomState.OPEN if seed is not None else RoomState.ADMITTING
    published = (seed, commitment, stated.source, stated.until)
    if await tx.fetchval(Q.open_queue, show_id, opening, state, by, *published) is None:
        return False
    opened = QueueOpened(
        opening=opening,
        opened_by=by,
        commitment=commitment.hex() if commitment else "",
        beacon=stated.source,
        beacon_until=stated.until,
    )
    await add_fact(tx, show_id, opened)
    return True


async def end_queue(
    tx: Transaction, show_id: int, opening: int, state: RoomState, seats_left: int = 0
) -> None:
    """Everything is sold, the sale is over, or an organiser closes the room."""
    await tx.execute(Q.set_state, show_id, opening, state)
    await log_step(tx, show_id, opening, state, seats_left=seats_left)
    ended = QueueDrained if state is RoomState.DRAINED else QueueClosed
    await add_fact(tx, show_id, ended(opening=opening))


async def log_step(
    tx: Transaction, show_id: int, opening: int, kind: str, *, called: int = 0, seats_left: int = 0
) -> None:
    await tx.execute(Q.log, show_id, opening, kind, called, seats_left)
