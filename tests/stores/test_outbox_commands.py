"""Operators list consumer groups and replay facts with `holdfast facts` (R28)."""

import asyncio
import json
from typing import Any

import pytest

from holdfast.app import App
from tests.support.box_office import clean, started
from tests.support.fact_recorder import FactRecorder, relayed, turns_are_free
from tests.support.own_engines import Stage, hold
from tests.support.show_fixture import Till, an_owner


@pytest.fixture
def app(stage: Stage) -> App:
    return stage.app


@pytest.fixture
async def till(stage: Stage) -> Till:
    return await stage.till(20)


@pytest.fixture
async def reader(app: App) -> FactRecorder:
    await turns_are_free(app)
    return await FactRecorder(app).open()


async def facts(app: App, *words: str) -> tuple[int, str, str]:
    env = {"HOLDFAST_DATABASE_URL": app.config.database_url, "HOLDFAST_REDIS_URL": app.config.redis_url}
    process = await started(
        *("-m", "holdfast", "facts", *words),
        env={**clean(), **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    return process.returncode or 0, output.decode(), errors.decode()


async def group_of(app: App, reader: FactRecorder) -> dict[str, Any]:
    [found] = [row for row in await app.outbox.groups() if row["name"] == reader.group]
    return found


@pytest.mark.parametrize("of_all", [False, True])
async def test_a_dead_fact_is_shown_and_tried_again(
    app: App, till: Till, reader: FactRecorder, of_all: bool
) -> None:
    """Of one group, or of all: `holdfast facts retry`, as the doctor says it."""
    booking = await hold(app, till.show, an_owner(), 1)
    reader.fails = lambda _fact: True
    await relayed(app)
    for _ in range(reader.tries_max):
        await reader.consume()
        await reader.retry_now()
    assert (await group_of(app, reader))["dead"] == 1

    _code, output, _ = await facts(app, "dead", "--group", reader.group, "--json")
    [dead] = json.loads(output)
    _code, shown, _ = await facts(app, "groups")
    code, output, _ = await facts(app, "retry", *([] if of_all else ["--group", reader.group]))
    reader.fails = lambda _fact: False
    await reader.consume()

    assert (dead["fact"]["kind"], dead["reason"]) == ("booking.held", "ValueError('not today')")
    assert f"{reader.group}: " in shown
    assert (code, output) == (0, "1 will be tried again\n")
    assert reader.of(booking.number) == ["booking.held"]
    assert (await group_of(app, reader))["dead"] == 0


async def test_facts_are_listed_and_delivered_again(app: App, till: Till, reader: FactRecorder) -> None:
    await till.opened(1)
    await till.opened(2, price_minor=0)
    await relayed(app)
    await reader.consume()
    first = reader.ids[0]

    _code, listed, _ = await facts(app, "list", "--from", str(first), "--kind", "booking.confirmed")
    code, output, _ = await facts(app, "replay", "--group", reader.group, "--from", str(first))
    await reader.consume()

    assert [json.loads(line)["kind"] for line in listed.splitlines()] == ["booking.confirmed"]
    assert (code, output) == (0, "3 facts will be delivered again\n")
    assert len(reader.received) == 6
    at = reader.received[0].at
    assert await app.outbox.first_since(at) == first


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("replay", "--group", "unknown", "--from", "1"), "no group|are gone"),
        (("replay", "--group", "unknown", "--from", "yesterday"), "neither the number of a fact nor a time"),
        (("forget", "--group", "unknown"), "no such group"),
    ],
)
async def test_an_impossible_command_fails_with_a_one_line_message(
    app: App, till: Till, words: tuple[str, ...], why: str
) -> None:
    code, output, errors = await facts(app, *words)

    assert (code, output) == (2, "")
    assert any(part in errors for part in why.split("|")), errors
    assert len(errors.strip().splitlines()) == 1


async def test_a_group_that_is_forgotten_keeps_nothing(app: App, reader: FactRecorder) -> None:
    assert (await facts(app, "forget", "--group", reader.group))[0] == 0

    assert reader.group not in {row["name"] for row in await app.outbox.groups()}
