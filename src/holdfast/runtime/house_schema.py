"""The schema of home and of every pod, up to date.

    pods ─► home ─► what home publishes, and pods receive and guard

Pods first: PostgreSQL's replication stops at a column that home sends and the pod does not have. A pod that
is away is left behind; what home sends it waits until it is migrated, too.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Protocol

import asyncpg

from holdfast.config import Config
from holdfast.engines.errors import OperatorError
from holdfast.engines.migrate import bring_functions_back, migrate, plan
from holdfast.engines.startup_checks import connect
from holdfast.pods import HOME, parse_pods
from holdfast.pods.setup import refresh_pods
from holdfast.pods.store import is_pod


class Named(Protocol):
    @property
    def name(self) -> str: ...


@dataclass(slots=True)
class HouseSteps:
    applied: dict[str, list[str]] = field(default_factory=dict)  # by pod; home has no name
    away: dict[str, str] = field(default_factory=dict)


Change = Callable[[asyncpg.Connection], Awaitable[Sequence[Named]]]


async def migrate_house(config: Config, home: asyncpg.Connection) -> HouseSteps:
    """Safe to run by many at once, and while people buy."""
    async with AsyncExitStack() as opened:
        steps, pods = await _open_pods(config, opened)
        await _change_all(steps, {**pods, HOME: home}, migrate)
        if pods:
            await refresh_pods(home, pods)
    return steps


async def plan_house(config: Config, home: asyncpg.Connection) -> HouseSteps:
    """What `migrate_house` would apply."""
    async with AsyncExitStack() as opened:
        steps, pods = await _open_pods(config, opened)
        await _change_all(steps, {**pods, HOME: home}, plan)
    return steps


async def bring_house_functions_back(config: Config, home: asyncpg.Connection) -> HouseSteps:
    async with AsyncExitStack() as opened:
        steps, pods = await _open_pods(config, opened)
        await _change_all(steps, {**pods, HOME: home}, bring_functions_back)
    return steps


async def _open_pods(
    config: Config, opened: AsyncExitStack
) -> tuple[HouseSteps, dict[str, asyncpg.Connection]]:
    """Without databases that `holdfast pod add` has not made pods yet: their schema is its matter."""
    steps, pods = HouseSteps(), {}
    for place in parse_pods(config.pods):
        try:
            connection = await connect(place.database_url)
        except OperatorError as trouble:
            steps.away[place.name] = str(trouble).replace("HOLDFAST_DATABASE_URL", "HOLDFAST_PODS")
            continue
        opened.push_async_callback(connection.close)
        if await is_pod(connection, place.name):
            pods[place.name] = connection
    return steps, pods


async def _change_all(steps: HouseSteps, databases: dict[str, asyncpg.Connection], change: Change) -> None:
    for name, connection in databases.items():
        steps.applied[name] = [one.name for one in await change(connection)]
