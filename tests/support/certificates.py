"""A certificate for servers of a test on 127.0.0.1, and a front that speaks TLS for a server without it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Vouched:
    """A certificate for 127.0.0.1 that vouches for itself."""

    file: Path
    server: ssl.SSLContext


def vouched_certificate(folder: Path, days: float = 1) -> Vouched:
    """For so many days."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    file = give_certificate(context, folder, days)
    return Vouched(file, context)


def give_certificate(context: ssl.SSLContext, folder: Path, days: float) -> Path:
    """A new one. A server that is up has it from its next connection on."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server.test")]), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    file, secret = folder / "server.pem", folder / "server.key"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    context.load_cert_chain(file, secret)
    return file


@asynccontextmanager
async def tls_front(certificate: Vouched, find_port: Callable[[], int]) -> AsyncIterator[int]:
    """The port of a server that passes everything on to the other port, without TLS."""

    async def passes_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other_reader, other_writer = await asyncio.open_connection(HOST, find_port())
        await asyncio.gather(_copy(reader, other_writer), _copy(other_reader, writer))

    server = await asyncio.start_server(passes_on, HOST, 0, ssl=certificate.server)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
