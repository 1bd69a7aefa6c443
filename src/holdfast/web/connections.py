"""HTTP connections with limits, for a worker that is reached without a proxy in front.

    connection ──► head ──► request ──► answer ──► idle ──► head …
        │            ├─ longer than head_bytes_max ──► 431
        │            └─ not complete within head_timeout_s ──► 408, or closed if nothing was sent
        ├─ more than connections_max ──► 503
        └─ more than connections_per_address_max from one address ──► 429; trusted proxies are exempt

Bodies and answers have their limits in web/guards.py, where requests are known by their route.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.config import Config
from holdfast.engines.metrics import metrics
from holdfast.web.guards import normalise_address
from holdfast.web.request_spans import FROM_PROXY

# After a refusal it reads on, for a while and so much: closing at once would reset the connection before the
# refusal is read.
LINGER_S = 1.0
LINGER_BYTES_MAX = 1_000_000
REASONS = {
    408: "Request Timeout",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


class ConnectionLimits:
    """The limits of one worker, and how many connections each address has."""

    def __init__(self, config: Config) -> None:
        self.head_bytes_max = config.head_bytes_max
        self.head_timeout_s = config.head_timeout_s
        self._connections_max = config.connections_max
        self._per_address_max = config.connections_per_address_max
        self._proxies = [proxy.strip() for proxy in config.trusted_proxies.split(",")]
        self._open: Counter[str] = Counter()

    def enter(self, address: str, connections: int) -> int | None:
        """Counts a new connection; or the status with which it is refused, and it does not count."""
        if connections > self._connections_max:
            return 503
        key = normalise_address(address)
        is_full = 0 < self._per_address_max <= self._open[key]
        if is_full and not self.is_proxy(address):
            return 429
        self._open[key] += 1
        return None

    def is_proxy(self, address: str) -> bool:
        return is_trusted(address, self._proxies)

    def leave(self, address: str) -> None:
        key = normalise_address(address)
        self._open[key] -= 1
        if self._open[key] <= 0:
            del self._open[key]


def is_trusted(address: str, proxies: Sequence[str]) -> bool:
    """Whether it is one of these addresses, or in one of these networks."""
    if "*" in proxies:
        return True
    try:
        ip = ip_address(address)
    except ValueError:  # a unix socket: only a program on this machine has it
        return True
    return any(ip in network for proxy in proxies if (network := _network(proxy)) is not None)


def _network(text: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text, strict=False)
    except ValueError:  # a name: it cannot be compared with an address
        return None


def has_left(transport: asyncio.Transport) -> bool:
    """Whether a client without an address has closed its connection already.

    What it sent can still be read, but not by whom: it would be taken for a program with our unix socket,
    which is trusted like a proxy, and the retry of its request for that of another client.
    """
    return bool(transport.get_extra_info("socket").family != socket.AF_UNIX)


class LimitedHttp(HttpToolsProtocol):
    """uvicorn's protocol. A request whose head arrives whole costs two comparisons and no timer."""

    limits: ClassVar[ConnectionLimits]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._is_in_head, self._is_refused = True, False
        self._head_bytes = self._fed_bytes = self._ignored_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._address = self.client[0] if self.client else ""
        self._is_counted = False
        if self.client is None and has_left(transport):
            self._is_refused = True
            self.connections.discard(self)
            transport.abort()
            return
        status = self.limits.enter(self._address, len(self.connections))
        self._is_counted = status is None
        if status is None:
            self._start_timer()
        else:
            self.connections.discard(self)  # it ends by itself, and must not count
            self._refuse(status)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self._is_counted:
            self.limits.leave(self._address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            self._ignored_bytes += len(data)
            if self._ignored_bytes > LINGER_BYTES_MAX:
                self.transport.pause_reading()
            return
        was_in_head = self._is_in_head
        self._fed_bytes = self._head_bytes + len(data)
        super().data_received(data)
        if not self._is_in_head or self._is_refused:
            return
        if was_in_head:  # a head that began in this piece is counted from the next one on
            self._head_bytes = self._fed_bytes
        if self._head_bytes > self.limits.head_bytes_max:
            self._refuse(431)
        elif self._timer is None:
            self._start_timer()

    def on_message_begin(self) -> None:
        self._is_in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head, self._head_bytes = False, 0
        self._stop_timer()
        if self._fed_bytes > self.limits.head_bytes_max and self._head_size() > self.limits.head_bytes_max:
            self._refuse(431)
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self._is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._is_refused:
            super().on_message_complete()

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(self.limits.head_timeout_s, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if self._head_bytes:
            self._refuse(408)
        else:
            self.transport.close()

    def _refuse(self, status: int) -> None:
        self._is_refused = True
        self._stop_timer()
        metrics.add("connections_refused_total", status=str(status))
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.abort()  # an answer is on its way: nothing may be written into it
            return
        head = f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-length: 0\r\nconnection: close\r\n"
        again = "retry-after: 1\r\n" if status in (429, 503) else ""
        self.transport.write(f"{head}{again}\r\n".encode())
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._timer = self.loop.call_later(LINGER_S, self.transport.abort)


class ParentHttp(LimitedHttp):
    """For HOLDFAST_TRACES_PARENTS: records whether a trusted proxy sent a request.

    Later that is unknown: the address of the client replaces that of the proxy.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._is_proxy = self.limits.is_proxy(self._address)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope[FROM_PROXY] = self._is_proxy  # type: ignore[literal-required]


def limited_http(config: Config) -> type[asyncio.Protocol]:
    """The protocol of one worker, for uvicorn's `http`."""
    kind = ParentHttp if config.traces_parents else LimitedHttp
    return type("WorkerHttp", (kind,), {"limits": ConnectionLimits(config)})
