"""Shows spread over pods: pods are killed, shows move while they sell, a router has an old directory (R36).

Nothing that was acknowledged is lost, no seat is sold twice whichever database sold it, and a pod that is
gone takes only its own shows with it.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle

import pytest

from holdfast.app import App, open_app
from holdfast.cli.audit import run_audit
from holdfast.cli.pods import databases
from holdfast.engines.errors import EngineDown
from holdfast.errors import Refusal
from holdfast.pods.move import MoveReport, ShowMover
from holdfast.web.caller import Role
from tests.support.box_office import Crowd
from tests.support.crowd import Report, Wish
from tests.support.own_engines import hold
from tests.support.pod_house import wait_for_show
from tests.support.promise_check import lost, shared_seats
from tests.support.result_tables import Table
from tests.support.shows import API, Fan, a_layout, fans
from tests.support.spread_house import SpreadHouse, a_spread_house
from tests.support.storm_requests import neighbours
from tests.support.wait import until

BEFORE, AFTER = 1500, 1700  # prices
HALL = a_layout(6_000, row=60)
SETTLE_S = 0.5  # for answers that were on their way when a pod was killed
LONG_TTL_S = 600
SHORT_TTL_S = 4  # of every second show: its seats come back and are sold again, in the next pod


@dataclass(frozen=True)
class Size:
    pods: tuple[str, ...]
    shows: int
    moves: int
    people: int
    held: int  # holds in each phase of an outage
    pause_s: float  # of a person between two holds
    cut_s: float  # without replication from home


SMALL = Size(pods=("east", "west"), shows=4, moves=4, people=30, held=150, pause_s=0.1, cut_s=0.0)
FULL = Size(
    pods=("east", "west", "north"), shows=12, moves=20, people=80, held=1_500, pause_s=0.1, cut_s=60.0
)


@pytest.fixture(scope="module")
def size(pytestconfig: pytest.Config) -> Size:
    return FULL if pytestconfig.getoption("--full") else SMALL


@pytest.fixture(scope="module")
def table(pytestconfig: pytest.Config) -> Table:
    """Printed when all tests are over."""
    made = Table("a house with pods during a sale")
    pytestconfig.pluginmanager.register(made, "the table of the pods")
    return made


@pytest.fixture(scope="module")
async def house(size: Size) -> AsyncIterator[SpreadHouse]:
    async with a_spread_house(*size.pods) as opened:
        yield opened


async def a_programme(house: SpreadHouse, size: Size, *ttl_s: int) -> tuple[list[int], list[Fan]]:
    """Shows in all pods, and people who can see them. `ttl_s` of their holds, in turn."""
    shows = [
        await house.office.a_show(layout=HALL, owner_seats_max=1000, hold_ttl_s=hold_s)
        for hold_s, _ in zip(cycle(ttl_s or (LONG_TTL_S,)), range(size.shows))  # endless
    ]
    people = await house.office.fans(size.people)
    for show in shows:
        await wait_for_show(house.app, show)
    return shows, people


def wishes_for(shows: Sequence[int], each: int = 1_000) -> list[Wish]:
    return [wish for show in shows for wish in neighbours(show, HALL, each)]


async def test_shows_move_while_they_sell(house: SpreadHouse, size: Size, table: Table) -> None:
    shows, people = await a_programme(house, size, LONG_TTL_S, SHORT_TTL_S)
    async with open_app(house.app.config) as stale:  # it reads the directory once, and runs no jobs
        plan = {"connections": size.people, "seconds_max": 600, "pause_s": size.pause_s, "keyed": True}
        async with house.office.crowd(people, wishes_for(shows), **plan) as crowd:
            await crowd.held(size.held)
            stray = asyncio.create_task(hold_by_old_directory(stale, shows, people[0]))
            reports = [await move_somewhere(house, crowd, shows, n) for n in range(size.moves)]
            await crowd.held(crowd.progress.held + size.held)
            stray.cancel()
            crowd.go_home()
            storm = await crowd.report()
        gone = await asyncio.gather(stray, return_exceptions=True)
    assert isinstance(gone[0], asyncio.CancelledError), gone

    gaps = sorted(report.gap_s for report in reports)
    table.note("moves", "count", len(reports))
    table.note("moves", "rows", sum(report.rows for report in reports))
    table.note("moves", "holds", len(storm.promises))
    table.note("moves", "503", storm.statuses.get("503", 0))
    table.note("moves", "gap of a move", f"{gaps[len(gaps) // 2]:.2f} s, at most {gaps[-1]:.2f} s")
    assert {report.source for report in reports} | {report.target for report in reports} >= set(size.pods)
    await assert_promises_hold(house, storm, shows, people)
    await until(partial(is_clean, house), within_s=60)


async def move_somewhere(house: SpreadHouse, crowd: Crowd, shows: Sequence[int], turn: int) -> MoveReport:
    """The next show, to another database than it is in; home among them."""
    show = shows[turn % len(shows)]
    places = [name for name in house.ledgers if name != house.app.router.directory.pod_of(show)]
    mover = ShowMover(house.app.config.database_url, await databases(house.app))
    report = await mover.move(show, places[turn % len(places)])
    await house.app.router.directory.follow()
    held = crowd.progress.held
    await crowd.held(held + 20)
    return report


async def hold_by_old_directory(app: App, shows: Sequence[int], fan: Fan) -> None:
    """As a web machine that was cut off from home: every hold it is granted is the owner's, or refused."""
    chance = random.Random(1)
    while True:
        show = chance.choice(shows)
        try:
            await hold(app.router.for_show(show), show, fan.account_id, chance.randrange(HALL.seat_count))
        except (Refusal, EngineDown):
            await asyncio.sleep(0.02)


