"""The first steps on an empty installation: a link on a terminal, an administrator, the house (R31)."""

import asyncio
import os
import pty
import re
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from holdfast.accounts import LinkGone, NewAccount
from holdfast.app import App, open_app
from holdfast.config import Config
from holdfast.house import AlreadyBegun, HouseBody
from holdfast.web.caller import Role
from tests.support import shows as cast
from tests.support.browser_session import Visitor, a_site, a_visitor
from tests.support.cli_process import run_holdfast
from tests.support.mail_servers import a_reader, an_office
from tests.support.mailed_links import mails_to
from tests.support.second_ledger import a_ledger, beside
from tests.support.shows import problem

VALKEY_DATABASE = 9  # of the empty installation: its ledger is younger than that of the tests
PASSWORD = "correct horse battery staple"
BODY = HouseBody(name="The Mill", currency="EUR", timezone="Europe/Berlin")
FORM = {
    "name": "The Mill",
    "organisation": "Mill Concerts",
    "currency": "EUR",
    "timezone": "Europe/Berlin",
    "gateway": "sandbox",
}


@pytest.fixture
async def empty(config: Config, tmp_path: Path) -> AsyncIterator[Config]:
    """A database of its own, in which nothing was ever set up."""
    async with a_ledger(config.database_url) as url:
        yield replace(await beside(config, url, VALKEY_DATABASE), data_dir=str(tmp_path))


@pytest.fixture
async def house(empty: Config) -> AsyncIterator[App]:
    async with open_app(empty) as opened:
        yield opened


@pytest.fixture
async def ada(empty: Config) -> AsyncIterator[Visitor]:
    """A visitor of the empty installation."""
    async with a_site(empty) as site, a_visitor(site) as visitor:
        yield visitor


async def test_from_the_link_to_an_open_house(house: App, ada: Visitor) -> None:
    await ada.goes("/")
    assert ada.says("Not open yet")
    assert "/begin" not in ada.text
    await ada.goes("/begin")
    assert ada.status == 404

    path = await house.first_admin.issue_link()
    assert path is not None
    await ada.goes(path)
    await ada.sends(path, name="Ada", email="ada@mill.example", password="short")
    assert (ada.status, ada.says("Use at least 8 characters.")) == (422, True)
    await ada.sends(path, name="Ada", email="Ada@Mill.example", password=PASSWORD)
    assert (ada.at, ada.says("Set up your box office")) == ("/begin", True)
    await ada.sends("/begin", **FORM | {"name": "", "currency": "XXX"})
    assert (ada.status, ada.says("Enter a name"), ada.says("Choose a currency")) == (422, True, True)
    await ada.sends("/begin", **FORM)

    assert (ada.at.startswith("/desk"), ada.status) == (True, 200)
    await ada.goes("/")
    assert not ada.says("Not open yet")
    assert "<span>The Mill</span>" in ada.text
    for used in ("/begin", path):
        await ada.goes(used)
        assert ada.status in (404, 410), used
    shown = (await ada.client.get("/api/v1/house")).json()
    assert shown == {"name": "The Mill", "currency": "EUR", "timezone": "Europe/Berlin"}
    signed_in = await house.accounts.log_in(email="ada@mill.example", password=PASSWORD, address="")
    assert signed_in.account.role is Role.ADMIN
    (mine,) = await house.organisations.mine(signed_in.account.account_id)
    assert (mine.name, mine.is_owner) == ("Mill Concerts", True)


async def test_a_new_link_ends_the_one_before_and_an_administrator_all(house: App) -> None:
    first, second = await house.first_admin.issue_link(), await house.first_admin.issue_link()
    assert first is not None
    assert second is not None

    async def use(path: str, email: str) -> int:
        return await house.first_admin.add(
            path.rpartition("/")[2], email=email, name="Ada", password=PASSWORD, locale="en"
        )

    with pytest.raises(LinkGone):
        await use(first, "ada@mill.example")
    both = await asyncio.gather(
        use(second, "ada@mill.example"), use(second, "eve@mill.example"), return_exceptions=True
    )

    assert sorted(type(one).__name__ for one in both) == ["LinkGone", "int"]
    assert await house.first_admin.issue_link() is None
    stored = await house.postgres.fetchval("SELECT string_agg(mail_token::text, ' ') FROM mail_token")
    assert second.rpartition("/")[2] not in stored


