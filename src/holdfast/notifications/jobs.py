"""The jobs of notices: hear facts and write down who is to be told, warn, send, forget.

Hearing only writes rows; a mail server that is slow or away keeps nobody from hearing. Any number of workers
may send: who takes a notice has it for a while, and whatever a dead one had is due again after that.
"""

from holdfast.engines.loop import Job
from holdfast.notifications.deliver import NoticeDelivery
from holdfast.notifications.notice import CONSUMED_KINDS, SHOW_FACTS, build_notice
from holdfast.notifications.store import NotificationStore
from holdfast.outbox import Consumer, Fact, Outbox, ShowChanged

__all__ = ["GROUP", "NoticeDelivery", "begin_now", "consumer", "jobs"]

GROUP = "notices"
CONCURRENT_MAX = 64  # they travel to the ledger together
SETTLE_MAX = 10_000
# Of a sender's lanes: while there is little to do the first does it, and the others look rarely.
SEND_PAUSES_S = (0.25, 0.5, 1.0, 2.0)
ASIDE_PAUSE_S = 1.0
WARN_PAUSE_S = 5.0
COUNT_PAUSE_S = 10.0
FORGET_PAUSE_S = 600.0


def consumer(notices: NotificationStore) -> Consumer:
    async def hear(fact: Fact) -> None:
        kind = SHOW_FACTS.get(type(fact.body))
        if kind is None:
            if (new := build_notice(fact)) is not None:
                await notices.add(new)
            return
        move = None
        if isinstance(fact.body, ShowChanged):
            move = await notices.move_of_show(fact.show_id, fact.body.revision)
            if move is None:  # of its prices, or its limits
                return
        await notices.add_for_show(fact.id, kind, fact.show_id, fact.at, move or {})

    # Not from the oldest: nobody is told of what happened before there were notices.
    return Consumer(
        group=GROUP, kinds=CONSUMED_KINDS, call=hear, from_oldest=False, at_once_max=CONCURRENT_MAX
    )


async def begin_now(outbox: Outbox) -> None:
    """What has happened up to here is told to nobody: those a demo is populated with get no mail of it."""
    before, settled = -1, 0
    while settled > before:
        before, settled = settled, await outbox.settle(SETTLE_MAX)
    await outbox.add_group(GROUP, from_oldest=False)


def jobs(post: NoticeDelivery) -> list[tuple[float, Job]]:
    return [
        (ASIDE_PAUSE_S, post.set_aside),
        *(
            (pause_s, lane.send)
            for lanes in post.lanes
            for pause_s, lane in zip(SEND_PAUSES_S, lanes, strict=True)
        ),
        (WARN_PAUSE_S, post.warn),
        (COUNT_PAUSE_S, post.count),
        (FORGET_PAUSE_S, post.forget),
    ]
