"""The jobs of notifications: consume facts, warn of expiring holds, send due notices, delete old ones.

The consumer only inserts rows, so a slow or unreachable mail server does not delay it. Any number of workers
may send: a worker leases a notice, and the notices of a dead worker become due again when the lease ends.
"""

from msgspec.structs import replace

from holdfast.engines.loop import Job, Pause, WhenDue
from holdfast.engines.turns import Turns
from holdfast.notifications.deliver import BATCH_MAX, NoticeDelivery
from holdfast.notifications.notice import (
    CONSUMED_KINDS,
    SHOW_FACTS,
    TO_ORGANISERS,
    build_confirmation,
    build_notice,
)
from holdfast.notifications.queue_notices import add_queue_notices
from holdfast.notifications.store import NotificationStore, Q
from holdfast.outbox import Consumer, Fact, Outbox, QueueCalled, QueueDrained, ShowChanged
from holdfast.waitingroom import WaitingRooms

__all__ = ["GROUP", "NoticeDelivery", "begin_now", "consumer", "jobs"]

GROUP = "notifications"
CONCURRENT_MAX = 64  # written to the ledger in one batch
SETTLE_MAX = 10_000
# Of a channel's workers: each helps when there is more than those before it take at once.
SEND_PAUSES_S = (0.5, 1.0, 2.0, 4.0)
ASIDE_PAUSE_S = 1.0
WARN_PAUSE_S = 5.0
COUNT_PAUSE_S = 10.0
FORGET_PAUSE_S = 600.0


def consumer(notices: NotificationStore, rooms: WaitingRooms) -> Consumer:
    async def add_notices(fact: Fact) -> None:
        if isinstance(fact.body, (QueueCalled, QueueDrained)):
            await add_queue_notices(notices, rooms, fact)
            return
        kind = SHOW_FACTS.get(type(fact.body))
        if kind is None:
            new = build_notice(fact)
            if new is None:
                return
            if new.kind in TO_ORGANISERS:
                for account_id in await notices.organisers_of(fact.show_id):
                    await notices.add(replace(new, account_id=account_id))
                return
            await notices.add(new)
            if (proof := build_confirmation(new)) is not None:
                await notices.add(proof)
            return
        move = None
        if isinstance(fact.body, ShowChanged):
            move = await notices.move_of_show(fact.show_id, fact.body.revision)
            if move is None:  # prices or limits changed, not the time
                return
        await notices.add_for_show(fact.id, kind, fact.show_id, fact.at, move or {})

    # Not from the oldest: facts from before notifications existed must not send mail.
    return Consumer(
        group=GROUP, kinds=CONSUMED_KINDS, call=add_notices, from_oldest=False, at_once_max=CONCURRENT_MAX
    )


async def begin_now(outbox: Outbox) -> None:
    """Skip all facts up to now, so that the accounts a demo is populated with get no mail about them."""
    before, settled = -1, 0
    while settled > before:
        before, settled = settled, await outbox.settle(SETTLE_MAX)
    await outbox.add_group(GROUP, from_oldest=False)


def jobs(delivery: NoticeDelivery, turns: Turns) -> list[tuple[Pause, Job]]:
    return [
        (WhenDue(Q.count_due, ASIDE_PAUSE_S), delivery.set_aside),
        *(
            (WhenDue(Q.count_due, pause_s, above=i * BATCH_MAX), worker.send)
            for workers in delivery.workers
            for i, (pause_s, worker) in enumerate(zip(SEND_PAUSES_S, workers, strict=True))
        ),
        (WARN_PAUSE_S, delivery.warn),
        turns.alone(COUNT_PAUSE_S, delivery.count),
        (FORGET_PAUSE_S, delivery.forget),
    ]
