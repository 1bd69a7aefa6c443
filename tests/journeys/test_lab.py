"""The most important cells of docs/lab.md, forced: every step waits for the one before it (R42)."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.config import Config
from lab.contest.duel import Arena, DuelResult, run_duel
from lab.contest.faults import SCENARIOS, Scenario, why_not
from lab.contest.processes import start_processes
from lab.contest.servers import start_servers
from lab.contest.shows import open_shows

SEATS = 1  # per point at which clients are stopped


@pytest.fixture(scope="module")
async def arena(config: Config, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Arena]:
    folder: Path = tmp_path_factory.mktemp("lab")
    async with (
        start_servers(folder, database_url=config.database_url) as servers,
        open_shows(servers) as shows,
        start_processes(4) as processes,
    ):
        yield Arena(servers, shows, processes, SEATS, early_seats=2, rivals_s=0.2)


def render(result: DuelResult) -> str:
    return "\n".join(f"{note.at_s:.4f} {note.who}: {note.text}" for note in result.log)


async def test_check_then_write_sells_every_seat_twice_without_any_fault(arena: Arena) -> None:
    found = await run_duel(arena, "naive", "race")

    assert found.verdict.double_sales == SEATS, render(found)


@pytest.mark.parametrize("strategy", ["redis_lock", "redlock"])
async def test_a_lock_in_redis_without_a_fence_sells_twice_after_a_pause(arena: Arena, strategy: str) -> None:
    found = await run_duel(arena, strategy, "pause")

    assert found.verdict.double_sales >= SEATS, render(found)


async def test_a_fence_in_the_write_refuses_the_client_that_was_stopped(arena: Arena) -> None:
    found = await run_duel(arena, "redis_fence", "pause")

    assert found.verdict.double_sales == 0, render(found)


async def test_a_hold_that_only_redis_has_is_lost_with_redis(arena: Arena) -> None:
    found = await run_duel(arena, "seat_keys_unique", "flushed")

    assert (found.verdict.double_sales, found.verdict.lost_holds) == (0, 2 * SEATS), render(found)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_holdfast_sells_no_seat_twice_and_loses_no_hold(arena: Arena, scenario: Scenario) -> None:
    if reason := why_not(arena.servers, "holdfast", scenario):
        assert "CI" not in os.environ, reason
        return  # the clock of a server cannot be turned on this machine
    found = await run_duel(arena, "holdfast", scenario.name)

    verdict = found.verdict
    broken = (verdict.double_sales, verdict.lost_holds, verdict.lost_sales)
    assert broken == (0, 0, 0), render(found)
    assert verdict.sales > 0
    if not scenario.stops_clients:  # on a busy machine a rival may come too late for a seat that has lapsed
        assert verdict.sales == found.attacked, render(found)
