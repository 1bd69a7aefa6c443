"""Sends a delivery by POST to a URL that an organiser chose. The only file here that connects to other hosts.

What a malicious URL could attempt, and the countermeasure:

reach our own network    the name is resolved here, once, and all its addresses must be public; the connection
                         uses exactly these addresses, so a DNS change in between has no effect
redirect us there        redirects are not followed, proxies of the environment are not used
answer slowly            one timeout covers the whole request
send a huge answer       only its first bytes are read, never decompressed; then the connection is closed
"""

import asyncio
import errno
import socket
import time

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from holdfast.webhooks_out.delivery import (
    RESPONSE_CHARS_MAX,
    DeliveryResult,
    DueDelivery,
    build_headers,
    parse_response,
)
from holdfast.webhooks_out.endpoint import check_url, is_public
from holdfast.webhooks_out.errors import BadEndpointUrl

READ_WITHIN_S = 1.0  # the status decides; the body is only for the log


class NonPublicAddress(OSError):
    """The name resolves to an address that is not public."""


class PublicResolver(AbstractResolver):
    """Resolves a name; refuses it unless all its addresses are public."""

    def __init__(self, inner: AbstractResolver | None = None) -> None:
        self._inner = inner

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        if self._inner is None:  # made where there is a loop
            self._inner = ThreadedResolver()
        found = await self._inner.resolve(host, port, family)
        if not all(is_public(one["host"]) for one in found):
            # The message omits the address: organisers must not learn how our internal names resolve.
            raise NonPublicAddress(errno.EACCES, "the name leads to what is not a public address")
        return found

    async def close(self) -> None:
        if self._inner is not None:
            await self._inner.close()


class WebhookClient:
    """The HTTP client for deliveries. The caller closes it."""

    def __init__(
        self,
        *,
        timeout_s: float,
        links_max: int,
        lenient: bool = False,
        names: AbstractResolver | None = None,
    ) -> None:
        """`lenient`: http and private addresses, for a demo. `names`: the resolver."""
        self._timeout_s = timeout_s
        self._links_max = links_max
        self._lenient = lenient
        self._names = names if lenient else PublicResolver(names)
        self._session: aiohttp.ClientSession | None = None

    async def send(self, due: DueDelivery) -> DeliveryResult:
        """Never raises for a failed request: the result has a reason instead."""
        began = time.monotonic()
        try:
            check_url(due.url, lenient=self._lenient)  # an IP address is not resolved, so it is checked here
            async with asyncio.timeout(self._timeout_s):
                status, response = await self._post(due)
        except BadEndpointUrl as no:
            return DeliveryResult(status=None, took_ms=0, reason=str(no.details.get("detail", no.title)))
        except TimeoutError:
            return DeliveryResult(
                status=None, took_ms=_since(began), reason=f"no answer within {self._timeout_s:g} s"
            )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return DeliveryResult(status=None, took_ms=_since(began), reason=_line(error))
        return parse_response(status, _since(began), response)

    async def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def __aenter__(self) -> "WebhookClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _post(self, due: DueDelivery) -> tuple[int, bytes]:
        signed = build_headers(due.secrets, due.message_id, int(time.time()), due.payload)
        answer = await self._opened().post(due.url, data=due.payload, headers=signed, allow_redirects=False)
        try:
            return answer.status, await _first_bytes(answer)
        finally:
            answer.close()  # not returned to the pool, which would read the rest of the body

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                resolver=self._names, use_dns_cache=False, limit=self._links_max, force_close=True
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                timeout=aiohttp.ClientTimeout(total=None),
            )
        return self._session


async def _first_bytes(answer: aiohttp.ClientResponse) -> bytes:
    first = b""
    try:
        async with asyncio.timeout(READ_WITHIN_S):
            while len(first) < RESPONSE_CHARS_MAX and (
                more := await answer.content.read(RESPONSE_CHARS_MAX - len(first))
            ):
                first += more
    except (TimeoutError, aiohttp.ClientError):
        return first
    return first


def _since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)


def _line(error: Exception) -> str:
    return " ".join((str(error) or type(error).__name__).split())
