"""Notices in the ledger: written, taken, ended. The only file here that writes them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from holdfast.accounts import PersonMail
from holdfast.config import Config
from holdfast.engines.batch import Batcher
from holdfast.engines.leases import LeaseQueue, LeaseTable
from holdfast.engines.postgres import Postgres, Queries, Queryable
from holdfast.engines.row_lease import pause_after
from holdfast.notifications.errors import NoSuchNotice
from holdfast.notifications.notice import (
    LEASE_S,
    PAUSES_S,
    REASON_MAX,
    Channel,
    DueNotice,
    NewNotice,
    NoticeKind,
    NoticeList,
    NoticePage,
    NoticesQuery,
    NoticeState,
    SenderBody,
    build_page,
    channels_for,
    parse_due,
)
from holdfast.outbox import QueueCalled
from holdfast.web.audit_log import AuditEntry, record, record_change

Q = Queries("holdfast.notifications")

TICKETS_AT_ONCE = 5_000  # read per page when all ticket holders of a show are notified
MAILS_LISTED_MAX = 200


class NotificationStore:
    def __init__(self, postgres: Postgres, config: Config) -> None:
        self._postgres = postgres
        self._config = config
        self.leases = LeaseQueue(postgres, LeaseTable(name="notice", key={"id": "bigint"}, queries=Q))
        urls = {Channel.SMS: config.sms_url, Channel.PUSH: config.push_url}
        self.channels = [Channel.MAIL, *(channel for channel, url in urls.items() if url)]
        self.add: Batcher[NewNotice, None] = Batcher(
            self.add_many, batch_max=config.batch_max, waiting_max=config.waiting_max
        )

    # ── written ───────────────────────────────────────────────────────────────────────

    async def add_many(self, new: Sequence[NewNotice]) -> list[None]:
        """In one transaction. Notices that exist already are skipped."""
        await self._add(new)
        return [None] * len(new)

    async def _add(self, new: Sequence[NewNotice]) -> int:
        """Returns how many were new."""
        rows = [(one, channel) for one in new for channel in channels_for(one.kind, self.channels)]
        status = await self._postgres.execute(
            Q.add_many,
            [one.fact_id for one, _ in rows],
            [one.kind for one, _ in rows],
            [channel for _, channel in rows],
            [one.account_id for one, _ in rows],
            [one.email for one, _ in rows],
            [one.serial for one, _ in rows],
            [one.edition for one, _ in rows],
            [one.show_id for one, _ in rows],
            [one.number for one, _ in rows],
            [msgspec.json.encode(one.body).decode() for one, _ in rows],
            [one.due_in_s for one, _ in rows],
        )
        return _count(status)

    async def request(
        self, on: Queryable, mail: PersonMail, *, email: str, account_id: int | None, locale: str
    ) -> None:
        """A mail about an account: its text is decided when it is composed."""
        await on.execute(Q.add_to_person, mail, account_id, email, locale)

    async def mail_invitation(
        self, on: Queryable, invitation_id: int, *, email: str, invited_by: int
    ) -> None:
        """Its link is made when the mail is composed."""
        await on.execute(Q.add_invitation, email, invited_by, invitation_id)

    async def move_of_show(self, show_id: int, revision: int) -> dict[str, datetime] | None:
        """The old and the new start; None: the change did not affect the start."""
        row = await self._postgres.fetchrow(Q.move_of_show, show_id, revision)
        return dict(row) if row else None

    async def people_called(self, show_id: int, called: QueueCalled) -> list[int]:
        """Accounts of the people whose turn it is since then, and who have not come in yet."""
        rows = await self._postgres.fetch(Q.people_called, show_id, called.opening, called.called_at)
        return [row["account_id"] for row in rows]

    async def organisers_of(self, show_id: int) -> list[int]:
        """Accounts of the members who see the organisation's money."""
        return [row["account_id"] for row in await self._postgres.fetch(Q.organisers_of, show_id)]

    async def add_for_show(
        self, fact_id: int, kind: NoticeKind, show_id: int, since: datetime, body: Mapping[str, Any]
    ) -> None:
        """For every ticket holder, page by page; a second run skips those that have the notice already."""
        serial = 0
        while page := await self._postgres.fetch(Q.people_of_show, show_id, serial, TICKETS_AT_ONCE, since):
            notices = [
                NewNotice(
                    fact_id=fact_id,
                    kind=kind,
                    show_id=show_id,
                    number=row["number"],
                    account_id=row["account_id"],
                    email=row["owner_email"],
                    body=body,
                )
                for row in page
            ]
            await self._add(notices)
            serial = page[-1]["serial"]

    async def warn_of_lapsing(self, limit: int) -> int:
        seconds = self._config.notice_lapsing_s
        rows = await self._postgres.fetch(Q.lapsing, float(seconds), limit) if seconds else []
        lapsing = [
            NewNotice(
                fact_id=None,
                kind=NoticeKind.HOLD_LAPSING,
                show_id=row["show_id"],
                number=row["number"],
                account_id=row["owner_id"],
            )
            for row in rows
        ]
        return await self._add(lapsing) if lapsing else 0

    # ── taken and ended ───────────────────────────────────────────────────────────────

    async def take_due(self, limit: int, channels: Sequence[Channel]) -> list[DueNotice]:
        """Leased for LEASE_S, the oldest first."""
        rows = await self.leases.take(limit, LEASE_S, list(channels), list(NoticeKind))
        return sorted((parse_due(row) for row in rows), key=lambda due: due.id)

    async def load_trace(self, notice_id: int) -> str | None:
        """Of the request whose fact the notice is about."""
        trace: str | None = await self._postgres.fetchval(Q.trace, notice_id)
        return trace

    async def end(self, due: DueNotice, state: NoticeState, reason: str | None = None) -> bool:
        """False: the lease was lost to another worker."""
        return await self.leases.finish(due.lease, None, state, shorten(reason))

    async def put_off(self, due: DueNotice, reason: str) -> NoticeState | None:
        """Try again later, or DEAD if that was the last try. None: the lease was lost to another worker."""
        pause_s = pause_after(due.tries, PAUSES_S)
        state = NoticeState.DEAD if pause_s is None else NoticeState.QUEUED
        return state if await self.leases.finish(due.lease, pause_s, state, shorten(reason)) else None

    async def set_aside(self, limit: int, sent: Sequence[Channel]) -> int:
        """Ends due notices of channels that have no sender as UNSENT."""
        return _count(await self._postgres.execute(Q.set_aside, limit, list(sent)))

    async def store_message(self, notice_id: int, subject: str, message: bytes) -> None:
        await self._postgres.execute(Q.store_message, notice_id, subject, message)

    # ── for people ────────────────────────────────────────────────────────────────────

    async def newest(self, query: NoticesQuery) -> NoticeList:
        start = (query.page - 1) * query.size
        found = await self.notices(query.state, start, query.size + 1)
        return NoticeList(found[: query.size], len(found) > query.size)

    async def notices(self, state: str, start: int, limit: int) -> list[NoticePage]:
        """Newest first."""
        return [build_page(row) for row in await self._postgres.fetch(Q.newest, state, start, limit)]

    async def has_notice(self, notice_id: int) -> bool:
        return bool(await self._postgres.fetchval(Q.has_notice, notice_id))

    async def replay(self, notice_id: int) -> NoticePage:
        """Send it again, whatever its state."""
        async with self._postgres.transaction() as tx:
            rows = await self.leases.replay(Q.replay_one, notice_id, tx=tx)
            if not rows:
                raise NoSuchNotice(notice_id=notice_id)
            await record(tx, AuditEntry(action="notice.sent_again", subject=("notice", notice_id)))
        return build_page(rows[0])

    async def replay_dead(self) -> list[NoticePage]:
        return [build_page(row) for row in await self.leases.replay(Q.replay_dead)]

    async def stored_messages(self) -> list[Any]:
        return await self._postgres.fetch(Q.stored_messages, MAILS_LISTED_MAX)

    async def stored_message(self, notice_id: int) -> bytes:
        message = await self._postgres.fetchval(Q.stored_message, notice_id)
        if message is None:
            raise NoSuchNotice(notice_id=notice_id)
        return bytes(message)

    async def sender(self, organiser_id: int) -> SenderBody | None:
        row = await self._postgres.fetchrow(Q.sender, organiser_id)
        return SenderBody(**row) if row else None

    async def set_sender(self, organiser_id: int, sender: SenderBody) -> None:
        async with self._postgres.transaction() as tx:
            row = await tx.fetchrow(Q.sender, organiser_id)
            await tx.execute(Q.set_sender, organiser_id, sender.from_name.strip(), sender.reply_to)
            subject = ("notice_sender", organiser_id)
            entry = AuditEntry(action="notice_sender.changed", subject=subject, organiser_id=organiser_id)
            await record_change(tx, entry, SenderBody(**row) if row else None, sender)

    async def counts(self) -> dict[str, int]:
        return await self.leases.count()

    async def forget(self, limit: int) -> int:
        messages = await self._postgres.execute(Q.forget_messages, float(self._config.mail_keep_h))
        notices = await self._postgres.execute(Q.forget_notices, float(self._config.notices_keep_d), limit)
        return _count(messages) + _count(notices)


def shorten(reason: str | None) -> str | None:
    return reason.replace("\0", " ")[:REASON_MAX] if reason else None


def _count(status: str) -> int:
    """The row count at the end of a command status such as "UPDATE 3"."""
    return int(status.rsplit(" ", 1)[-1])
