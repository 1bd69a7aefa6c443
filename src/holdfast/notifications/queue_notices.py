"""Notices to people in a waiting room: it is their turn, or everything was sold before it.

A room may hold two million people. Those who got no turn are written to in the order of the queue, some per
second: the first in the queue can join the waitlist first, and mail to buyers never waits behind all of it.
"""

from holdfast.notifications.notice import NewNotice, NoticeKind
from holdfast.notifications.store import NotificationStore
from holdfast.outbox import Fact, QueueCalled, QueueDrained
from holdfast.waitingroom import WaitingRooms

PEOPLE_AT_ONCE = 1_000
MAILS_PER_S = 100


async def add_queue_notices(notices: NotificationStore, rooms: WaitingRooms, fact: Fact) -> None:
    """People whose address is not proved get none: `add_many` decides that. Repeated, it adds nothing."""
    match fact.body:
        case QueueCalled() as called:
            people = await notices.people_called(fact.show_id, called)
            body = {"opening": called.opening}
            await notices.add_many([_build(fact, NoticeKind.QUEUE_TURN, one, body) for one in people])
        case QueueDrained(opening=opening):
            await _add_for_all(notices, rooms, fact, opening)


async def _add_for_all(notices: NotificationStore, rooms: WaitingRooms, fact: Fact, opening: int) -> None:
    behind = -1
    while page := await rooms.left_waiting(fact.show_id, opening, behind, PEOPLE_AT_ONCE):
        kind = NoticeKind.QUEUE_SOLD_OUT
        await notices.add_many(
            [_build(fact, kind, person.account_id, {}, person.ahead / MAILS_PER_S) for person in page]
        )
        behind = page[-1].number


def _build(
    fact: Fact, kind: NoticeKind, account_id: int, body: dict[str, int], due_in_s: float = 0.0
) -> NewNotice:
    return NewNotice(
        fact_id=fact.id,
        kind=kind,
        show_id=fact.show_id,
        number=None,
        account_id=account_id,
        body=body,
        due_in_s=due_in_s,
    )
