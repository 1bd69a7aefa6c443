"""Senders: mail by SMTP, short messages by HTTP. The only file here that opens connections to other hosts.

A sender opens a connection and sends one message after another over it. Failures: Rejected (never retry),
TryAgainLater (retry this message), ConnectionLost (retry it on a new connection), Unreachable (the server
cannot be reached; no message counts as tried).
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from holdfast.config import Config
from holdfast.engines.errors import OperatorError
from holdfast.notifications.notice import Channel
from holdfast.notifications.render import parse_sender

if TYPE_CHECKING:  # imported lazily: web processes do not load a mail client
    from aiohttp import ClientSession
    from aiosmtplib import SMTP

PORTS = {"smtp": 587, "smtps": 465}
RETRY_STATUSES = {408, 425, 429}  # HTTP 4xx statuses that are temporary
PERMANENT_CODES = range(500, 600)  # SMTP replies
CLOSING_CODE = 421  # the server is about to hang up
# A server may take long to confirm a mail that it has received completely. A client that disconnects before
# the confirmation would send the mail twice (RFC 5321, 4.5.3.2.6).
ACCEPT_TIMEOUT_S = 600.0


class Unreachable(Exception):
    """The server cannot be reached, so no message can be sent."""


class TryAgainLater(Exception):
    """This message may be tried again."""


class ConnectionLost(TryAgainLater):
    """As TryAgainLater, and the next message needs a new connection."""


class Rejected(Exception):
    """The server will never accept this message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingMessage:
    """A message ready to send: `mail` is the complete mail; other channels send `text`."""

    notice_id: int
    key: str  # the same for every try
    kind: str
    account_id: int | None
    address: str
    locale: str
    text: str
    mail: bytes = b""


class SenderConnection(Protocol):
    @property
    def is_open(self) -> bool: ...

    async def send(self, message: OutgoingMessage) -> None: ...


class Sender(Protocol):
    def open(self) -> AbstractAsyncContextManager[SenderConnection]: ...


def build_senders(config: Config) -> dict[Channel, Sender]:
    """The senders that the operator configured. OperatorError names a setting that cannot be parsed."""
    found: dict[Channel, Sender] = {}
    if config.mail_url:
        found[Channel.MAIL] = SmtpSender(config)
    for channel, url in ((Channel.SMS, config.sms_url), (Channel.PUSH, config.push_url)):
        if url:
            found[channel] = HttpSender(channel, url, config.mail_timeout_s)
    return found


class SmtpSender:
    def __init__(self, config: Config) -> None:
        url = urlsplit(config.mail_url)
        if url.scheme not in PORTS or not url.hostname:
            raise OperatorError(
                "HOLDFAST_MAIL_URL is invalid; expected smtp://name:password@host:587?starttls=1"
            )
        _, self._from = parse_sender(config.mail_from)
        if not config.mail_from or "@" not in self._from:
            raise OperatorError("HOLDFAST_MAIL_FROM is missing: Box office <tickets@your.domain>")
        self._host, self._port = url.hostname, url.port or PORTS[url.scheme]
        self._is_tls = url.scheme == "smtps"
        self._name = unquote(url.username) if url.username else None
        self._password = unquote(url.password) if url.password else None
        mode = parse_qs(url.query).get("starttls", [""])[-1]
        # Default: if the server offers STARTTLS, and always with a password, because an attacker in between
        # could remove the offer. 1: required. 0: never.
        self._start_tls = {"1": True, "0": False}.get(mode, True if self._password else None)
        self._trusted = _trusted(config.mail_ca_file)
        self._timeout_s = config.mail_timeout_s

    @asynccontextmanager
    async def open(self) -> AsyncIterator["SmtpConnection"]:
        from aiosmtplib import SMTP, SMTPException

        smtp = SMTP(
            hostname=self._host,
            port=self._port,
            username=self._name,
            password=self._password,
            use_tls=self._is_tls,
            start_tls=False if self._is_tls else self._start_tls,
            tls_context=self._trusted,
            timeout=self._timeout_s,
        )
        try:
            async with asyncio.timeout(self._timeout_s):
                await smtp.connect()
        except (SMTPException, OSError) as error:
            smtp.close()
            raise Unreachable(f"{self._host}:{self._port}: {_line(error)}") from error
        try:
            yield SmtpConnection(smtp, self._from)
            try:
                await smtp.quit()
            except (SMTPException, OSError):  # every message was confirmed already
                return
        finally:
            smtp.close()


