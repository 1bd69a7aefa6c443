"""Every node of a house on several machines is killed and brought back during a sale (R19).

Nothing that was acknowledged is lost, no seat is sold twice, and no buyer is charged without a seat. The
table says how long nothing was sold after each kill. With --full only: its servers take a while to start.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.box_office import Office
from tests.support.buyers import Plan, Report
from tests.support.buying import Buying, buying
from tests.support.gateway_state import Bank, bank_of
from tests.support.haproxy_front import NAME, haproxy
from tests.support.house import House, a_house
from tests.support.money_check import paid_twice, sold_twice, unsettled, untrue
from tests.support.promise_check import shared_seats
from tests.support.repeated_sales import RepeatedSales
from tests.support.result_tables import Table
from tests.support.retrying_payer import Payer
from tests.support.shows import API, a_layout
from tests.support.wait import until
from tests.support.watched_show import audience, describe_map

Cluster = tuple[House, Office]

FIRST_SALE_WITHIN_S = {
    "web machine": 1.0,
    "worker": 1.0,
    "Valkey replica": 10.0,
    "Valkey primary": 10.0,
    "PostgreSQL standby": 20.0,
    "PostgreSQL primary": 20.0,
    "NATS node": 1.0,
    "nginx": 5.0,
}
SETTLED_WITHIN_S = 120.0
PURCHASES = 20_000  # at least; and every kind of node is killed at least once
SEATS = 40_000
BUYERS = 60
PAUSE_S = 0.1  # of a buyer between two purchases
BETWEEN = 200  # sales before each kill, and before what was killed comes back
VIEWERS = 200  # of each of two proxies, while the machines are restarted


@dataclass(frozen=True)
class Kill:
    what: str
    at: float
    whole_at: float  # it was back


@pytest.fixture(scope="module")
def table(pytestconfig: pytest.Config) -> Table:
    """Printed when all tests are over."""
    made = Table("a house on several machines, each kind of node killed in turn")
    pytestconfig.pluginmanager.register(made, "the table of the cluster")
    return made


@pytest.fixture(scope="module")
async def cluster() -> AsyncIterator[Cluster]:
    async with a_house() as opened:
        yield opened


async def test_a_sale_survives_every_kind_of_node(cluster: Cluster, table: Table) -> None:
    house, office = cluster
    layout = a_layout(SEATS, row=60)
    show = await office.a_show(layout=layout, owner_seats_max=1000)
    await office.app.seatmap.rebuild(show, "storm")
    people = await office.fans(BUYERS * 10)
    plan = Plan(
        url=office.url,
        tokens=[fan.token for fan in people],
        show=show,
        seats=list(layout.labels),
        connections=BUYERS,
        purchases=SEATS,
        patience_s=90,
        never=0,
        late=0,
        cancels=0.05,
        pause_s=PAUSE_S,
    )
    async with bank_of(office.app.config) as bank:
        async with buying(office.folder.path, plan) as crowd:
            kills = await kill_in_turn(house, crowd)
            crowd.go_home()
            report = await crowd.report

        note_times(table, report, kills)
        await until(partial(is_settled, office, bank, show), within_s=SETTLED_WITHIN_S)
        await until(partial(has_consumed_all, office), within_s=SETTLED_WITHIN_S)
        taken = await bank.payments()
    faults = {
        "acknowledged and lost": await untrue(office, show, report.deals),
        "sold twice": await sold_twice(office, show) + await shared_seats(office, [show]),
        "charged without a seat": await unsettled(office, show, taken),
        "charged twice": await paid_twice(taken),
    }
    table.title += ": " + summary(report, kills, faults)
    assert not report.broken, (report.broken[0], office.last_words())
    assert {what: found[:3] for what, found in faults.items() if found} == {}
    assert len(report.deals) >= PURCHASES
    await office.settled(within_s=60)
    assert slow(report, kills) == []


async def test_viewers_and_buyers_do_not_notice_a_rolling_restart(cluster: Cluster, tmp_path: Path) -> None:
    """Behind nginx and behind HAProxy: streams go on at another machine. A machine that is slow while it
    starts may put several changes into one."""
    house, office = cluster
    show = await office.a_show(seats=2000, owner_seats_max=1000)
    first, second = (machine.address for machine in house.web[:2])
    async with haproxy(tmp_path, (first, second)) as front:
        sales, people = RepeatedSales(show), await office.fans(4)
        payers = [Payer(fan) for fan in people[:2]] + [Payer(replace(fan, api=front)) for fan in people[2:]]
        watch = partial(audience, tmp_path, count=VIEWERS, may_jump=True)
        async with watch(office.url, show) as one, watch(str(front.base_url), show, host=NAME) as other:
            tasks = [asyncio.create_task(sales.buy(payer)) for payer in payers]
            await sales.reach(10)
            for machine in house.web[:2]:
                await machine.stop()
                await sales.reach(len(sales.confirmed) + 10)
                await machine.start()
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            seen = [await viewers.go_home() for viewers in (one, other)]
            states = (await office.api.get(f"{API}/shows/{show}/seats")).json()["states"]

    statuses = Counter(answer.status_code for payer in payers for answer in payer.answers)
    print(
        f"{len(sales.held)} holds, {len(sales.confirmed)} sales, answers {dict(statuses)}; "
        f"viewers connected {[one.connects for one in seen]} times, refused {[one.refused for one in seen]}"
    )
    assert {type(end) for end in ends} == {asyncio.CancelledError}, ends
    assert [one.wrong for one in seen] == [[], []]
    assert [one.maps for one in seen] == [{describe_map(show, states.encode()): VIEWERS}] * 2
    assert min(one.connects for one in seen) > VIEWERS
    assert await sales.missing(office) == []


async def kill_in_turn(house: House, crowd: Buying) -> list[Kill]:
    """In rounds, until enough is sold."""
    kills: list[Kill] = []
    while not kills or crowd.progress.purchases < PURCHASES:
        for what in FIRST_SALE_WITHIN_S:
            await crowd.sold(BETWEEN)
            async with house.without(what):
                await crowd.sold(BETWEEN)
            kills.append(Kill(what, house.killed_at, time.monotonic()))
    return kills


def first_sale_s(report: Report, kill: Kill) -> float:
    """From the kill to the first confirmation of a request that was sent after it."""
    return min(deal.sold_at for deal in report.deals if deal.confirmed and deal.sent_at > kill.at) - kill.at


def longest_pause_s(report: Report, kill: Kill) -> float:
    """Between two sales, until the node was back."""
    sold = sorted(deal.sold_at for deal in report.deals if kill.at < deal.sold_at < kill.whole_at)
    return max(later - sooner for sooner, later in pairwise([kill.at, *sold, kill.whole_at]))


def note_times(table: Table, report: Report, kills: Sequence[Kill]) -> None:
    for what in dict.fromkeys(kill.what for kill in kills):
        own = [kill for kill in kills if kill.what == what]
        sold = sum(k.at < deal.sold_at < k.whole_at for k in own for deal in report.deals)
        table.note(what, "kills", len(own))
        table.note(what, "first sale after", f"{max(first_sale_s(report, k) for k in own):.2f} s")
        table.note(what, "bar", f"{FIRST_SALE_WITHIN_S[what]:.0f} s")
        table.note(what, "longest pause", f"{max(longest_pause_s(report, k) for k in own):.2f} s")
        table.note(what, "sold until it was back", sold)
        table.note(what, "back after", f"{max(k.whole_at - k.at for k in own):.1f} s")


def slow(report: Report, kills: Sequence[Kill]) -> list[tuple[str, float]]:
    found = [(kill.what, first_sale_s(report, kill)) for kill in kills]
    return [(what, took_s) for what, took_s in found if took_s > FIRST_SALE_WITHIN_S[what]]


def summary(report: Report, kills: Sequence[Kill], faults: dict[str, list[str]]) -> str:
    held = sum(bool(deal.booking_id) for deal in report.deals)
    confirmed = sum(deal.confirmed for deal in report.deals)
    busy = sum(answer.startswith("503") for deal in report.deals for answer in deal.answers)
    found = ", ".join(f"{what} {len(cases)}" for what, cases in faults.items())
    return (
        f"{len(report.deals)} purchases in {report.ended - report.began:.0f} s, {held} held, "
        f"{confirmed} confirmed, {len(kills)} kills, {busy} answers 503, {report.dropped} connections "
        f"dropped; {found}"
    )


async def is_settled(office: Office, bank: Bank, show: int) -> bool:
    return not await unsettled(office, show, await bank.payments())


async def has_consumed_all(office: Office) -> bool:
    """Every group has passed every fact, and none gave one up."""
    groups = await office.app.outbox.groups()
    return bool(groups) and not any(row["behind"] or row["parked"] or row["dead"] for row in groups)
