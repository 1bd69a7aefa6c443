"""Sends due notices. A worker has one connection to one sender and sends one message after another.

    take a few ──► connect ──► compose ──► send ──► end, or put off
        ▲            │ unreachable
        └── wait ◄───┘ given back, untried: a server that is down uses up no try

Workers are independent: a slow server delays one worker only, and mail does not delay short messages. A
worker leases notices for LEASE_S and renews the lease while it works; those of a dead worker become due
again.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import structlog

from holdfast.engines.errors import EngineDown
from holdfast.engines.leases import LeasedBatch
from holdfast.engines.metrics import metrics
from holdfast.errors import Busy
from holdfast.notifications.compose import Composer
from holdfast.notifications.notice import LEASE_S, Channel, DueNotice, NoticeState
from holdfast.notifications.senders import (
    ConnectionLost,
    OutgoingMessage,
    Rejected,
    Sender,
    SenderConnection,
    TryAgainLater,
    Unreachable,
)
from holdfast.notifications.store import NotificationStore, shorten

log = structlog.get_logger(__name__)

WORKERS_PER_CHANNEL = 4  # connections to one sender, per process
BATCH_MAX = 4  # few: if the process dies, these wait for the end of their lease
COMPOSE_TIMEOUT_S = 30.0  # a message that takes longer is tried again
UNREACHABLE_PAUSES_S = (1.0, 2.0, 5.0, 10.0, 30.0)  # before an unreachable server is tried again
SET_ASIDE_MAX = 1_000
WARNINGS_MAX = 500
PURGE_MAX = 1_000


class SendWorker:
    def __init__(
        self, notices: NotificationStore, writer: Composer, channel: Channel, sender: Sender, end: NoticeState
    ) -> None:
        """`end`: what a notice is once its letter is taken."""
        self._notices = notices
        self._writer = writer
        self._channel = channel
        self._sender = sender
        self._end_state = end
        self._failures = 0
        self._looks_at = 0.0  # not before

    async def send(self) -> int:
        """Some letters; how many were taken up."""
        if (now := time.monotonic()) < self._looks_at:
            return 0
        taken = await self._notices.take_due(BATCH_MAX, [self._channel])
        if taken:
            pile = LeasedBatch(self._notices.leases, taken, taken_at=now, lease_s=LEASE_S)
            async with pile.renewed():
                await self._carry(pile)
        return len(taken)

    async def _carry(self, pile: LeasedBatch[DueNotice]) -> None:
        """One link after the other until the pile is gone; with nobody there, its rest is given back."""
        due = pile.next()
        while due is not None:
            try:
                async with self._sender.open() as link:
                    self._failures = 0
                    while due is not None and link.is_open:
                        await self._deliver(link, pile, due)
                        due = pile.next()
            except ConnectionLost as lost:
                log.info("connection lost", channel=self._channel, reason=str(lost))
                due = pile.next()
            except Unreachable as away:
                self._wait(str(away))
                await pile.give_back(shorten(str(away)))
                return

    def _wait(self, reason: str) -> None:
        pause_s = UNREACHABLE_PAUSES_S[min(self._failures, len(UNREACHABLE_PAUSES_S) - 1)]
        self._failures += 1
        self._looks_at = time.monotonic() + pause_s
        log.warning(
            "mail server unreachable" if self._channel is Channel.MAIL else "sender unreachable",
            channel=self._channel,
            reason=reason,
            pause_s=pause_s,
        )

    async def _deliver(self, link: SenderConnection, pile: LeasedBatch[DueNotice], due: DueNotice) -> None:
        """Sent, put off or given up; Away and LinkLost are for whoever has the link."""
        try:
            state = await self._send_one(link, pile, due)
        except EngineDown as down:  # its lease ends, and it is due again
            log.warning("a notice was left alone", notice_id=due.id, engine=down.engine)
        except Rejected as no:
            await self._end(due, NoticeState.DEAD, str(no))
        except ConnectionLost as lost:
            await self._put_off(due, str(lost))
            pile.done(due)
            raise
        except TimeoutError:
            await self._put_off(due, "it took too long")
        except (TryAgainLater, Busy) as no:
            await self._put_off(due, str(no) or "busy")
        except Unreachable:
            raise
        except Exception as error:  # one bad message must not stop the others
            log.exception("notice could not be sent", notice_id=due.id, kind=due.kind)
            await self._put_off(due, repr(error))
        else:
            if state is not None:
                await self._end(due, state)
        pile.done(due)

    async def _send_one(
        self, link: SenderConnection, pile: LeasedBatch[DueNotice], due: DueNotice
    ) -> NoticeState | None:
        """None: it is somebody else's by now."""
        async with asyncio.timeout(COMPOSE_TIMEOUT_S):
            letter = await self._writer.letter(due)
            if letter is None:
                return NoticeState.OBSOLETE
            parcel = await self._writer.parcel(due, letter)
        if not pile.has(due):
            return None
        await link.send(parcel)
        return self._end_state

    async def _end(self, due: DueNotice, state: NoticeState, reason: str | None = None) -> None:
        await self._notices.end(due, state, reason)
        metrics.add("notices_total", kind=due.kind, state=state)
        if state is NoticeState.DEAD:
            log.error("notice dead-lettered", notice_id=due.id, kind=due.kind, reason=reason)

    async def _put_off(self, due: DueNotice, reason: str) -> None:
        state = await self._notices.put_off(due, reason)
        metrics.add("notices_total", kind=due.kind, state=state or NoticeState.QUEUED)
        if state is NoticeState.DEAD:
            log.error("notice dead-lettered", notice_id=due.id, kind=due.kind, reason=reason)


