"""Mail over STARTTLS and with a password, to servers with a trusted and an untrusted certificate (R29)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.app import App
from holdfast.config import Config
from holdfast.engines.errors import OperatorError
from holdfast.notifications.senders import build_senders
from tests.support import shows as cast
from tests.support.certificates import Vouched, vouched_certificate
from tests.support.mail_servers import MAIL_FROM, MailServer, a_mail_server, a_reader, an_office
from tests.support.own_engines import hold

LOGIN = ("box@hall.example", "p@ss/word")
IN_URL = "box%40hall.example:p%40ss%2Fword"


@pytest.fixture(scope="module")
def vouched(tmp_path_factory: pytest.TempPathFactory) -> Vouched:
    return vouched_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
async def server(vouched: Vouched) -> AsyncIterator[MailServer]:
    """Accepts mail from clients with the password, and only over TLS."""
    server = a_mail_server()
    server.tls, server.login = vouched.server, LOGIN
    async with server.up():
        yield server


@pytest.fixture
async def show(app: App) -> int:
    return await cast.a_show(app, 20, price_minor=0)


async def sent(config: Config, show: int, **settings: Any) -> tuple[str, Any]:
    """Where a booking's mail was to go, and what became of it."""
    async with an_office(config, mail_from=MAIL_FROM, **settings) as office:
        account_id, address = await a_reader(office.app)
        await hold(office.app, show, account_id, 1)
        await office.consume_and_send()
        (row,) = await office.rows(address)
        return address, row


def url_of(server: MailServer, login: str = IN_URL, more: str = "") -> str:
    return f"smtp://{login}@127.0.0.1:{server.port}{more}"


@pytest.mark.parametrize("more", ["", "?starttls=1"])
async def test_mail_is_sent_over_tls_with_the_password(
    config: Config, server: MailServer, vouched: Vouched, show: int, more: str
) -> None:
    address, row = await sent(
        config, show, mail_url=url_of(server, more=more), mail_ca_file=str(vouched.file)
    )

    assert row["state"] == "sent"
    assert len(server.to(address)) == 1


async def test_mail_is_sent_over_tls_from_the_first_byte(config: Config, vouched: Vouched, show: int) -> None:
    server = a_mail_server()
    server.tls, server.is_tls_first = vouched.server, True
    async with server.up():
        url = f"smtps://127.0.0.1:{server.port}"
        address, row = await sent(config, show, mail_url=url, mail_ca_file=str(vouched.file))

    assert row["state"] == "sent"
    assert len(server.to(address)) == 1


async def test_the_password_is_not_sent_to_a_server_with_an_untrusted_certificate(
    config: Config, server: MailServer, show: int
) -> None:
    address, row = await sent(config, show, mail_url=url_of(server))

    assert (row["state"], row["tries"]) == ("queued", 0)
    assert "certificate" in row["reason"].lower()
    assert server.to(address) == []


async def test_mail_is_not_sent_to_a_server_without_tls(config: Config, vouched: Vouched, show: int) -> None:
    plain = a_mail_server()
    async with plain.up():
        address, row = await sent(config, show, mail_url=url_of(plain), mail_ca_file=str(vouched.file))

    assert (row["state"], "STARTTLS" in row["reason"]) == ("queued", True)
    assert plain.to(address) == []


async def test_with_a_wrong_password_nothing_is_lost(
    config: Config, server: MailServer, vouched: Vouched, show: int
) -> None:
    address, row = await sent(
        config, show, mail_url=url_of(server, "box:wrong"), mail_ca_file=str(vouched.file)
    )

    assert (row["state"], row["tries"], "535" in row["reason"]) == ("queued", 0, True)
    assert server.to(address) == []
    assert "wrong" not in row["reason"]


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_a_file_that_is_none_is_named(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "ca.pem"
    if text is not None:
        file.write_text(text)

    with pytest.raises(OperatorError, match="HOLDFAST_MAIL_CA_FILE"):
        build_senders(Config(mail_url="smtp://mail.example", mail_from=MAIL_FROM, mail_ca_file=str(file)))