class SmtpConnection:
    def __init__(self, smtp: "SMTP", sender: str) -> None:
        self._smtp = smtp
        self._from = sender

    @property
    def is_open(self) -> bool:
        return self._smtp.is_connected

    async def send(self, message: OutgoingMessage) -> None:
        from aiosmtplib import SMTPException, SMTPResponseException

        smtp = self._smtp
        size = [f"size={len(message.mail)}"] if smtp.supports_extension("size") else []
        try:
            await smtp.mail(self._from, options=size)
            await smtp.rcpt(message.address)
            await smtp.data(message.mail, timeout=ACCEPT_TIMEOUT_S)
        except SMTPResponseException as no:
            await self._reset()
            raise _parse_failure(no.code, no.message) from no
        except ValueError as error:
            await self._reset()
            raise Rejected(_line(error)) from error
        except (SMTPException, OSError) as error:
            raise ConnectionLost(_line(error)) from error

    async def _reset(self) -> None:
        """Resets the SMTP transaction; closes the connection if that fails."""
        from aiosmtplib import SMTPException

        try:
            await self._smtp.rset()
        except (SMTPException, OSError):
            self._smtp.close()


def _trusted(ca_file: str) -> ssl.SSLContext:
    """Trusts the system's certificate authorities and the operator's own."""
    context = ssl.create_default_context()
    if ca_file:
        try:
            context.load_verify_locations(cafile=ca_file)
        except (OSError, ssl.SSLError) as error:
            raise OperatorError(f"HOLDFAST_MAIL_CA_FILE cannot be read: {ca_file}: {_line(error)}") from None
    return context


def _parse_failure(code: int, message: str) -> Exception:
    reply = " ".join(f"{code} {message}".split())
    if code == CLOSING_CODE or code not in range(400, 600):  # or not an SMTP reply
        return ConnectionLost(reply)
    return Rejected(reply) if code in PERMANENT_CODES else TryAgainLater(reply)


class HttpSender:
    """Sends a short text as JSON by POST. The provider maps our account ids to phones.

    2xx: accepted. 4xx except 408, 425 and 429: rejected. Everything else: retried later. All tries of a
    message have the same Idempotency-Key.
    """

    def __init__(self, channel: Channel, url: str, timeout_s: int) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise OperatorError(
                f"HOLDFAST_{channel.upper()}_URL is invalid; expected https://name:password@host/path"
            )
        self._url = url
        self._timeout_s = timeout_s

    @asynccontextmanager
    async def open(self) -> AsyncIterator["HttpConnection"]:
        from aiohttp import ClientSession, ClientTimeout

        async with ClientSession(timeout=ClientTimeout(self._timeout_s)) as session:
            yield HttpConnection(session, self._url)


class HttpConnection:
    def __init__(self, session: "ClientSession", url: str) -> None:
        self._session = session
        self._url = url

    @property
    def is_open(self) -> bool:
        return True

    async def send(self, message: OutgoingMessage) -> None:
        from aiohttp import ClientConnectorError, ClientError

        body = {
            "id": message.key,
            "kind": message.kind,
            "account_id": message.account_id,
            "address": message.address,
            "locale": message.locale,
            "text": message.text,
        }
        headers = {"Idempotency-Key": message.key}
        try:
            async with self._session.post(
                self._url, json=body, headers=headers, allow_redirects=False
            ) as answer:
                status = answer.status
        except ClientConnectorError as error:
            raise Unreachable(_line(error)) from error
        except (ClientError, OSError) as error:
            raise TryAgainLater(_line(error)) from error
        if 200 <= status < 300:
            return
        if 400 <= status < 500 and status not in RETRY_STATUSES:
            raise Rejected(f"HTTP {status}")
        raise TryAgainLater(f"HTTP {status}")


def _line(error: Exception) -> str:
    return " ".join((str(error) or type(error).__name__).split())
