"""Opens queues and ends them: the steps that the job, organisers and demand have in common."""

import secrets

from holdfast.engines.postgres import Queries, Transaction
from holdfast.outbox import QueueClosed, QueueDrained, QueueOpened, add_fact
from holdfast.waitingroom.draw import SEED_BYTES, commit
from holdfast.waitingroom.room import RoomState

Q = Queries("holdfast.waitingroom", "jobs")


async def open_queue(
    tx: Transaction, show_id: int, opening: int, *, by: str, beacon: str = "", has_draw: bool = True
) -> bool:
    """False: it is open already. With a draw, its commitment is published from this moment on."""
    seed = secrets.token_bytes(SEED_BYTES) if has_draw else None
    commitment = commit(show_id, opening, seed) if seed is not None else None
    state = RoomState.OPEN if has_draw else RoomState.ADMITTING
    if await tx.fetchval(Q.open_queue, show_id, opening, state, by, seed, commitment, beacon) is None:
        return False
    await add_fact(
        tx,
        show_id,
        QueueOpened(
            opening=opening, opened_by=by, commitment=commitment.hex() if commitment else "", beacon=beacon
        ),
    )
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
