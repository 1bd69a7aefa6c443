"""Responses stored under an Idempotency-Key, in the real ledger; retryable ones are not stored."""

import asyncio
import secrets

import pytest
from starlette.responses import Response

from holdfast.engines.errors import EngineDown
from holdfast.engines.postgres import Postgres, require_row
from holdfast.errors import KeyReused, StillProcessing
from holdfast.web.idempotency import DEAD_AFTER_S, IdempotencyKeys, KeyUse, purge_keys
from holdfast.web.responses import answer


@pytest.fixture
def keys(postgres: Postgres) -> IdempotencyKeys:
    return IdempotencyKeys(postgres)


@pytest.fixture
def use() -> KeyUse:
    return a_use(secrets.token_hex(8))


def a_use(key: str, sent: bytes = b"{}") -> KeyUse:
    return KeyUse.of(key.encode(), caller="account 7", route="POST /x", sent=sent)


class Call:
    """A call that counts how often it was made, and waits to be released."""

    def __init__(self, response: Response | None = None, error: Exception | None = None) -> None:
        self.times = 0
        self.has_begun, self.goes_on = asyncio.Event(), asyncio.Event()
        self.goes_on.set()
        self._response = response or answer(201, {"made": True})
        self._error = error

    async def __call__(self) -> Response:
        self.times += 1
        self.has_begun.set()
        await self.goes_on.wait()
        if self._error is not None:
            raise self._error
        return self._response


async def aged(postgres: Postgres, use: KeyUse, seconds: float) -> None:
    """Turn the clock of this key: it was started so much earlier."""
    sql = "UPDATE idempotent_response SET started_at = started_at - $2 * interval '1 s' WHERE key_hash = $1"
    await postgres.execute(sql, use.key_hash, seconds)


async def test_a_stored_answer_is_returned_unchanged(keys: IdempotencyKeys, use: KeyUse) -> None:
    call = Call(answer(201, {"made": True}, {"Location": "/x/1"}))
    first = await keys.once(use, call)
    second = await keys.once(use, call)

    assert call.times == 1
    assert second.status_code == first.status_code
    assert second.body == first.body
    assert second.headers["location"] == "/x/1"
    assert second.headers["idempotency-replayed"] == "true"


async def test_nothing_of_an_answer_can_be_read_in_the_table(
    keys: IdempotencyKeys, postgres: Postgres, use: KeyUse
) -> None:
    await keys.once(use, Call(answer(200, {"refresh_token": "very-secret"})))
    found = await postgres.fetchrow("SELECT * FROM idempotent_response WHERE key_hash = $1", use.key_hash)
    row = require_row(found)

    assert b"very-secret" not in row["answer"]


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_a_retryable_response_is_not_stored(keys: IdempotencyKeys, use: KeyUse, status: int) -> None:
    call = Call(answer(status, {}))
    await keys.once(use, call)
    await keys.once(use, call)

    assert call.times == 2


async def test_a_call_that_found_an_engine_down_runs_again(keys: IdempotencyKeys, use: KeyUse) -> None:
    down, up = Call(error=EngineDown("holds")), Call()
    with pytest.raises(EngineDown):
        await keys.once(use, down)

    assert (await keys.once(use, up)).status_code == 201
    assert up.times == 1


async def test_a_caller_that_gives_up_releases_the_key_to_the_next(
    keys: IdempotencyKeys, use: KeyUse
) -> None:
    slow = Call()
    slow.goes_on.clear()
    first = asyncio.create_task(keys.once(use, slow))
    await slow.has_begun.wait()
    first.cancel()
    await asyncio.wait([first])

    assert (await keys.once(use, Call())).status_code == 201


async def test_the_second_waits_for_the_first(keys: IdempotencyKeys, use: KeyUse) -> None:
    slow, never = Call(), Call()
    slow.goes_on.clear()
    first = asyncio.create_task(keys.once(use, slow))
    await slow.has_begun.wait()
    second = asyncio.create_task(keys.once(use, never))
    await asyncio.sleep(0.1)
    slow.goes_on.set()

    assert (await first).body == (await second).body
    assert never.times == 0


async def test_another_body_does_not_wait_to_be_refused(keys: IdempotencyKeys) -> None:
    name = secrets.token_hex(8)
    slow = Call()
    slow.goes_on.clear()
    first = asyncio.create_task(keys.once(a_use(name), slow))
    await slow.has_begun.wait()

    with pytest.raises(KeyReused):
        await keys.once(a_use(name, b"[]"), Call())
    slow.goes_on.set()
    await first


async def test_a_caller_that_waits_too_long_gets_retry_after(postgres: Postgres, use: KeyUse) -> None:
    keys = IdempotencyKeys(postgres, wait_s=0.2)
    slow = Call()
    slow.goes_on.clear()
    first = asyncio.create_task(keys.once(use, slow))
    await slow.has_begun.wait()

    with pytest.raises(StillProcessing):
        await keys.once(use, Call())
    slow.goes_on.set()
    await first


async def test_one_takes_over_from_an_attempt_that_died(
    keys: IdempotencyKeys, postgres: Postgres, use: KeyUse
) -> None:
    dead = Call()
    dead.goes_on.clear()
    first = asyncio.create_task(keys.once(use, dead))
    await dead.has_begun.wait()
    await aged(postgres, use, DEAD_AFTER_S + 1)

    heir = Call(answer(201, {"made": "by the heir"}))
    answers = await asyncio.gather(*(keys.once(use, heir) for _ in range(10)))

    assert heir.times == 1
    assert len({bytes(one.body) for one in answers}) == 1

    dead.goes_on.set()  # it was only very slow; its answer comes too late to be stored
    await first
    assert (await keys.once(use, Call())).body == answers[0].body


async def test_keys_are_forgotten_after_a_day(keys: IdempotencyKeys, postgres: Postgres, use: KeyUse) -> None:
    young = a_use(secrets.token_hex(8))
    await keys.once(use, Call())
    await keys.once(young, Call())
    await aged(postgres, use, 24 * 3600 + 1)

    assert await purge_keys(postgres, 24) >= 1

    again, still = Call(), Call()
    await keys.once(use, again)
    await keys.once(young, still)
    assert (again.times, still.times) == (1, 0)
