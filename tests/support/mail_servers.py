"""Mail servers that behave as a test wants, people who get mail, and facts that become notices."""

import asyncio
import secrets
import socket
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult

from holdfast.accounts import NewAccount
from holdfast.app import App
from holdfast.background import build_mail_sender
from holdfast.config import Config
from holdfast.notifications.jobs import NoticeDelivery, consumer
from holdfast.outbox.relay import ConsumerWorker
from tests.support.opened import open_app

MAIL_FROM = "Box office <tickets@hall.example>"


@dataclass
class MailServer:
    """`says` answers to a recipient, `takes` to a whole mail; None: yes. It thinks before it says that."""

    port: int
    thinks_s: float = 0.0
    tls: ssl.SSLContext | None = None  # it offers STARTTLS with it
    is_tls_first: bool = False  # or speaks nothing else
    login: tuple[str, str] | None = None  # other logins are refused
    says: Callable[[str], str | None] = lambda _address: None
    takes: Callable[[str], str | None] = lambda _address: None
    recipients: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    mails: list[tuple[str, bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}?starttls=0"

    def to(self, address: str) -> list[EmailMessage]:
        return [message_from_bytes(raw, policy=default) for to, raw in self.mails if to == address]

    # The names are aiosmtpd's.
    async def handle_RCPT(
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        self.recipients[address] += 1
        if (no := self.says(address)) is not None:
            return no
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        (address,) = envelope.rcpt_tos
        if (no := self.takes(address)) is not None:
            return no
        self.mails.append((address, bytes(envelope.content)))
        if self.thinks_s:
            await asyncio.sleep(self.thinks_s)
        return "250 taken"

    def _may_send(self, _server: Any, _session: Any, _envelope: Any, _way: str, given: Any) -> AuthResult:
        is_right = (given.login.decode(), given.password.decode()) == self.login
        return AuthResult(success=is_right, handled=False)

    def _speaks(self) -> SMTP:
        return SMTP(
            self,
            hostname="mail.test",
            tls_context=None if self.is_tls_first else self.tls,
            require_starttls=self.tls is not None and not self.is_tls_first,
            auth_required=self.login is not None,
            authenticator=self._may_send,
        )

    @asynccontextmanager
    async def up(self) -> AsyncIterator["MailServer"]:
        server = await asyncio.get_running_loop().create_server(
            self._speaks, "127.0.0.1", self.port, ssl=self.tls if self.is_tls_first else None
        )
        try:
            yield self
        finally:
            server.close()
            await server.wait_closed()


def a_mail_server() -> MailServer:
    """Not up yet; its port was free a moment ago."""
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        return MailServer(int(port.getsockname()[1]))


@dataclass
class Office:
    """A worker's notices: facts are consumed from the moment it was opened.

    With pods, a worker's notices of every database; `app`, `post` and `consumer_worker` are for one of them.
    """

    app: App
    post: NoticeDelivery
    consumer_worker: ConsumerWorker
    others: list["Office"]

    async def consume(self) -> None:
        for one in (self, *self.others):
            await one.app.outbox.settle(1_000_000)
        for one in self.offices:
            while await one.consumer_worker.consume():
                pass

    async def send(self) -> None:
        for one in self.offices:
            while await one.post.send():
                pass

    async def consume_and_send(self) -> None:
        await self.consume()
        await self.send()

    async def rows(self, address: str) -> list[Any]:
        sql = "SELECT *, state::text FROM notice WHERE address = $1 ORDER BY id"
        return [row for one in self.offices for row in await one.app.postgres.fetch(sql, address)]

    @property
    def offices(self) -> list["Office"]:
        """One for each database."""
        return self.others or [self]

    async def kinds(self, address: str) -> list[str]:
        return [row["kind"] for row in await self.rows(address)]

    async def no_pause(self) -> None:
        """The pause before the next try has passed, and no worker is sending."""
        await self.app.postgres.execute("UPDATE notice SET due_at = now() WHERE due_at IS NOT NULL")


@asynccontextmanager
async def an_office(config: Config, **settings: Any) -> AsyncIterator[Office]:
    async with open_app(replace(config, **settings)) as app, AsyncExitStack() as stack:
        pods = app.router.by_name.values() if app.router.has_pods else ()
        others = [await stack.enter_async_context(_an_office_of(pod)) for pod in pods]
        if not others:
            yield await stack.enter_async_context(_an_office_of(app))
            return
        group = others[0].consumer_worker._consumer.group
        yield Office(app, build_mail_sender(app), _worker_of(app, group), others)


@asynccontextmanager
async def _an_office_of(app: App) -> AsyncIterator[Office]:
    await app.outbox.settle(1_000_000)
    await app.postgres.execute("DELETE FROM notice WHERE state = 'queued'")  # of tests before this one
    group = f"notices-{secrets.token_hex(4)}"
    await app.outbox.add_group(group, from_oldest=False)
    try:
        yield Office(app, build_mail_sender(app), _worker_of(app, group), [])
    finally:
        await app.outbox.forget_group(group)


def _worker_of(app: App, group: str) -> ConsumerWorker:
    notices = replace(consumer(app.notifications, app.waiting_rooms), group=group)
    return ConsumerWorker(app.outbox, notices, app.config, wait_s=0.02)


async def a_reader(app: App, name: str = "Zoë", locale: str = "en") -> tuple[int, str]:
    """An account that gets mail: its id and address."""
    address = f"reader-{secrets.token_hex(6)}@example.org"
    (account_id,) = await app.accounts.add_many([NewAccount(address, name)])
    await app.accounts.set_locale(account_id, locale)
    return account_id, address
