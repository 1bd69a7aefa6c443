"""A rehearsal against real processes: it names the bottleneck that was planted, and cleans up (R38)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.box_office import Office, office, running
from tests.support.cli_process import CommandResult, run_holdfast
from tests.support.cuttable_link import a_line
from tests.support.gateway_state import bank_of

SLOW_S = 3.0
FAR_S = 0.02
SMALL = ("--level-s", "1", "--accounts", "6", "--purchases", "600", "--json")


@pytest.fixture(scope="module")
async def one_worker() -> AsyncIterator[Office]:
    async with office(web=1) as opened:
        yield opened


async def a_large_show(house: Office) -> int:
    return await house.a_show(seats=1000, owner_seats_max=1000)


async def rehearse(url: str, show: int, *words: str) -> tuple[CommandResult, dict[str, Any]]:
    ended = await run_holdfast("rehearse", "--url", url, "--show", str(show), *SMALL, *words)
    assert ended.code in (0, 1), ended
    return ended, ended.page


async def count_accounts(house: Office) -> int:
    query = "SELECT count(*)::int FROM account WHERE email LIKE 'rehearsal-%'"
    return int(await house.app.postgres.fetchval(query))


@pytest.mark.busy
async def test_a_slow_gateway_is_named_and_is_a_no_go(one_worker: Office) -> None:
    show = await a_large_show(one_worker)
    async with bank_of(one_worker.app.config) as bank:
        await bank.behaves(slow=1.0, slow_s=SLOW_S)

        ended, page = await rehearse(one_worker.url, show, "--first", "8", "--at-once", "8")

        await bank.behaves(slow=0.0)

    assert page["bottleneck"]["name"] == "gateway", ended.output
    assert (page["go"], ended.code) == (False, 1)
    assert page["purchases_per_s"] <= 8 / SLOW_S
    assert "are wanted" in page["reasons"][0]


@pytest.mark.busy
async def test_one_web_worker_is_named(one_worker: Office) -> None:
    """After the test above: connections that are new wait for their first plans, as if they were too few."""
    show, load = await a_large_show(one_worker), ("--first", "16", "--at-once", "32")

    ended, page = await rehearse(one_worker.url, show, *load, "--admit-per-s", "0.1")

    assert page["bottleneck"]["name"] == "web workers", ended.output
    assert (page["go"], ended.code) == (True, 0), page
    assert page["safe_admission_per_s"] > 0.1
    assert page["left"] == []
    assert await count_accounts(one_worker) == 0
    await one_worker.settled()


@pytest.mark.busy
async def test_a_small_pool_is_named(one_worker: Office, tmp_path: Path) -> None:
    """A ledger in another place, 20 ms away: two connections are too few for it."""
    config, show = one_worker.app.config, await a_large_show(one_worker)
    async with a_line(config) as line:
        line.delay_s = FAR_S
        settings: dict[str, int | str] = {
            "database_url": line.config.database_url,
            "redis_url": config.redis_url,
            "gateway": "sandbox",
            "gateway_url": config.gateway_url,
            "gateway_secret": config.gateway_secret,
            "postgres_pool_max": 2,
        }
        words = ("serve", "--port", "0", "--workers", "1", "--data", str(tmp_path / "data"), "--json")
        async with running(tmp_path / "serve.log", words, settings) as facts:
            ended, page = await rehearse(facts["url"], show, "--first", "32", "--at-once", "32")

    assert page["bottleneck"]["name"] == "database pool", ended.output


async def test_an_organiser_makes_a_show_and_it_is_gone_afterwards(stage: Office) -> None:
    password = "a-long-password-of-a-test"
    email = "alice@rehearsal.example"
    words = ("--role", "organiser", "--password-stdin", "--data", str(stage.folder.path))
    added = await run_holdfast("account", "add", email, *words, stdin=f"{password}\n")
    assert added.code == 0, added
    await stage.a_show()  # with it comes a city

    ended = await run_holdfast(
        *("rehearse", "--url", stage.url, "--organiser", email, "--first", "2", "--at-once", "2"),
        *("--level-s", "0.3", "--accounts", "2", "--purchases", "20", "--json"),
        REHEARSAL_PASSWORD=password,
    )

    assert ended.code in (0, 1), ended
    page = ended.page
    assert page["purchases_per_s"] > 0, page
    assert page["left"], page
    public = await stage.api.get("/api/v1/search", params={"q": "Rehearsal"})
    assert "not a real show" not in public.text
    sold = "SELECT count(*)::int FROM booking b JOIN show s ON s.id = b.show_id"
    sold += " JOIN event e ON e.id = s.event_id WHERE e.title LIKE 'Rehearsal%' AND b.state = 'confirmed'"
    assert await stage.app.postgres.fetchval(sold) == 0


class TestRefusals:
    @pytest.mark.parametrize(
        ("words", "reason"),
        [
            (("--url", "http://example.com", "--show", "1"), "example.com is another machine"),
            (("--url", "ftp://127.0.0.1", "--show", "1"), "--url ftp://127.0.0.1: use for example"),
            (("--url", "http://127.0.0.1:9", "--show", "1"), "http://127.0.0.1:9 is not ready"),
            (("--url", "http://127.0.0.1:9"), "give either --show, or --organiser"),
            (("--url", "http://127.0.0.1:9", "--show", "1", "--at-once", "0"), "--at-once 0: must be"),
        ],
    )
    async def test_each_is_one_line(self, words: tuple[str, ...], reason: str) -> None:
        ended = await run_holdfast("rehearse", *words)

        assert (ended.code, ended.output) == (2, "")
        assert ended.words.startswith(f"holdfast: {reason}"), ended.words
        assert len(ended.words.splitlines()) == 1

    async def test_a_gateway_that_is_not_the_sandbox(self) -> None:
        """Webhooks of the sandbox are not known there: that is how it is recognised."""

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            status = b"200 OK" if head.startswith(b"GET /readyz") else b"404 Not Found"
            writer.write(b"HTTP/1.1 %s\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}" % status)
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            ended = await run_holdfast("rehearse", "--url", f"http://127.0.0.1:{port}", "--show", "1")

        assert ended.code == 2
        assert "does not use the sandbox gateway" in ended.words