async def test_a_pod_that_is_gone_takes_only_its_shows_with_it(
    house: SpreadHouse, size: Size, table: Table
) -> None:
    shows, people = await a_programme(house, size)
    owned = await house.by_owner(shows)
    victim = next(name for name in size.pods if owned.get(name))
    others = [show for show in shows if show not in owned[victim]]
    its_people, other_people = people[: size.people // 3], people[size.people // 3 :]
    plan = {"seconds_max": 600, "pause_s": size.pause_s, "keyed": True}
    storms: list[Report] = []
    async with house.office.crowd(
        its_people, wishes_for(owned[victim]), connections=len(its_people), **plan
    ) as its_crowd:
        await its_crowd.held(50)
        for phase in ("all well", "ledger killed", "both killed", "back again"):
            if phase == "ledger killed":
                await house.ledgers[victim].kill()
            elif phase == "both killed":
                await house.valkeys[victim].kill()
            elif phase == "back again":
                await house.bring_back(victim)
                await its_crowd.held(its_crowd.progress.held + 50, within_s=60)
            await asyncio.sleep(SETTLE_S)
            before = its_crowd.progress.held
            wishes = wishes_for(others, each=2_000)
            async with house.office.crowd(
                other_people, wishes, connections=len(other_people), seed=len(storms) + 2, **plan
            ) as crowd:
                await crowd.held(size.held, within_s=120)
                crowd.go_home()
                storms.append(await crowd.report())
            sold = its_crowd.progress.held - before
            table.note(phase, "holds of other shows", len(storms[-1].promises))
            table.note(phase, "their p50, p99", f"{storms[-1].p50_ms:.0f}, {storms[-1].p99_ms:.0f} ms")
            table.note(phase, "holds of its shows", sold)
            if phase.endswith("killed"):
                assert sold == 0, phase
        its_crowd.go_home()
        its_storm = await its_crowd.report()
    assert set(its_storm.statuses) <= {"201", "409", "503"}
    assert all(set(storm.statuses) <= {"201", "409"} for storm in storms), [s.statuses for s in storms]
    for storm, its in [(its_storm, its_people), *((storm, other_people) for storm in storms)]:
        await assert_promises_hold(house, storm, shows, its)
    await until(partial(is_clean, house), within_s=60)


async def assert_promises_hold(
    house: SpreadHouse, storm: Report, shows: Sequence[int], people: Sequence[Fan]
) -> None:
    """Every promise is in the ledger of the pod that owns its show now, and no row is anywhere else."""
    assert not storm.broken, (storm.broken[0], house.office.last_words())
    assert not storm.unfair, storm.unfair
    for pod, owned in (await house.by_owner(shows)).items():
        office = house.in_pod(pod)
        promises = [promise for promise in storm.promises if promise.show in owned]
        assert await lost(office, promises, people) == []
        assert await shared_seats(office, owned) == []
    assert await house.rows_elsewhere(shows) == []


async def is_clean(house: SpreadHouse) -> bool:
    """The audit of every database, with its map; what is on its way has a while to arrive.

    On connections of its own: others may be older than an engine that was killed.
    """
    async with open_app(house.app.config) as app:
        for each in app.router.by_name.values():
            found = await run_audit(each, with_map=True, with_gateway=False, ends=None)
            if found.total:
                print("on its way:", found.first()[0], f"and {found.total - 1} more")
                return False
    return True


async def test_prices_are_those_that_were_shown_while_replication_is_cut(
    house: SpreadHouse, size: Size
) -> None:
    """The price on the show's page is that of the hold and of the payment, before and after the change."""
    shows, (buyer, *_) = await a_programme(house, replace(size, shows=len(size.pods), people=1))
    (admin,) = await fans(house.app, house.office.api, 1, Role.ADMIN)
    pods = [house.app.router.for_show(show) for show in shows]
    for pod in pods:
        await pod.postgres.execute("ALTER SUBSCRIPTION holdfast_home DISABLE")
    for show in shows:
        await raise_price(admin, show)
    assert [await buys_as_shown(buyer, show, "A-1") for show in shows] == [BEFORE] * len(shows)
    await asyncio.sleep(size.cut_s)
    assert [await buys_as_shown(buyer, show, "B-1") for show in shows] == [BEFORE] * len(shows)
    for pod in pods:
        await pod.postgres.execute("ALTER SUBSCRIPTION holdfast_home ENABLE")
    for show in shows:
        await until(partial(is_shown, buyer, show, AFTER))
    assert [await buys_as_shown(buyer, show, "A-2") for show in shows] == [AFTER] * len(shows)


async def raise_price(admin: Fan, show: int) -> None:
    change = {"prices": {"Standard": AFTER}}
    response = await admin.api.patch(f"{API}/admin/shows/{show}", json=change, headers=admin.headers)
    assert response.status_code == 200, response.text


async def buys_as_shown(fan: Fan, show: int, seat: str) -> int:
    """What was paid, if it is the price on the page of the show."""
    shown, held = await load_price(fan, show), await fan.holds(show, seat)
    while held.status_code == 503:  # web processes learn of a new show within half a second
        await asyncio.sleep(0.1)
        shown, held = await load_price(fan, show), await fan.holds(show, seat)
    assert held.status_code == 201, held.text
    paid = await fan.post(f"/bookings/{held.json()['booking_id']}/pay", {"method": "tok_ok"}, key=seat)
    assert paid.status_code == 200, paid.text
    assert paid.json()["amount"] == held.json()["amount"] == shown
    return shown


async def load_price(fan: Fan, show: int) -> int:
    price: int = (await fan.get(f"/shows/{show}")).json()["prices"][0]["price_minor"]
    return price


async def is_shown(fan: Fan, show: int, price: int) -> bool:
    return await load_price(fan, show) == price
