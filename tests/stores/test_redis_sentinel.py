"""A primary that Sentinels watch: found, lost, and found again elsewhere."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from holdfast.app import open_app
from holdfast.bookings import BookingState
from holdfast.config import Config
from holdfast.engines.errors import EngineDown, OperatorError
from holdfast.engines.open_redis import open_redis
from holdfast.engines.redis import Redis
from holdfast.engines.startup_checks import holds_facts
from holdfast.holds import SeatsTaken
from tests.support.engine_folder import engine_folder
from tests.support.own_engines import hold
from tests.support.redis_servers import HOST, Server, Watched, watched_servers
from tests.support.show_fixture import Till, an_owner
from tests.support.shows import a_show
from tests.support.wait import until


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    with engine_folder() as folder:
        async with watched_servers(folder) as servers:
            yield servers


async def run_id(redis: Redis) -> str:
    try:
        return (await redis.call_with_run_id("SET", "probe", "1"))[1]
    except EngineDown:
        return ""


async def test_the_sale_goes_on_at_the_new_primary_from_a_rebuilt_map(
    config: Config, watched: Watched
) -> None:
    facts = await holds_facts(watched.url)
    with pytest.raises(OperatorError, match="does not watch 'office'"):
        await holds_facts(watched.url.replace("/box/", "/office/"))
    async with open_app(replace(config, redis_url=watched.url)) as app:
        show = await a_show(app, 20)
        await hold(app, show, an_owner(), 4)
        first = await run_id(app.redis)
        await watched.sentinels[0].end()  # the first in the address: another one answers
        await watched.primary.end()

        meanwhile = await hold(app, show, an_owner(), 5)
        began = time.monotonic()
        await until(lambda: is_another(app.redis, first))
        print(f"written again {time.monotonic() - began:.1f} s after the primary was found dead")
        after = await hold(app, show, an_owner(), 6)

        assert "replicas: 1" in facts.version
        assert facts.faults == ()
        assert {meanwhile.state, after.state} == {BookingState.HELD}
        for seat in (4, 5, 6):
            with pytest.raises(SeatsTaken):
                await hold(app, show, an_owner(), seat)
        sale = await app.bookings.sale(show)
        assert sale is not None
        assert await app.claims.epoch(show) == (sale.epoch, True)
        assert await Till(app, show).violations() == []


async def is_named(watched: Watched, server: Server) -> bool:
    """By all Sentinels, as the primary."""
    question = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "box")
    named = [await sentinel.call(*question) for sentinel in watched.sentinels]
    return all(int(port) == server.port for _, port in named)


async def is_another(redis: Redis, first: str) -> bool:
    return await run_id(redis) not in ("", first)


async def test_a_demoted_primary_is_left_for_the_new_one(watched: Watched) -> None:
    """It lives on as a replica and refuses writes: links to it would fail as long as they last."""
    redis = open_redis(watched.url, links_max=4, timeout_s=1)
    try:
        first = await run_id(redis)
        await asyncio.gather(*(redis.call("GET", "probe") for _ in range(4)))
        await watched.sentinels[0].call("SENTINEL", "FAILOVER", "box")
        await until(lambda: is_named(watched, watched.replica))
        # Sentinels do this, too, within ten seconds.
        await watched.primary.call("REPLICAOF", HOST, watched.replica.port)
        await until(lambda: is_another(redis, first))

        assert await redis.call("GET", "probe") == b"1"
    finally:
        await redis.close()


async def test_without_sentinels_the_primary_that_was_named_last_is_used(watched: Watched) -> None:
    redis = open_redis(watched.url, links_max=1, timeout_s=1)
    try:
        first = await run_id(redis)
        for sentinel in watched.sentinels:
            await sentinel.end()
        await watched.primary.call("CLIENT", "KILL", "TYPE", "normal")

        await until(lambda: is_again(redis, first))
    finally:
        await redis.close()


async def is_again(redis: Redis, first: str) -> bool:
    return await run_id(redis) == first
