"""Claims in batches, and through the library's front, against redis-benchmark with the same script."""

import asyncio
import time
from urllib.parse import urlsplit

import msgspec

from bench.environment import Environment, start_environment
from bench.errors import require, require_program
from bench.figure import Figure
from bench.session import Session
from holdfast.claim import Blueprint, Claimed, ClaimRequest, Claims, connect, pool_keys
from holdfast.claim.store import CLAIM

UNITS = 1_000  # of the pool: more than are claimed at any moment
CLAIMS = 100_000
BATCH = 128
PIPELINE = 16
CONNECTIONS = 64
TTL_MS = 2  # a claim expires at once, so that the pool never fills and every call succeeds
CALLERS = 1_000  # tasks of one process that use the front
# redis-benchmark replaces __rand_int__ by a random number. An id with ~ is never sent again, and is not
# stored; those of the front are stored, so that it can repeat a request whose reply was lost.
UNIQUE_ID, REPEATABLE_ID = "~__rand_int__", "__rand_int__"


async def measure_claims(session: Session) -> list[Figure]:
    reference = "redis-benchmark, pipelined, same script"
    batches = Figure("claims in batches", "claims/s", reference, 0.80)
    front = Figure("claims through Pool.claim_any", "claims/s", f"{reference} and kind of id", 0.90)
    async with start_environment() as env:
        async for attempt in session.repeat(batches, front):
            session.report(f"claims, attempt {attempt + 1}")
            pool_ids = range(4 * attempt, 4 * attempt + 4)
            for pool_id in pool_ids:
                await build_pool(env, pool_id)
            theirs = await run_redis_benchmark(env, pool_ids[0], UNIQUE_ID)
            batches.add(await claim_in_batches(env, pool_ids[1]), theirs)
            theirs = await run_redis_benchmark(env, pool_ids[2], REPEATABLE_ID)
            front.add(await claim_through_front(env, pool_ids[3]), theirs)
    return [batches, front]


async def build_pool(env: Environment, pool_id: int) -> None:
    blueprint = Blueprint(1, b"A" * UNITS, -1, 10**9, [], {}, {"name": b"bench"})
    require(bool(await env.app.claims.build(pool_id, blueprint)), "the pool was not built")


async def claim_in_batches(env: Environment, pool_id: int) -> float:
    """Claims per second of any two units, one script call per batch."""
    claims = Claims(env.app.redis)
    wishes = [ClaimRequest(f"~{i:x}", i % 1000, TTL_MS, UNITS, (), 1, UNITS, 2) for i in range(CLAIMS)]
    began = time.perf_counter()
    for start in range(0, CLAIMS, BATCH):
        outcomes = await claims.claim_many(pool_id, wishes[start : start + BATCH])
        require(all(isinstance(outcome, Claimed) for outcome in outcomes), "a claim was refused")
    return CLAIMS / (time.perf_counter() - began)


async def claim_through_front(env: Environment, pool_id: int) -> float:
    """Claims per second of many callers at once, each awaiting its own claim, as a program would."""
    async with connect(env.config.redis_url, prefix="") as pools:
        pool = await pools.open(pool_id, size=UNITS)
        left = iter(range(CLAIMS))

        async def claim_repeatedly(owner: int) -> None:
            for _ in left:
                outcome = await pool.claim_any(2, owner=owner, ttl_s=TTL_MS / 1000, first=1)
                require(isinstance(outcome, Claimed), "a claim was refused")

        began = time.perf_counter()
        await asyncio.gather(*(claim_repeatedly(owner) for owner in range(CALLERS)))
        return CLAIMS / (time.perf_counter() - began)


async def run_redis_benchmark(env: Environment, pool_id: int, claim_id: str) -> float:
    """Claims per second, one per call."""
    # Without a zero byte in it: redis-benchmark reads its last argument as text.
    wish = [(claim_id, 1, TTL_MS, UNITS, (), 1, UNITS, 2)]
    _, run_id = await env.app.redis.call_with_run_id("SCRIPT", "LOAD", CLAIM.source)
    packed = msgspec.msgpack.encode(wish)
    command = [
        require_program("redis-benchmark"),
        "-s",
        urlsplit(env.config.redis_url).path,
        "-c",
        str(CONNECTIONS),
    ]
    command += ["-P", str(PIPELINE), "-n", str(CLAIMS), "-r", str(10**9), "--csv", "-x"]
    command += ["EVALSHA", CLAIM.sha, "5", *pool_keys(pool_id), run_id]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate(packed)
    require(process.returncode == 0 and bool(output), f"redis-benchmark ended with {process.returncode}")
    return float(output.decode().strip().splitlines()[-1].split(",")[1].strip('"'))
