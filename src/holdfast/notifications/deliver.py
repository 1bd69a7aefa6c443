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
from holdfast.engines.tracing import resume, tracer
from holdfast.errors import Busy
from holdfast.notifications.every_pod import PodComposer
from holdfast.notifications.message_data import Composer
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

AnyComposer = Composer | PodComposer

WORKERS_PER_CHANNEL = 4  # connections to one sender, per process
BATCH_MAX = 4  # few: if the process dies, these wait for the end of their lease
COMPOSE_TIMEOUT_S = 30.0  # a message that takes longer is tried again
UNREACHABLE_PAUSES_S = (1.0, 2.0, 5.0, 10.0, 30.0)  # before an unreachable server is tried again
SET_ASIDE_MAX = 1_000
WARNINGS_MAX = 500
PURGE_MAX = 1_000


class SendWorker:
    def __init__(
        self,
        notices: NotificationStore,
        composer: AnyComposer,
        channel: Channel,
        sender: Sender,
        end: NoticeState,
    ) -> None:
        """`end`: the state of a notice once the sender has accepted its message."""
        self._notices = notices
        self._composer = composer
        self._channel = channel
        self._sender = sender
        self._end_state = end
        self._failures = 0
        self._next_poll_at = 0.0

    async def send(self) -> int:
        """Sends one batch; returns how many notices it leased."""
        if (now := time.monotonic()) < self._next_poll_at:
            return 0
        taken = await self._notices.take_due(BATCH_MAX, [self._channel])
        if taken:
            batch = LeasedBatch(self._notices.leases, taken, taken_at=now, lease_s=LEASE_S)
            async with batch.renewed():
                await self._send_batch(batch)
        return len(taken)

    async def _send_batch(self, batch: LeasedBatch[DueNotice]) -> None:
        """Opens connections until the batch is sent; if the server is unreachable, returns the rest."""
        due = batch.next()
        while due is not None:
            try:
                async with self._sender.open() as connection:
                    self._failures = 0
                    while due is not None and connection.is_open:
                        await self._deliver(connection, batch, due)
                        due = batch.next()
            except ConnectionLost as lost:
                log.info("connection lost", channel=self._channel, reason=str(lost))
                due = batch.next()
            except Unreachable as away:
                self._wait(str(away))
                await batch.give_back(shorten(str(away)))
                return

    def _wait(self, reason: str) -> None:
        pause_s = UNREACHABLE_PAUSES_S[min(self._failures, len(UNREACHABLE_PAUSES_S) - 1)]
        self._failures += 1
        self._next_poll_at = time.monotonic() + pause_s
        log.warning(
            "mail server unreachable" if self._channel is Channel.MAIL else "sender unreachable",
            channel=self._channel,
            reason=reason,
            pause_s=pause_s,
        )

    async def _deliver(
        self, connection: SenderConnection, batch: LeasedBatch[DueNotice], due: DueNotice
    ) -> None:
        """Ends the notice or puts it off. Raises Unreachable and ConnectionLost for `_send_batch`."""
        try:
            with resume("send", due.channel, await self._load_traces(due), {"holdfast.kind": due.kind.value}):
                state = await self._send_one(connection, batch, due)
        except EngineDown as down:  # the lease ends, and the notice is due again
            log.warning("notice not recorded; it will be retried", notice_id=due.id, engine=down.engine)
        except Rejected as no:
            await self._end(due, NoticeState.DEAD, str(no))
        except ConnectionLost as lost:
            await self._put_off(due, str(lost))
            batch.done(due)
            raise
        except TimeoutError:
            await self._put_off(due, "composing timed out")
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
        batch.done(due)

    async def _load_traces(self, due: DueNotice) -> list[str]:
        """Of the fact that the notice is about, if it has one."""
        trace = await self._notices.load_trace(due.id) if tracer.is_on else None
        return [] if trace is None else [trace]

    async def _send_one(
        self, connection: SenderConnection, batch: LeasedBatch[DueNotice], due: DueNotice
    ) -> NoticeState | None:
        """None: the lease was lost to another worker."""
        async with asyncio.timeout(COMPOSE_TIMEOUT_S):
            message = await self._composer.compose(due)
            if message is None:
                return NoticeState.OBSOLETE
            outgoing = await self._composer.build_outgoing(due, message)
        # Composing may have taken longer than the lease: another worker could be sending this one now.
        if not batch.has(due):
            return None
        await connection.send(outgoing)
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
    """All send workers of a process, and the jobs for notices that no sender takes."""

    def __init__(
        self,
        notices: NotificationStore,
        composer: AnyComposer,
        senders: Mapping[Channel, Sender],
        *,
        stores_mail: bool,
    ) -> None:
        """`stores_mail`: mail is stored in the ledger, for the mail page of a demo."""
        self._notices = notices
        self._composer = composer
        self._is_warm = not senders  # a demo's mail page: its first mail is late, and 30 MB less are in use
        known = {channel: (sender, NoticeState.SENT) for channel, sender in senders.items()}
        if stores_mail and Channel.MAIL not in known:
            known[Channel.MAIL] = (MailboxSender(notices), NoticeState.STORED)
        self._channels = list(known)
        self.workers = [
            [SendWorker(notices, composer, channel, sender, end) for _ in range(WORKERS_PER_CHANNEL)]
            for channel, (sender, end) in known.items()
        ]

    async def send(self) -> int:
        """Runs every worker once."""
        aside = await self.set_aside()
        some = await asyncio.gather(*(worker.send() for workers in self.workers for worker in workers))
        return aside + sum(some)

    async def set_aside(self) -> int:
        """Ends notices of channels without a sender. Loads fonts and templates before the first message."""
        if not self._is_warm:
            await self._composer.warm_up()
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
    """Stores mail in the ledger for the demo's mail page instead of sending it."""

    def __init__(self, notices: NotificationStore) -> None:
        self._notices = notices

    @property
    def is_open(self) -> bool:
        return True

    @asynccontextmanager
    async def open(self) -> AsyncIterator["MailboxSender"]:
        yield self

    async def send(self, message: OutgoingMessage) -> None:
        await self._notices.store_message(message.notice_id, message.text, message.mail)
