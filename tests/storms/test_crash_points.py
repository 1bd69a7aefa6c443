"""`kill -9` at every point of paying: before something happens, while its answer is under way, after it.

One office for all of them. After each death the client asks again with the same key, a process that is left
or the next one carries on, and the booking has one end: confirmed and paid once,
or not confirmed and fully refunded.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from holdfast.audit import audit
from holdfast.claim import PoolMap
from holdfast.holds import differences
from holdfast.web.caller import Role
from tests.support import crash_stories as stories
from tests.support.box_office import Office, jobs, office
from tests.support.crash_scene import Scene
from tests.support.crash_stories import Story
from tests.support.gateway_state import Bank, bank_of
from tests.support.retrying_payer import Payer
from tests.support.shows import fans
from tests.support.wait import until
from tests.tidy.tree import package

MOMENTS = ("before", "during", "after")
POINTS_MIN = 45
SETTLES_WITHIN_S = 60.0

# Who comes by where. The first story of a name is in every run, the others with --full.
TABLE: dict[Story, tuple[str, ...]] = {
    stories.pays: (
        "map.hold",
        "ledger.open",
        "pay",
        "ledger.start",
        "map.extend",
        "gateway.charge",
        "ledger.confirm",
        "map.commit",
        "ledger.take_due",
    ),
    stories.keeps_it_longer_and_pays: ("map.adopt", "map.extend"),
    stories.is_declined_and_pays_another_way: ("ledger.give_back",),
    stories.is_paid_and_hears_late: ("ledger.look_up", "gateway.look_up", "ledger.confirm"),
    stories.never_reaches_the_gateway: ("ledger.charge",),
    stories.runs_out_of_time: ("ledger.call_off", "gateway.call_off", "ledger.release", "map.lapse"),
    stories.calls_it_off_and_pays_another_way: ("ledger.call_off", "gateway.call_off", "ledger.give_back"),
    stories.lets_the_hold_go: ("ledger.cancel", "map.release"),
    stories.does_not_pay: ("ledger.sweep",),
    stories.is_offered_seats_and_pays: ("ledger.offer", "map.adopt"),
    stories.releases_seats_that_fit_no_party: ("map.unreserve",),
    stories.keeps_seats_that_the_map_has_lost: ("map.drop",),
    stories.waits_for_a_silent_gateway: ("gateway.watch", "ledger.watch", "ledger.release"),
    stories.pays_late_while_the_seats_are_free: ("map.claim_again", "ledger.book_late", "ledger.confirm"),
    stories.pays_late_and_the_seats_are_gone: (
        "gateway.refund",
        "refund.settle",
        "ledger.book_late",
        "map.claim_again",
    ),
    stories.gives_it_back: ("refund.decide", "map.free", "gateway.refund", "refund.settle"),
    stories.bought_for_a_show_that_is_cancelled: ("refund.decide", "gateway.refund"),
    stories.pays_and_the_gateway_tells_us_first: (
        "webhook.store",
        "webhook.take_due",
        "webhook.settle_due",
        "gateway.charge",
    ),
    stories.pays_at_the_gateway_and_it_tells_us: (
        "webhook.settle",
        "webhook.store",
        "gateway.look_up",
        "ledger.confirm",
    ),
}


@dataclass(frozen=True)
class Row:
    point: str
    story: Story

    @property
    def title(self) -> str:
        return self.story.__name__.replace("_", " ")


def rows(*, is_full: bool) -> list[Row]:
    """All crash points; or one per name, a different one each time."""
    if is_full:
        return [
            Row(f"{name}:{moment}", story)
            for story, names in TABLE.items()
            for name in names
            for moment in MOMENTS
        ]
    first = {name: story for story, names in reversed(TABLE.items()) for name in names}
    return [Row(f"{name}:{MOMENTS[n % 3]}", story) for n, (name, story) in enumerate(sorted(first.items()))]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "row" in metafunc.fixturenames:
        chosen = rows(is_full=bool(metafunc.config.getoption("--full", default=False)))
        metafunc.parametrize("row", chosen, ids=[f"{row.point} {row.title}" for row in chosen])


@dataclass(frozen=True)
class Stage:
    office: Office
    bank: Bank
    orders: Path
    done: list[tuple[Row, Scene, str, float]] = field(default_factory=list)
    settling: list[asyncio.Task[None]] = field(default_factory=list)

    async def scene(self, row: Row) -> Scene:
        payer, rival = await self.office.fans(2)
        (admin,) = await fans(self.office.app, self.office.api, 1, Role.ADMIN)
        show_id = await self.office.a_show(seats=20)
        return Scene(
            self.office, self.bank, self.orders, row.point, show_id, Payer(payer), Payer(rival), admin
        )


@pytest.fixture(scope="module")
async def mortal(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """All processes read the same plan. The comparison of map and ledger runs often."""
    orders = tmp_path_factory.mktemp("orders") / "die-at"
    often: dict[str, Any] = {"crash_at": str(orders), "gateway_timeout_ms": 700, "compare_pause_s": 1}
    async with (
        office(work=False, **often) as opened,
        jobs(opened.folder, **often),
        jobs(opened.folder, **often),
        bank_of(opened.app.config) as bank,
    ):
        yield Stage(opened, bank, orders)


async def test_the_booking_has_one_outcome_and_the_buyer_sees_it(mortal: Stage, row: Row) -> None:
    began = time.monotonic()
    scene = await mortal.scene(row)
    await scene.up()

    booking, end = await row.story(scene)
    await scene.over()

    await scene.assert_one_outcome(booking, end)
    mortal.done.append((row, scene, end, time.monotonic() - began))
    mortal.settling.append(asyncio.create_task(settled(scene)))


async def test_the_books_are_right_after_all_of_them(mortal: Stage) -> None:
    await asyncio.gather(*mortal.settling)
    await mortal.office.settled()

    show(mortal.done)
    assert len(rows(is_full=True)) >= POINTS_MIN


async def settled(scene: Scene) -> None:
    """The map of this show is the ledger's, and the audit finds nothing in it."""
    app = scene.office.app

    async def map_is_right() -> bool:
        pool, live = await app.claims.read(scene.show_id, with_claims=True), app.bookings.live_bookings
        return not isinstance(pool, PoolMap) or not differences(pool, await live(scene.show_id))

    await until(map_is_right, within_s=SETTLES_WITHIN_S)
    found = await audit(app.postgres, app.bookings, gateway=app.saga_runner.gateway)
    mine = [one for one in found.violations if one.show_id == scene.show_id]
    assert not mine, (scene.point, mine)


