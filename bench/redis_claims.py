"""The batched claim against what redis-benchmark gets out of the same server with the same script."""

import asyncio
import shutil
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import msgspec

from bench.environment import Stage, stage
from bench.figure import Figure
from holdfast.claim import Blueprint, Claimed, ClaimRequest, Claims, pool_keys
from holdfast.claim.store import CLAIM

UNITS = 1_000  # of the pool: more than are claimed at any moment
CLAIMS = 100_000
BATCH = 128
PIPELINE = 16
CONNECTIONS = 64
LIFE_MS = 2  # a claim lapses soon, so that the pool never fills and every call claims

Say = Callable[[str], None]


async def claim_figures(rounds: int, say: Say) -> list[Figure]:
    if not shutil.which("redis-benchmark"):
        say("no redis-benchmark on this machine: the claim is not compared")
        return []
    figure = Figure("claims in batches", "claims/s", "redis-benchmark, pipelined, same script", 0.80)
    async with stage() as on:
        for i in range(rounds):
            say(f"claims, round {i + 1} of {rounds}")
            await build(on, 2 * i)
            theirs = await benchmarked(on, 2 * i)
            await build(on, 2 * i + 1)
            figure.add(await batched(on, 2 * i + 1), theirs)
    return [figure]


async def build(on: Stage, pool_id: int) -> None:
    blueprint = Blueprint(1, b"A" * UNITS, -1, 10**9, [], {}, {"name": b"bench"})
    assert await on.app.claims.build(pool_id, blueprint)


async def batched(on: Stage, pool_id: int) -> float:
    """Batches of claims of any two units each, one script call a batch."""
    claims = Claims(on.app.redis)
    wishes = [ClaimRequest(f"~{i:x}", i % 1000, LIFE_MS, UNITS, (), 1, UNITS, 2) for i in range(CLAIMS)]
    began = time.perf_counter()
    for start in range(0, CLAIMS, BATCH):
        outcomes = await claims.claim_many(pool_id, wishes[start : start + BATCH])
        assert all(isinstance(outcome, Claimed) for outcome in outcomes)
    return CLAIMS / (time.perf_counter() - began)


async def benchmarked(on: Stage, pool_id: int) -> float:
    """One claim a call; redis-benchmark puts a random number wherever it finds __rand_int__."""
    # Without a zero in it: redis-benchmark reads its last argument as text.
    wish = [("~__rand_int__", 1, LIFE_MS, UNITS, (), 1, UNITS, 2)]
    async with on.app.redis.lease() as link:
        run_id = link.run_id
        await link.call("SCRIPT", "LOAD", CLAIM.source)
    packed = msgspec.msgpack.encode(wish)
    command = ["redis-benchmark", "-s", urlsplit(on.config.redis_url).path, "-c", str(CONNECTIONS)]
    command += ["-P", str(PIPELINE), "-n", str(CLAIMS), "-r", str(10**9), "--csv", "-x"]
    command += ["EVALSHA", CLAIM.sha, "5", *pool_keys(pool_id), run_id]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate(packed)
    return float(output.decode().strip().splitlines()[-1].split(",")[1].strip('"'))
