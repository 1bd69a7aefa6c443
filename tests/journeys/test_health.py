"""Health checks report the true state of a process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2 as httpx

from holdfast.app import App
from holdfast.config import Config
from holdfast.engines.postgres import Postgres, Transaction
from holdfast.web.asgi import Application
from holdfast.web.audiences import DOCUMENTS
from tests.conftest import started
from tests.support.cli_process import free_port, serve_holdfast
from tests.support.restorable_ledger import restorable_ledger
from tests.support.wait import until


async def test_a_serving_process_reports_ready(api: httpx.AsyncClient) -> None:
    alive, ready = await api.get("/healthz"), await api.get("/readyz")

    assert (alive.status_code, alive.json()) == (200, {"status": "alive"})
    assert ready.status_code == 200
    assert ready.json() == {"status": "ready", "ledger": "up", "holds": "up", "migrations": "done"}
    assert ready.headers["cache-control"] == "no-store"


async def test_every_answer_is_counted(api: httpx.AsyncClient) -> None:
    await api.get("/healthz")
    numbers = await api.get("/metrics")

    assert numbers.headers["content-type"].startswith("text/plain; version=")
    assert 'holdfast_http_answers_total{route="get_healthz",status="200"}' in numbers.text
    assert 'holdfast_http_seconds_count{route="get_healthz"}' in numbers.text


async def test_the_front_page_is_for_people_and_leads_to_the_reference(api: httpx.AsyncClient) -> None:
    front = await api.get("/", follow_redirects=True)
    documents = [await api.get(about.path) for about in DOCUMENTS.values()]

    assert front.status_code == 200
    assert 'href="/docs"' in front.text
    assert [document.json()["openapi"] for document in documents] == ["3.1.0"] * 3


class CountedPostgres(Postgres):
    """Counts how often a connection is taken."""

    leases = 0

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[Transaction]:
        self.leases += 1
        async with super().lease() as connection:
            yield connection


async def test_many_probes_share_one_look_at_the_engines(app: App, config: Config) -> None:
    """/readyz is open to the public: it must not be a way to keep the ledger busy."""
    counted = CountedPostgres(config.database_url, pool_max=2, timeout_s=5)

    @asynccontextmanager
    async def opened() -> AsyncIterator[App]:
        yield replace(app.catalogue_home, postgres=counted)

    application = Application(opened, ())
    try:
        async with started(application):
            transport = httpx.ASGITransport(application)
            async with httpx.AsyncClient(transport=transport, base_url="http://box.office") as client:
                answers = await asyncio.gather(*(client.get("/readyz") for _ in range(50)))
    finally:
        await counted.close()

    assert {answer.status_code for answer in answers} == {200}
    assert counted.leases == 1


async def watch(
    address: str, folder: Path, env: dict[str, str]
) -> tuple[httpx.Response, httpx.Response, dict[str, Any]]:
    """The probes of a worker and the facts it printed, once its gauge is there."""
    async with (
        serve_holdfast("work", "--only", "audit", "--data", str(folder), **env) as facts,
        httpx.AsyncClient(base_url=f"http://{address}") as client,
    ):
        alive, ready = await client.get("/healthz"), await client.get("/readyz")

        async def has_gauge() -> bool:
            return "holdfast_oversold_seats 0.0" in (await client.get("/metrics")).text

        await until(has_gauge)
        return alive, ready, facts


async def test_a_worker_on_a_machine_of_its_own_can_be_watched(tmp_path: Path, config: Config) -> None:
    """Gauges of what people must look at exist only in the process that does the jobs."""
    address = f"127.0.0.1:{free_port()}"
    # Its own ledger: the gauge appears when every open sale has been checked, and other tests open many.
    async with restorable_ledger(config, tmp_path) as ledger:
        env = {
            "HOLDFAST_DATABASE_URL": ledger.config.database_url,
            "HOLDFAST_REDIS_URL": ledger.config.redis_url,
            "HOLDFAST_GATEWAY": "none",
            "HOLDFAST_WORK_ADDRESS": address,
        }
        alive, ready, facts = await watch(address, tmp_path, env)

    assert (alive.status_code, ready.status_code) == (200, 200)
    assert facts["health"] == f"http://{address}/healthz"