async def test_an_administrator_by_command_sets_up_the_house_after_the_password(
    house: App, ada: Visitor
) -> None:
    _, path = await house.account_admin.add(email="ada@mill.example", name="Ada", role=Role.ADMIN)
    await ada.goes(path)
    await ada.sends(path, password=PASSWORD)

    assert (ada.at, ada.says("Name of your box office")) == ("/begin", True)


async def test_it_is_set_up_once_and_by_administrators_only(house: App, ada: Visitor) -> None:
    first, second = await house.accounts.add_many(
        [NewAccount(f"{name}@mill.example", name, Role.ADMIN) for name in ("ada", "bob")]
    )
    both = await asyncio.gather(
        *(house.house.begin(one, BODY, "Mill") for one in (first, second)), return_exceptions=True
    )

    assert sorted(type(one).__name__ for one in both) == [AlreadyBegun.__name__, "NoneType"]
    assert await house.postgres.fetchval("SELECT count(*) FROM organisation") == 1
    posted = await ada.client.post("/begin", data=FORM)
    assert posted.status_code == 404


async def test_the_house_is_changed_by_administrators(app: App, api: httpx2.AsyncClient) -> None:
    (admin,) = await cast.fans(app, api, 1, Role.ADMIN)
    body = {"name": "The Barn", "currency": "INR", "timezone": "Asia/Kolkata"}
    codes = []
    for wrong in ({"currency": "ABC"}, {"timezone": "Mars/Base"}, {}):
        answer = await api.put("/api/v1/admin/house", headers=admin.headers, json=body | wrong)
        codes.append(problem(answer)["code"] if wrong else answer.status_code)

    assert codes == ["unknown_currency", "unknown_timezone", 200]
    assert (await api.get("/api/v1/house")).json() == body


async def test_mails_come_from_the_house(empty: Config) -> None:
    async with an_office(empty, mail_page=1) as office:
        _, address = await a_reader(office.app)
        await office.app.people.request_reset(address, "en")
        await office.app.house.change(BODY)
        (mail,) = await mails_to(office, address)

    assert mail["From"].addresses[0].display_name == "The Mill"


async def test_serve_prints_the_link_on_a_terminal_only(empty: Config, tmp_path: Path) -> None:
    """What goes to a log file must not open the house."""
    env = {
        "HOLDFAST_DATABASE_URL": empty.database_url,
        "HOLDFAST_REDIS_URL": empty.redis_url,
        "HOLDFAST_GATEWAY": "none",
        "HOLDFAST_PUBLIC_URL": "https://mill.example",
    }
    words = ("serve", "--port", "0", "--workers", "1", "--data", str(tmp_path))
    seen = await asyncio.to_thread(output_on_a_terminal, words, env)

    assert re.search(r"https://mill\.example/link/[\w-]{43}", seen), seen
    added = await run_holdfast(
        "account", "add", "ada@mill.example", "--role", "admin", "--data", str(tmp_path), **env
    )
    assert "https://mill.example/link/" in added.output
    again = await asyncio.to_thread(output_on_a_terminal, words, env)
    assert "/link/" not in again


def output_on_a_terminal(words: tuple[str, ...], env: dict[str, str]) -> str:
    """What the command prints until it is ready; then it is stopped."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    child, terminal = pty.fork()
    if not child:
        os.execve(
            sys.executable,
            [sys.executable, "-m", "holdfast", *words],
            {**ours, **env, "TERM": "dumb"},
        )
    seen = b""
    try:
        while b"Ctrl-C" not in seen:
            seen += os.read(terminal, 4096)
        os.kill(child, signal.SIGTERM)
        while more := os.read(terminal, 4096):
            seen += more
    except OSError:  # the terminal is gone with its last process
        pass
    os.waitpid(child, 0)
    os.close(terminal)
    return seen.decode()
