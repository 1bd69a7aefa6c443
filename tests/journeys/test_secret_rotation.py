"""Secrets in files are changed while the box office serves: no request fails, and no process is restarted by
a person (R31)."""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import asyncpg
import httpx2
import pytest
from redis.asyncio import Redis as Client

from holdfast.config import Config
from holdfast.payments.gateways.sandbox import ACCOUNT
from holdfast.sandbox.webhook import HEADER, signature, webhook_body
from tests.support.box_office import running as running_office
from tests.support.redis_servers import Server, make_server, running
from tests.support.second_ledger import administration
from tests.support.wait import until

ROLES = ("rotating_a", "rotating_b")


@dataclass
class Site:
    """`holdfast serve` with one worker, whose secrets are files."""

    folder: Path
    valkey: Server
    database_urls: tuple[str, str]
    log: Path
    url: str = ""

    @property
    def worker(self) -> int:
        return int((self.folder / "data" / "run" / "web-1.pid").read_text())

    def write(self, **values: str) -> None:
        """In one step, as a secret manager does."""
        for name, value in values.items():
            draft = self.folder / f"{name}.draft"
            draft.write_text(value + "\n")
            draft.rename(self.folder / name)

    def redis_url(self, password: str) -> str:
        return f"redis://:{password}@127.0.0.1:{self.valkey.port}/0"

    async def is_replaced(self, after: int) -> bool:
        return "was replaced" in self.log.read_text() and self.worker != after

    async def says(self, words: str) -> bool:
        return words in self.log.read_text()


@pytest.fixture
async def site(config: Config, tmp_path: Path) -> AsyncIterator[Site]:
    valkey = make_server(tmp_path, "valkey")
    async with running(valkey), _roles(config.database_url) as urls:
        await valkey.call("ACL", "SETUSER", "default", "resetpass", ">first")
        site = Site(tmp_path, valkey, urls, tmp_path / "serve.log")
        site.write(database_url=urls[0], redis_url=site.redis_url("first"), gateway_secret="old-secret")
        env: Mapping[str, int | str] = {
            "database_url_file": str(tmp_path / "database_url"),
            "redis_url_file": str(tmp_path / "redis_url"),
            "gateway_secret_file": str(tmp_path / "gateway_secret"),
            "gateway": "sandbox",
            "gateway_url": "http://127.0.0.1:9",
        }
        words = ("serve", "--port", "0", "--workers", "1", "--data", str(tmp_path / "data"), "--json")
        async with running_office(site.log, words, env) as facts:
            site.url = facts["url"]
            yield site


@asynccontextmanager
async def _roles(database_url: str) -> AsyncIterator[tuple[str, str]]:
    """The ledger as two accounts that own the same."""
    async with administration(database_url) as connection:
        for role in ROLES:
            await connection.execute(f"CREATE ROLE {role} LOGIN SUPERUSER")
    begin, _, rest = database_url.partition("://")
    place = rest.rpartition("@")[2]
    yield (f"{begin}://{ROLES[0]}@{place}", f"{begin}://{ROLES[1]}@{place}")
    async with administration(database_url) as connection:
        await connection.execute(f"DROP ROLE {', '.join(ROLES)}")


async def test_every_secret_of_a_file_is_changed_without_a_failed_request(site: Site) -> None:
    """A wrong one first: it changes nothing, and is reported."""
    first = site.worker
    site.write(redis_url=site.redis_url("wrong"))
    await until(lambda: site.says("the processes keep their secrets"), within_s=60)
    assert site.worker == first
    assert "wrong" not in site.log.read_text()

    answers: Counter[int] = Counter()
    async with httpx2.AsyncClient(base_url=site.url, timeout=10) as api:
        buying = asyncio.create_task(_ask_on(api, answers))
        before = [await _notify(api, secret) for secret in ("old-secret", "new-secret")]
        await _add_password(site, "second")
        site.write(
            database_url=site.database_urls[1],
            redis_url=site.redis_url("second"),
            gateway_secret="new-secret,old-secret",
        )
        await until(partial(site.is_replaced, first), within_s=60)
        after = [await _notify(api, secret) for secret in ("old-secret", "new-secret")]
        ready = (await api.get("/readyz")).json()
        buying.cancel()

    assert before == [200, 400]
    assert after == [200, 200]
    assert set(answers) == {200}, answers
    assert answers[200] > 10
    assert ready["status"] == "ready", ready
    assert await _accounts_of(site) == {ROLES[1]}


async def _ask_on(api: httpx2.AsyncClient, answers: Counter[int]) -> None:
    """One request after the other, each over a connection of its own: the kernel deals them out."""
    while True:
        answer = await api.get("/api/v1/events", headers={"Connection": "close"})
        answers[answer.status_code] += 1


async def _notify(api: httpx2.AsyncClient, secret: str) -> int:
    """The status for a webhook that is signed with it and is about a payment that we do not know."""
    at = int(time.time())
    body = webhook_body(secrets.token_hex(8), "payment.captured", ACCOUNT, at, {})
    headers = {HEADER: signature([secret.encode()], body, at)}
    return (await api.post("/webhooks/sandbox", content=body, headers=headers)).status_code


async def _add_password(site: Site, password: str) -> None:
    """As docs/operating/secrets.md says: a user of Valkey may have two."""
    async with Client.from_url(site.redis_url("first")) as client:
        words = ("ACL", "SETUSER", "default", f">{password}")
        await client.execute_command(*words)  # type: ignore[no-untyped-call]


async def _accounts_of(site: Site) -> set[str]:
    """Which of the two are in use; applications of other tests use a third on the same server."""
    connection = await asyncpg.connect(site.database_urls[1])
    try:
        rows = await connection.fetch(
            "SELECT DISTINCT usename FROM pg_stat_activity"
            " WHERE application_name = 'holdfast' AND usename = ANY ($1)",
            list(ROLES),
        )
    finally:
        await connection.close()
    return {row["usename"] for row in rows}
