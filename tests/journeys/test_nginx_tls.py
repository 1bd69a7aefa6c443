"""R4: nginx on deploy/nginx.conf with a certificate: TLS versions, host names and headers."""

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from holdfast.config import Config
from tests.conftest import started
from tests.support.nginx_front import Behind, fronted
from tests.support.opened import asgi_app


@dataclass(frozen=True)
class Secure:
    client: httpx2.AsyncClient
    behind: Behind
    certificate: Path

    async def handshake(
        self, name: str = "localhost", version: ssl.TLSVersion | None = None
    ) -> tuple[str | None, str | None]:
        """(version of TLS, protocol spoken in it)"""
        trust = ssl.create_default_context(cafile=str(self.certificate))
        trust.set_alpn_protocols(["h2", "http/1.1"])
        if version is not None:
            trust.set_ciphers("ALL:@SECLEVEL=0")
            trust.minimum_version = trust.maximum_version = version
        port = self.client.base_url.port
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust, server_hostname=name)
        spoken = writer.get_extra_info("ssl_object")
        writer.close()
        return spoken.version(), spoken.selected_alpn_protocol()


@pytest.fixture(scope="module")
async def secure(config: Config, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Secure]:
    folder = tmp_path_factory.mktemp("tls")
    certificate, application = a_certificate(folder), asgi_app(config)
    behind = Behind(application)
    async with (
        started(application),
        behind.serving(),
        fronted(folder / "nginx", behind.address, certificate=certificate) as client,
    ):
        yield Secure(client, behind, certificate[0])


def a_certificate(folder: Path) -> tuple[Path, Path]:
    """Good for a day, for this machine, signed by itself."""
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")]),
    )
    now = datetime.datetime.now(datetime.UTC)
    names = [
        x509.DNSName("localhost"),
        x509.IPAddress(IPv4Address("127.0.0.1")),
        x509.DNSName("evil.example"),
    ]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    (folder / "certificate.pem").write_bytes(made.public_bytes(pem))
    (folder / "key.pem").write_bytes(secret)
    return folder / "certificate.pem", folder / "key.pem"


async def test_a_browser_gets_hsts_and_the_application_sees_https(secure: Secure) -> None:
    answer = await secure.client.get("/healthz")

    assert answer.status_code == 200
    assert "max-age=31536000" in answer.headers["strict-transport-security"]
    assert secure.behind.seen[-1]["scheme"] == "https"


async def test_new_tls_and_http_2_are_spoken(secure: Secure) -> None:
    assert await secure.handshake() == ("TLSv1.3", "h2")
    assert await secure.handshake(version=ssl.TLSVersion.TLSv1_2) == ("TLSv1.2", "h2")


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
async def test_old_tls_is_not(secure: Secure) -> None:
    with pytest.raises((ssl.SSLError, OSError)):
        await secure.handshake(version=ssl.TLSVersion.TLSv1_1)


async def test_a_name_that_is_not_ours_gets_no_certificate(secure: Secure) -> None:
    with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME"):
        await secure.handshake(name="evil.example")
