"""Sends webhooks to the merchant and records in the database which were delivered.

    database ── new ──► ready (≤ READY_MAX) ──► senders ──► the merchant
      ▲  └── due, when ready has room ──┘        │
      └──────── delivered, or postponed ─────────┘

`ready` is a cache: every webhook that is not delivered is in the database with the time it is due, so a
killed sandbox resumes where it stopped and sends a webhook twice at worst. While the merchant's server is
unreachable, only the connection is retried and no webhook is given up. A webhook that the merchant refuses is
retried after each pause of `retry_s`, and then given up.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from time import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog
from msgspec.structs import replace

from holdfast.engines.errors import OperatorError
from holdfast.sandbox.database import SandboxDatabase
from holdfast.sandbox.gateway import GatewayCore
from holdfast.sandbox.payment import SandboxWebhook
from holdfast.sandbox.webhook import WebhookRenderer, render_native_webhook

if TYPE_CHECKING:  # imported with the first webhook: 8 MB
    from aiohttp import ClientSession

log = structlog.get_logger(__name__)

SENDERS = 16  # connections
READY_MAX = 4000  # webhooks in memory; more stay in the database until there is room
LOOK_S = 0.05  # between two looks at what is due
IDLE_LOOK_S = 0.25  # the same, while nothing is due soon
RECORD_PAUSE_S = 0.05  # what arrived is noted down together
UNREACHABLE_PAUSE_FIRST_S = 0.1
UNREACHABLE_PAUSE_MAX_S = 2.0
CONNECT_WITHIN_S = 3.0
ANSWER_WITHIN_S = 10.0
HEADERS = {"User-Agent": "holdfast-sandbox", "Content-Type": "application/json"}


class MerchantUnreachable(Exception):
    """The merchant's server does not accept connections: nothing was sent."""


