"""When the certificate of a TLS server ends. It is read, not verified: an expired one has an end, too."""

import asyncio
import ssl
import struct
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from holdfast.engines.ledger_hosts import split_hosts
from holdfast.engines.redis_url import parse_redis_url

SSL_REQUEST = struct.pack("!ii", 8, 80877103)  # of PostgreSQL; answered with S or N
SECONDS_PER_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class TlsServer:
    place: str  # what it is for us: public, ledger, holds …
    host: str
    port: int
    asks_first: bool = False  # PostgreSQL: TLS begins after a question

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


async def load_days_left(server: TlsServer) -> float | None:
    """Days until its certificate ends; negative: it has ended. None: it does not speak TLS."""
    from cryptography import x509  # seldom needed, and large

    reader, writer = await asyncio.open_connection(server.host, server.port)
    try:
        if server.asks_first:
            writer.write(SSL_REQUEST)
            if await reader.read(1) != b"S":
                return None
        await writer.start_tls(_trusting_context(), server_hostname=server.host)
        spoken: ssl.SSLObject = writer.get_extra_info("ssl_object")
        data = spoken.getpeercert(binary_form=True)
    finally:
        writer.transport.abort()
    assert data is not None, "a TLS server has a certificate"
    end = x509.load_der_x509_certificate(data).not_valid_after_utc
    return (end - datetime.now(UTC)).total_seconds() / SECONDS_PER_DAY


def _trusting_context() -> ssl.SSLContext:
    """Nothing is sent over it but the handshake."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def find_public_server(url: str) -> list[TlsServer]:
    parts = urlsplit(url)
    return [TlsServer("public", parts.hostname, parts.port or 443)] if _is_tls(url) and parts.hostname else []


def find_ledger_servers(place: str, url: str) -> list[TlsServer]:
    """Hosts of a URL of PostgreSQL; none for a socket. The first message finds out whether they speak TLS."""
    parts = [urlsplit(one) for one in split_hosts(url)] if url else []
    return [
        TlsServer(place, one.hostname, one.port or 5432, asks_first=True) for one in parts if one.hostname
    ]


def find_redis_servers(place: str, url: str) -> list[TlsServer]:
    """Servers, Sentinels or nodes that a URL of Redis names, if it is one with TLS."""
    if not url.startswith("rediss"):
        return []
    named = parse_redis_url(url)
    hosts = named.hosts or ((urlsplit(url).hostname or "localhost", urlsplit(url).port or 6379),)
    return [TlsServer(place, host, port) for host, port in hosts]


def _is_tls(url: str) -> bool:
    return urlsplit(url).scheme == "https"
