"""What a move leaves behind that died, and databases that were restored to another moment than the others."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from holdfast.app import App
from tests.support.pod_house import PodHouse, a_pod_show, fetch
from tests.support.wait import until


async def two_shows_of_one_pod(app: App, pod: str = "east") -> tuple[int, int]:
    """New shows go to the pod with the fewest."""
    found: list[int] = []
    while len(found) < 2:
        show = await a_pod_show(app, price_minor=1000)
        found += [show] if app.router.directory.pod_of(show) == pod else []
    return found[0], found[1]


@asynccontextmanager
async def fenced(app: App, show_id: int) -> AsyncIterator[None]:
    """A show that was never moved, as a mover that died has left it."""
    ledger = app.router.for_show(show_id).postgres
    await ledger.execute("SELECT fence_show($1, 1)", show_id)
    try:
        yield
    finally:
        await ledger.execute("UPDATE show_copy SET epoch = 1 WHERE show_id = $1", show_id)


async def set_directory(house: PodHouse, show_id: int, pod: str, epoch: int, *followers: str) -> None:
    """At home, and in these pods once it has arrived."""
    home = await asyncpg.connect(house.url_of(""))
    await home.execute(
        "UPDATE show_pod SET pod = $2, epoch = $3, changed_at = now() WHERE show_id = $1", show_id, pod, epoch
    )
    await home.close()

    async def has_arrived() -> bool:
        rows = [await fetch(house, each, "SELECT show_id, pod, epoch FROM show_pod") for each in followers]
        return all((show_id, pod, epoch) in [tuple(row) for row in some] for some in rows)

    await until(has_arrived)
