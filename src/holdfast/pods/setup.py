"""Adds a pod: an empty database that receives people and catalogue from the home database.

    home: publication, slot ──► pod: subscription ──► first copy of every table ──► takes shows
      └── guards on the tables of the sale, here and there: pods/functions.sql

Every step can be repeated: a command that was interrupted is started again. Numbers of rows that move with a
show are shared out: of every SHARES numbers of an identity column, each database uses one.
"""

from dataclasses import dataclass

import asyncpg

from holdfast.bookings import has_bookings
from holdfast.engines.errors import OperatorError
from holdfast.engines.migrate import migrate, with_short_waits
from holdfast.engines.postgres import Queries
from holdfast.pods.place import HOME, PodPlace
from holdfast.pods.tables import GUARDED, NUMBERED, REPLICATED, SALE, SALE_COLUMNS
from holdfast.pods.waiting import wait_until

Q = Queries("holdfast.pods")
SHARES = 1024
HOME_NUMBER = 0
COPIED_WITHIN_S = 600.0


@dataclass(frozen=True, slots=True)
class NewPod:
    place: PodPlace
    home_url: str  # where the pod's server reaches the home database
    takes_new_shows: bool = True


async def add_pod(home: asyncpg.Connection, pod: asyncpg.Connection, new: NewPod) -> int:
    """Returns the number of the pod. Both databases stay as they are until they are found fit."""
    await _refuse_unfit_home(home)
    await migrate(pod)
    await _refuse_other_data(pod, new.place.name)
    number: int = await home.fetchval(Q.add_pod, new.place.name, False)
    if number >= SHARES:
        raise OperatorError(f"there are {SHARES} pods, and numbers for no more of them")
    await connect_pod(home, pod, new, number)
    await home.fetchval(Q.add_pod, new.place.name, new.takes_new_shows)
    return number


async def connect_pod(home: asyncpg.Connection, pod: asyncpg.Connection, new: NewPod, number: int) -> None:
    """Guards and shares of numbers on both sides, and everything that the pod receives."""
    for database, its_number in ((home, HOME_NUMBER), (pod, number)):
        await prepare_database(database, its_number)
    await pod.execute(Q.identify, new.place.name)
    await home.execute(Q.publish_to_pods, list(REPLICATED), list(SALE_COLUMNS))
    await _subscribe(home, pod, new)
    await wait_for_first_copy(pod)


async def prepare_database(database: asyncpg.Connection, number: int) -> None:
    """Repeatable: after an upgrade, or after sequences went back with a restore. Sales go on meanwhile."""

    async def share() -> None:
        await database.execute(Q.share_numbers, list(NUMBERED), number, SHARES)

    async def guard() -> None:
        await database.execute(Q.guard_shows, list(GUARDED))

    for change in (share, guard):
        await with_short_waits(database, change)


async def refresh_pods(home: asyncpg.Connection, pods: dict[str, asyncpg.Connection]) -> bool:
    """After an upgrade: what is published, received and guarded is what this program's lists say.

    True: something was missing. One process at a time: others wait, and find it done. Pods that are away
    follow the next time.
    """
    if await _is_published(home) and all([await _is_received(pod) for pod in pods.values()]):
        return False
    numbers = {row["name"]: row["number"] for row in await home.fetch(Q.pods)}
    await home.execute(Q.refresh_alone)  # not in one transaction: its locks would stop sales until the end
    try:
        if not await _is_published(home):
            await prepare_database(home, HOME_NUMBER)
            await home.execute(Q.publish_to_pods, list(REPLICATED), list(SALE_COLUMNS))
        for name, pod in pods.items():
            if name in numbers and not await _is_received(pod):
                await prepare_database(pod, numbers[name])
                await pod.execute(Q.refresh_subscription)
                await wait_for_first_copy(pod)
    finally:
        await home.execute(Q.let_others_refresh)
    return True


async def _is_published(home: asyncpg.Connection) -> bool:
    published = {row["name"]: row["columns"] for row in await home.fetch(Q.published_tables)}
    is_complete = published.keys() == {*REPLICATED, SALE} and {*published[SALE]} == {*SALE_COLUMNS}
    return is_complete and await _is_guarded(home)


async def _is_received(pod: asyncpg.Connection) -> bool:
    received = {row["name"] for row in await pod.fetch(Q.received_tables)}
    return received == {*REPLICATED, SALE} and await _is_guarded(pod)


async def _is_guarded(database: asyncpg.Connection) -> bool:
    return {row["name"] for row in await database.fetch(Q.guarded_tables)} == {*GUARDED}


async def wait_for_first_copy(pod: asyncpg.Connection) -> None:
    async def is_complete() -> bool:
        return not await pod.fetchval(Q.tables_not_ready)

    try:
        await wait_until(is_complete, COPIED_WITHIN_S)
    except TimeoutError:
        raise OperatorError(
            f"the pod has not received the catalogue within {COPIED_WITHIN_S:.0f} s: see the log of its "
            "PostgreSQL, then run the command again"
        ) from None


async def _refuse_unfit_home(home: asyncpg.Connection) -> None:
    if await home.fetchval(Q.identity) != HOME:
        raise OperatorError("HOLDFAST_DATABASE_URL is a pod: pods are added to the home database")
    level = await home.fetchval(Q.wal_level)
    if level != "logical":
        raise OperatorError(
            f"the home database has wal_level = {level}: set it to logical and restart PostgreSQL"
        )


async def _refuse_other_data(pod: asyncpg.Connection, name: str) -> None:
    identity = await pod.fetchval(Q.identity)
    if identity not in (HOME, name):
        raise OperatorError(f"this database is the pod {identity} already: choose an empty one")
    if identity == HOME and await has_bookings(pod):
        raise OperatorError("this database has bookings of its own: a pod begins empty")


async def _subscribe(home: asyncpg.Connection, pod: asyncpg.Connection, new: NewPod) -> None:
    """The slot is made first and apart: a subscription within one server would wait for itself."""
    if await pod.fetchval(Q.subscription_exists, "holdfast_home"):
        await pod.execute(Q.refresh_subscription)  # tables that an upgrade has added
        return
    slot = f"holdfast_pod_{new.place.name}"
    if not await home.fetchval(Q.slot_exists, slot):
        await home.fetchval(Q.create_slot, slot)
    await pod.execute(Q.subscribe_to_home, list(REPLICATED), new.home_url, slot)