class NoticeDelivery:
    """Every lane of a worker, and what is due when nobody sends."""

    def __init__(
        self, notices: NotificationStore, writer: Composer, senders: Mapping[Channel, Sender], *, keeps: bool
    ) -> None:
        """`keeps`: mail goes into a drawer of the ledger, for the mail page of a demo."""
        self._notices = notices
        self._writer = writer
        self._is_warm = False
        known = {channel: (sender, NoticeState.SENT) for channel, sender in senders.items()}
        if keeps and Channel.MAIL not in known:
            known[Channel.MAIL] = (MailboxSender(notices), NoticeState.STORED)
        self._channels = list(known)
        self.lanes = [
            [SendWorker(notices, writer, channel, sender, end) for _ in range(WORKERS_PER_CHANNEL)]
            for channel, (sender, end) in known.items()
        ]

    async def send(self) -> int:
        """Every lane once."""
        aside = await self.set_aside()
        some = await asyncio.gather(*(lane.send() for lanes in self.lanes for lane in lanes))
        return aside + sum(some)

    async def set_aside(self) -> int:
        """What goes by ways that nobody has. Who has some makes ready for the first letter."""
        if self._channels and not self._is_warm:
            await self._writer.warm_up()
            self._is_warm = True
        return await self._notices.set_aside(SET_ASIDE_MAX, self._channels)

    async def warn(self) -> int:
        return await self._notices.warn_of_lapsing(WARNINGS_MAX)

    async def count(self) -> int:
        for state, number in (await self._notices.counts()).items():
            metrics.measure(f"notices_{state}", number)
        return 0

    async def forget(self) -> int:
        return await self._notices.forget(PURGE_MAX)


class MailboxSender:
    """Where mails go that nobody sends."""

    def __init__(self, notices: NotificationStore) -> None:
        self._notices = notices

    @property
    def is_open(self) -> bool:
        return True

    @asynccontextmanager
    async def open(self) -> AsyncIterator["MailboxSender"]:
        yield self

    async def send(self, parcel: OutgoingMessage) -> None:
        await self._notices.keep(parcel.notice_id, parcel.text, parcel.mail)
