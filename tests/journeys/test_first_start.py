"""The first start of a production box office: settings that would lose money are refused (R34)."""

import asyncio
import json
import secrets
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import httpx2
import pytest

from holdfast.config import Config
from tests.support.cli_process import CommandResult, run_holdfast, serve_holdfast, start_holdfast


@pytest.fixture
def own_engines(config: Config) -> dict[str, str]:
    """Engines that the operator runs, not embedded ones."""
    return {"HOLDFAST_DATABASE_URL": config.database_url, "HOLDFAST_REDIS_URL": config.redis_url}


@pytest.fixture
async def empty_database(config: Config) -> AsyncIterator[str]:
    """The address of a database of its own on the server of the tests."""
    name = "first_start"
    connection = await asyncpg.connect(config.database_url)
    await connection.execute(f"DROP DATABASE IF EXISTS {name}")
    await connection.execute(f"CREATE DATABASE {name}")
    yield urlsplit(config.database_url)._replace(path=f"/{name}").geturl()
    await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await connection.close()


def assert_one_sentence(ended: CommandResult, *parts: str) -> None:
    assert ended.code == 2, ended
    assert len(ended.words.strip().splitlines()) == 1, ended.words
    for part in parts:
        assert part in ended.words
    assert ended.output == ""


def finding(ended: CommandResult, what: str) -> dict[str, str]:
    [found] = [found for found in ended.page if found["what"] == what]
    return dict(found)


class TestThePaymentGateway:
    @pytest.mark.parametrize("command", [("serve", "--port", "0"), ("work",)])
    async def test_it_must_be_named_when_the_database_is_the_operators(
        self, command: tuple[str, ...], tmp_path: Path, own_engines: dict[str, str]
    ) -> None:
        """Without this, a forgotten setting sells tickets for test cards."""
        ended = await run_holdfast(*command, "--data", str(tmp_path), **own_engines)

        assert_one_sentence(ended, "set HOLDFAST_GATEWAY to stripe, razorpay, none or sandbox")

    async def test_the_sandbox_listens_on_this_machine_only(
        self, tmp_path: Path, own_engines: dict[str, str]
    ) -> None:
        words = ("serve", "--port", "0", "--host", "0.0.0.0", "--workers", "1", "--data", str(tmp_path))
        async with serve_holdfast(*words, **own_engines, HOLDFAST_GATEWAY="sandbox") as facts:
            listening = addresses_listening_on(urlsplit(facts["sandbox"]).port or 0)

        assert listening == {"127.0.0.1"}

    async def test_wrong_settings_are_one_sentence_at_start_and_in_the_doctor(
        self, tmp_path: Path, own_engines: dict[str, str]
    ) -> None:
        env, words = {**own_engines, "HOLDFAST_GATEWAY": "stripe"}, "HOLDFAST_STRIPE_SECRET_KEY is not set"
        started = await run_holdfast("serve", "--port", "0", "--workers", "1", "--data", str(tmp_path), **env)
        looked = await run_holdfast("doctor", "--json", "--data", str(tmp_path), **env)

        assert_one_sentence(started, words)
        assert finding(looked, "payment gateway")["health"] == "fail"
        assert words in finding(looked, "payment gateway")["fix"]


class TestOtherSettings:
    async def test_a_sale_without_mail_starts_with_a_warning_and_trusts_no_unknown_proxy(
        self, tmp_path: Path, own_engines: dict[str, str]
    ) -> None:
        """No buyer would get a ticket by mail; and a client must not choose the address it is limited by."""
        env = {
            **own_engines,
            "HOLDFAST_GATEWAY": "none",
            "HOLDFAST_REQUESTS_PER_SECOND_MAX": "1",
            "HOLDFAST_TRUSTED_PROXIES": "10.1.2.3",
        }
        words = ("serve", "--port", "0", "--workers", "1", "--data", str(tmp_path), "--json")
        process = await start_holdfast(*words, **env)
        assert process.stdout is not None
        facts = json.loads(await asyncio.wait_for(process.stdout.readline(), 60))
        async with httpx2.AsyncClient(base_url=facts["url"]) as client:
            answers = [
                (await client.get("/healthz", headers={"X-Forwarded-For": f"192.0.2.{n}"})).status_code
                for n in range(9)
            ]
        process.terminate()
        _, errors = await process.communicate()

        assert "holdfast: warning: mail: no mail server" in errors.decode()
        assert 429 in answers


async def test_an_operator_makes_the_first_administrator(
    api: httpx2.AsyncClient, own_engines: dict[str, str], tmp_path: Path
) -> None:
    """Without it no one could create a show on an empty database."""
    email, password = f"{secrets.token_hex(6)}@office.example", "a long enough password"
    adding = ("account", "add", email, "--role", "organiser", "--name", "Ada", "--data", str(tmp_path))

    added = await run_holdfast(*adding, **own_engines)
    again = await run_holdfast(*adding, **own_engines)
    token = added.output.strip().rpartition("/link/")[2]
    chosen = {"token": token, "new_password": password}
    for status in (200, 410):  # the link works once
        assert (await api.post("/api/v1/auth/reset-password", json=chosen)).status_code == status
    changed = await run_holdfast("account", "role", email, "admin", "--data", str(tmp_path), **own_engines)
    unknown = await run_holdfast("account", "role", email, "boss", "--data", str(tmp_path), **own_engines)
    signed_in = await api.post("/api/v1/auth/login", json={"email": email, "password": password})

    assert (added.code, changed.code) == (0, 0), (added, changed)
    assert f"http://127.0.0.1:8000/link/{token}" in added.output
    assert_one_sentence(again, email)
    assert_one_sentence(unknown, "choose from fan, organiser, gate, admin")
    assert signed_in.json()["account"]["role"] == "admin"


class TestTheDemo:
    async def test_it_refuses_a_database_with_a_real_organiser(
        self, tmp_path: Path, own_engines: dict[str, str], empty_database: str
    ) -> None:
        """Its administrator has a published password, and its shows cannot be deleted again."""
        env = {**own_engines, "HOLDFAST_DATABASE_URL": empty_database}
        assert (await run_holdfast("migrate", "--data", str(tmp_path), **env)).code == 0
        connection = await asyncpg.connect(empty_database)
        await connection.execute(
            "INSERT INTO account (email, name, role) VALUES ('ola@real.example', 'Ola', 'organiser')"
        )

        ended = await run_holdfast("demo", "--port", "0", "--data", str(tmp_path), **env)
        accounts = await connection.fetchval("SELECT count(*) FROM account")
        await connection.close()

        assert_one_sentence(ended, "holds data that is not the demo's", "unset HOLDFAST_DATABASE_URL")
        assert accounts == 1


def addresses_listening_on(port: int) -> set[str]:
    """IPv4 addresses from the kernel's table of sockets."""
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *_ = line.split()
        address, _, number = local.partition(":")
        if state == "0A" and int(number, 16) == port:
            found.add(socket.inet_ntoa(bytes.fromhex(address)[::-1]))
    return found