def show(done: list[tuple[Row, Scene, str, float]]) -> None:
    table = Table("#", "dies at", "who", "what was going on", "end", "s", title="kill -9")
    for number, (row, scene, end, seconds) in enumerate(done, 1):
        table.add_row(str(number), row.point, scene.died, row.title, end, f"{seconds:.1f}")
    Console(width=120).print(table)


def test_every_effect_has_a_story_that_crashes_there() -> None:
    crashed = {name for names in TABLE.values() for name in names}

    assert effects() == crashed


def effects() -> set[str]:
    """The names of fault_points("…") in the package; names built at run time, from their parts."""
    found: set[str] = set()
    for module in package().values():
        for name in re.findall(r'fault_points\(f?"([^"]+)"\)', module.text):
            found |= MADE[name]() if "{" in name else {name}
    return found


def words(pattern: str, *modules: str) -> set[str]:
    texts = [package()[name].text for name in modules] if modules else [m.text for m in package().values()]
    return {word for text in texts for word in re.findall(pattern, text)}


MADE = {
    "webhook.{effect}": lambda: {
        f"webhook.{one}" for one in words(r'_fetch\(\s*"(\w+)"', "payments.webhooks")
    },
    "ledger.{effect}": lambda: {
        f"ledger.{one}" for one in words(r'_(?:fetch|move)\(\s*"(\w+)"', "payments.store")
    },
    "ledger.{step}": lambda: {f"ledger.{one}" for one in ("charge", "look_up", "call_off", "watch")},
    "gateway.{step}": lambda: {f"gateway.{one}" for one in ("charge", "look_up", "call_off", "watch")},
    # Seats that an organiser blocks involve no payment; a reservation is never the first of an update.
    "map.{settlements[0].action}": lambda: (
        {f"map.{one}" for one in words(r'Settlement\(\s*"(\w+)"')}
        - {"map.block", "map.unblock", "map.reserve"}
    ),
}