class WebhookSender:
    def __init__(
        self,
        database: SandboxDatabase,
        core: GatewayCore,
        url: str,
        secrets: Sequence[str],
        *,
        ready_max: int = READY_MAX,
        render: WebhookRenderer = render_native_webhook,
    ) -> None:
        self._render = render
        self._database = database
        self._core = core
        self._url = check_url(url)
        self._session: ClientSession | None = None
        self._secrets = [secret.encode() for secret in secrets]
        self._ready_max = ready_max
        self.counts: Counter[str] = Counter()
        self._ready: deque[SandboxWebhook] = deque()
        self._has_ready = asyncio.Event()
        self._in_memory: set[int] = set()  # ready, under way, or delivered and not noted down yet
        self._arrived: list[int] = []
        self._has_arrived = asyncio.Event()
        self._next_due = 0.0  # the first look finds what an earlier life left
        self._is_behind = False
        self._paused_until = 0.0
        self._pause_s = 0.0

    @asynccontextmanager
    async def open(self) -> AsyncIterator["WebhookSender"]:
        """Sends while the block runs. Webhooks in flight at its end are sent again by the next process."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._close_session)
            tasks = [
                asyncio.create_task(job)
                for job in (
                    self._refill_loop(),
                    self._record_loop(),
                    *(self._send_loop() for _ in range(SENDERS)),
                )
            ]
            stack.push_async_callback(_end, tasks)
            yield self
        await self._flush()

    def enqueue_new(self, webhooks: Sequence[SandboxWebhook]) -> None:
        """Fresh from a commit."""
        now = time()
        for webhook in webhooks:
            assert webhook.due_at is not None
            if webhook.due_at > now + LOOK_S:
                self._next_due = min(self._next_due, webhook.due_at)
            elif len(self._ready) < self._ready_max and not self._is_behind:
                self._enqueue(webhook)
            else:
                self._is_behind = True

    async def send_now(self, webhook: SandboxWebhook) -> bool:
        """Out of turn, and waited for; if it is not taken, it goes the usual way."""
        self._in_memory.add(webhook.seq)
        try:
            status = await self._post(webhook)
        except MerchantUnreachable:
            status = 0
        if not 200 <= status < 300:
            self._in_memory.discard(webhook.seq)
            return False
        self._mark_delivered(webhook)
        await self._flush()
        return True

    @property
    def waiting(self) -> int:
        return self._database.webhooks_waiting()

    # ── couriers ──────────────────────────────────────────────────────────────────────

    async def _send_loop(self) -> None:
        while True:
            webhook = await self._next()
            try:
                await self._sent(webhook, await self._post(webhook))
            except MerchantUnreachable as why:
                self._ready.appendleft(webhook)
                self._pause_sending(str(why))
            except Exception as error:  # the database is busy, for example: the webhook is found again there
                log.warning("webhook not sent", webhook=webhook.id, error=repr(error))
                self._in_memory.discard(webhook.seq)
                self._is_behind = True

    async def _post(self, webhook: SandboxWebhook) -> int:
        """The response status; 0 when the answer did not come. Raises MerchantUnreachable."""
        import aiohttp

        if self._session is None:
            self._session = _session()
        payment = self._database.payment(webhook.payment_id)
        assert payment is not None, "a webhook is stored together with its payment"
        headers, body = self._render(webhook, payment, self._secrets, int(time()))
        try:
            async with self._session.post(
                self._url, data=body, headers={**HEADERS, **headers}, allow_redirects=False
            ) as response:
                await response.read()  # an unread body would close the connection instead of re-using it
                return response.status
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise MerchantUnreachable(str(error)) from None
        except (aiohttp.ClientError, TimeoutError):
            return 0

    async def _close_session(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def _next(self) -> SandboxWebhook:
        while True:
            if (wait_s := self._paused_until - time()) > 0:
                await asyncio.sleep(wait_s)
            elif self._ready:
                return self._ready.popleft()
            else:
                self._has_ready.clear()
                await self._has_ready.wait()

    async def _sent(self, webhook: SandboxWebhook, status: int) -> None:
        self._pause_s = 0.0
        if not 200 <= status < 300:
            self.counts["refused"] += 1
            await self._postpone(webhook)
            return
        self.counts["sent"] += 1
        if webhook.copies > 1:
            self._ready.append(replace(webhook, copies=webhook.copies - 1))
            self._has_ready.set()
        else:
            self._mark_delivered(webhook)

    async def _postpone(self, webhook: SandboxWebhook) -> None:
        pauses_s = self._core.settings.retry_s
        attempts = webhook.attempts + 1
        due_at = time() + pauses_s[attempts - 1] if attempts <= len(pauses_s) else None
        if due_at is None:
            self.counts["given_up"] += 1
            log.warning("webhook given up", webhook=webhook.id, attempts=attempts)
        await self._database.write(lambda w: w.postpone(webhook.seq, due_at, webhook.copies, attempts))
        self._in_memory.discard(webhook.seq)
        if due_at is not None:
            self._next_due = min(self._next_due, due_at)

    def _pause_sending(self, why: str) -> None:
        """The merchant's server is unreachable: all senders pause, longer each time."""
        if time() < self._paused_until:
            return
        if not self._pause_s:
            log.warning("merchant unreachable, webhooks are waiting", why=why)
        self.counts["unreachable"] += 1
        self._pause_s = min(max(self._pause_s * 2, UNREACHABLE_PAUSE_FIRST_S), UNREACHABLE_PAUSE_MAX_S)
        self._paused_until = time() + self._pause_s

    # ── what is ready, and what has arrived ───────────────────────────────────────────

    def _enqueue(self, webhook: SandboxWebhook) -> None:
        if webhook.seq in self._in_memory:  # the refill found it in the database first
            return
        self._in_memory.add(webhook.seq)
        self._ready.append(webhook)
        self._has_ready.set()

    def _mark_delivered(self, webhook: SandboxWebhook) -> None:
        self._arrived.append(webhook.seq)
        self._has_arrived.set()

    async def _refill_loop(self) -> None:
        while True:
            is_soon = self._is_behind or self._next_due < time() + IDLE_LOOK_S
            await asyncio.sleep(LOOK_S if is_soon else IDLE_LOOK_S)
            now = time()
            if len(self._ready) < self._ready_max // 4 and (self._is_behind or now >= self._next_due):
                self._take_due(now)

    def _take_due(self, now: float) -> None:
        limit = len(self._in_memory) + self._ready_max // 2
        found = self._database.webhooks_due(now, limit)
        for webhook in found:
            self._enqueue(webhook)
        self._is_behind = len(found) == limit
        self._next_due = self._database.next_webhook_due(now) or float("inf")

    async def _record_loop(self) -> None:
        while True:
            await self._has_arrived.wait()
            await asyncio.sleep(RECORD_PAUSE_S)
            self._has_arrived.clear()
            await self._flush()

    async def _flush(self) -> None:
        if not self._arrived:
            return
        arrived, self._arrived = self._arrived, []
        try:
            await self._database.write(lambda writer: writer.delivered(arrived))
        except Exception as error:
            log.warning("webhooks not noted down", count=len(arrived), error=repr(error))
            self._arrived += arrived
            self._has_arrived.set()
        else:
            self._in_memory.difference_update(arrived)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def check_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise OperatorError(f"cannot send webhooks to {url!r}: must be an http:// or https:// URL")
    return url


def _session() -> "ClientSession":
    """Connections stay open between webhooks: they are as frequent as payments."""
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),  # the number of couriers is the limit
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=ANSWER_WITHIN_S, sock_connect=CONNECT_WITHIN_S),
    )
