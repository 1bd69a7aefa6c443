"""The duties of notices: hear facts and write down who is to be told, warn, send, forget.

Hearing only writes rows; a mail server that is slow or away keeps nobody from hearing. Any number of workers
may send: who takes a notice has it for a while, and whatever a dead one had is due again after that.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import structlog

from holdfast.engines.down import EngineDown
from holdfast.engines.loop import Duty
from holdfast.engines.meter import meter
from holdfast.notices.notice import HEARD, LEASE_S, OF_SHOWS, Channel, Due, State, notice_of
from holdfast.notices.senders import Away, Bounced, Link, LinkLost, NotNow, Parcel, Sender
from holdfast.notices.store import Notices
from holdfast.notices.writing.store import Writer
from holdfast.outbox import Consumer, Fact, Outbox, ShowChanged
from holdfast.refusals import Busy

log = structlog.get_logger(__name__)

GROUP = "notices"
FACTS_AT_ONCE_MAX = 64  # they travel to the ledger together
TAKEN_AT_ONCE_MAX = 16
LINKS_MAX = 4  # to one sender, for a worker
SEND_WITHIN_S = LEASE_S / 4  # a letter that takes longer is tried again: its lease must not end meanwhile
SET_ASIDE_MAX = 1_000
WARNED_AT_ONCE_MAX = 500
FORGOTTEN_AT_ONCE_MAX = 1_000
SETTLED_AT_ONCE_MAX = 10_000
SEND_PAUSE_S = 0.25
WARN_PAUSE_S = 5.0
COUNT_PAUSE_S = 10.0
FORGET_PAUSE_S = 600.0


def consumer(notices: Notices) -> Consumer:
    async def hear(fact: Fact) -> None:
        kind = OF_SHOWS.get(type(fact.body))
        if kind is None:
            if (new := notice_of(fact)) is not None:
                await notices.add(new)
            return
        move = None
        if isinstance(fact.body, ShowChanged):
            move = await notices.move_of_show(fact.show_id, fact.body.revision)
            if move is None:  # of its prices, or its limits
                return
        await notices.add_for_show(fact.id, kind, fact.show_id, fact.at, move or {})

    # Not from the oldest: nobody is told of what happened before there were notices.
    return Consumer(group=GROUP, kinds=HEARD, call=hear, from_oldest=False, at_once_max=FACTS_AT_ONCE_MAX)


async def begin_now(outbox: Outbox) -> None:
    """What has happened up to here is told to nobody: those a demo is populated with get no mail of it."""
    before, settled = -1, 0
    while settled > before:
        before, settled = settled, await outbox.settle(SETTLED_AT_ONCE_MAX)
    await outbox.add_group(GROUP, from_oldest=False)


class Post:
    """Sends what is due, each over the way it is meant for."""

    def __init__(
        self, notices: Notices, writer: Writer, senders: Mapping[Channel, Sender], *, keeps: bool
    ) -> None:
        """`keeps`: mail goes into a drawer of the ledger, for the mail page of a demo."""
        self._notices = notices
        self._writer = writer
        self._senders = dict(senders)
        self._is_warm = False
        self._ends = dict.fromkeys(self._senders, State.SENT)
        if keeps and Channel.MAIL not in self._senders:
            self._senders[Channel.MAIL], self._ends[Channel.MAIL] = Drawer(notices), State.KEPT

    async def send(self) -> int:
        aside = await self._notices.set_aside(SET_ASIDE_MAX, list(self._senders))
        if not self._senders:
            return aside
        if not self._is_warm:
            await self._writer.warm_up()
            self._is_warm = True
        taken = await self._notices.take_due(TAKEN_AT_ONCE_MAX, list(self._senders))
        async with asyncio.TaskGroup() as group:
            for channel, sender in self._senders.items():
                pile = deque(due for due in taken if due.channel is channel)
                for _ in range(min(LINKS_MAX, len(pile))):
                    group.create_task(self._lane(sender, pile))
        return aside + len(taken)

    async def warn(self) -> int:
        return await self._notices.warn_of_lapsing(WARNED_AT_ONCE_MAX)

    async def count(self) -> int:
        for state, number in (await self._notices.counts()).items():
            meter.measure(f"notices_{state}", number)
        return 0

    async def forget(self) -> int:
        return await self._notices.forget(FORGOTTEN_AT_ONCE_MAX)

    async def _lane(self, sender: Sender, pile: deque[Due]) -> None:
        """One link after the other until the pile is gone. With nobody there, all of it is put off."""
        while pile:
            try:
                async with sender.open() as link:
                    while pile:
                        await self._deliver(link, pile.popleft())
            except LinkLost as lost:
                log.info("a link was lost", reason=str(lost))
            except Away as away:
                log.warning("nobody takes our letters", reason=str(away))
                while pile:
                    await self._put_off(pile.popleft(), str(away))

    async def _deliver(self, link: Link, due: Due) -> None:
        try:
            async with asyncio.timeout(SEND_WITHIN_S):
                state = await self._send_one(link, due)
        except EngineDown as down:  # its lease ends, and it is due again
            log.warning("a notice was left alone", notice_id=due.id, engine=down.engine)
            return
        except Bounced as no:
            await self._end(due, State.DEAD, str(no))
            return
        except LinkLost as lost:
            await self._put_off(due, str(lost))
            raise
        except TimeoutError:
            await self._put_off(due, "it took too long")
            raise LinkLost("it took too long") from None  # in the middle of a mail, perhaps
        except (NotNow, Busy) as no:
            await self._put_off(due, str(no) or "busy")
            return
        except Exception as error:  # a letter that cannot be written keeps no other from being sent
            log.exception("a notice could not be sent", notice_id=due.id, kind=due.kind)
            await self._put_off(due, repr(error))
            return
        await self._end(due, state)

    async def _send_one(self, link: Link, due: Due) -> State:
        letter = await self._writer.letter(due)
        if letter is None:
            return State.MOOT
        parcel = await self._writer.parcel(due, letter)
        await link.send(parcel)
        return self._ends[due.channel]

    async def _end(self, due: Due, state: State, reason: str | None = None) -> None:
        await self._notices.end(due, state, reason)
        meter.add("notices_total", kind=due.kind, state=state)
        if state is State.DEAD:
            log.error("a notice is dead", notice_id=due.id, kind=due.kind, reason=reason)

    async def _put_off(self, due: Due, reason: str) -> None:
        state = await self._notices.put_off(due, reason)
        meter.add("notices_total", kind=due.kind, state=state or State.QUEUED)
        if state is State.DEAD:
            log.error("a notice is dead", notice_id=due.id, kind=due.kind, reason=reason)


class Drawer:
    """Where mails go that nobody sends."""

    def __init__(self, notices: Notices) -> None:
        self._notices = notices

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Drawer"]:
        yield self

    async def send(self, parcel: Parcel) -> None:
        await self._notices.keep(parcel.notice_id, parcel.text, parcel.mail)


def duties(post: Post) -> list[tuple[float, Duty]]:
    return [
        (SEND_PAUSE_S, post.send),
        (WARN_PAUSE_S, post.warn),
        (COUNT_PAUSE_S, post.count),
        (FORGET_PAUSE_S, post.forget),
    ]
