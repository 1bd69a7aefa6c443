"""A long past costs nothing today: jobs and listings read a bounded number of rows, whatever lies behind.

The house of these tests has 34 000 ended bookings and some 200 000 other rows. A call that reads them all is
slower every month, until its statement times out in the middle of a sale.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from holdfast.app import App
from holdfast.attendees.page import AttendeeQuery, BookingQuery
from holdfast.audit import audit
from holdfast.audit.oversold import SALES_MAX, OversoldGauge
from holdfast.audit.oversold import Q as OVERSOLD
from holdfast.audit_log import AuditQuery, load_audit_page
from holdfast.background import worker_jobs
from holdfast.bookings import seats_by_category
from holdfast.config import Config
from holdfast.engines.metrics import metrics
from holdfast.engines.turns import LEASE_S_MIN, Turns
from holdfast.refunds.store import LATEST
from holdfast.runtime.subjects import WORKED
from tests.support.grown_house import GrownHouse, grown_house
from tests.support.show_fixture import a_till

ROWS_MAX = 1000
# What a broken program could do to a show ($1): the same seats in a second booking.
TWICE = (
    "INSERT INTO booking (show_id, number, owner_id, fence, state, request_id, body_hash, claim_id, seats,"
    " prices_minor, amount_minor, currency, opened_at, expires_at)"
    " SELECT show_id, nextval('ledger_number'), 1, 1, 'paying', 'twice', 0, 'c', seats, prices_minor,"
    " amount_minor, currency, opened_at, expires_at FROM booking WHERE show_id = $1"
)


@pytest.fixture(scope="module")
async def house(config: Config) -> AsyncIterator[GrownHouse]:
    async with grown_house(config) as built:
        yield built


@pytest.mark.parametrize("subject", WORKED)
async def test_a_job_reads_few_rows_of_a_long_past(house: GrownHouse, subject: str) -> None:
    read = {job.__qualname__: await house.rows_read(job) for _, job in worker_jobs(house.app, {subject})}

    assert {name: rows for name, rows in read.items() if rows > ROWS_MAX} == {}


async def _categories(house: GrownHouse) -> None:
    async with house.app.postgres.transaction() as tx:
        await seats_by_category(tx, house.show_id, bytes(100))


async def _refunds(house: GrownHouse, organiser_id: int | None, state: str | None = None) -> None:
    await house.app.refund_store.refunds(organiser_id, state, None, LATEST, 21)


async def _bookings(house: GrownHouse, **wanted: Any) -> None:
    await house.app.attendees.search(None, BookingQuery(**wanted))


LISTS: dict[str, Callable[[GrownHouse], Awaitable[object]]] = {
    "seats left": lambda house: house.app.bookings.counts_many([house.show_id, 2, 3]),
    "blocks of a show": lambda house: house.app.bookings.blocks(house.show_id),
    "blocks as organisers see them": lambda house: house.app.blocks.all(house.show_id),
    "sold by category": _categories,
    "refunds of an organiser": lambda house: _refunds(house, 1),
    "refunds of an organiser without any": lambda house: _refunds(house, 2),
    "refunds by hand of an organiser": lambda house: _refunds(house, 1, "by_hand"),
    "sold bookings of a show": lambda house: _bookings(house, show=house.show_id),
    "bookings by mail": lambda house: _bookings(house, q="guest1@example.org"),
    "bookings by name": lambda house: _bookings(house, q="Ahana"),
    "bookings by reference": lambda house: _bookings(house, q="ABCDEFGH", show=house.show_id),
    "a seat of a show": lambda house: _bookings(house, q="A-1", show=house.show_id),
    "attendees of a show": lambda house: house.app.attendees.attendees(house.show_id, None, AttendeeQuery()),
    "the audit log": lambda house: load_audit_page(house.app, 1, AuditQuery()),
    "the audit log of an action": lambda house: load_audit_page(house.app, 1, AuditQuery(action="x.y")),
    "the replay of another show": lambda house: house.app.replays.build(house.past_show_id),
    "all refunds": lambda house: _refunds(house, None),
    "all refunds that wait": lambda house: _refunds(house, None, "requested"),
}


@pytest.mark.parametrize("name", LISTS)
async def test_a_list_reads_few_rows_of_a_long_past(house: GrownHouse, name: str) -> None:
    assert await house.rows_read(lambda: LISTS[name](house)) <= ROWS_MAX


async def test_the_past_of_these_tests_is_a_valid_one(house: GrownHouse) -> None:
    report = await audit(house.app.postgres, house.app.bookings)

    assert {v.check for v in report.violations} <= {"journal_matches_payments"}, report.violations[:3]


class TestSeatsLeft:
    """Held seats are what remains of the taken ones: each state is counted as it is."""

    async def test_every_state_is_counted(self, app: App) -> None:
        till = await a_till(app, 20)
        await till.opened(0, 1)
        await till.opened(2, price_minor=0)
        lapsed = await till.opened(3, 4, 5)
        await app.holds.block(till.show, [6, 7, 8, 9], "camera", till.owner)
        await till.lapse(lapsed.number)

        counts = await app.bookings.counts_many([till.show])

        assert counts == {till.show: {"H": 2, "B": 1, "X": 4}}

    async def test_a_show_without_bookings_has_all_its_seats(self, app: App) -> None:
        till = await a_till(app, 20)

        assert await app.bookings.counts_many([till.show]) == {till.show: {"H": 0, "B": 0, "X": 0}}


class TestOversoldGauge:
    """It must say 0 only if that is so: a figure that cannot be trusted is worse than none."""

    async def test_a_seat_with_two_owners_is_counted_until_it_is_settled(self, house: GrownHouse) -> None:
        gauge, app = OversoldGauge(house.app.postgres), house.app
        till = await a_till(app, 10)
        booking = await till.opened(3, 4)
        await app.postgres.execute(TWICE, till.show)

        await gauge.count()
        found = _gauge()
        await app.postgres.execute(
            "DELETE FROM booking WHERE show_id = $1 AND number <> $2", till.show, booking.number
        )
        await gauge.count()

        assert (found, _gauge()) == (2, 0)

    async def test_it_does_not_read_the_past_where_that_seems_cheap(self, house: GrownHouse) -> None:
        shows = ",".join(str(house.past_show_id - i) for i in range(SALES_MAX))
        async with house.app.postgres.transaction() as tx:
            await tx.execute("SET LOCAL random_page_cost = 1000")
            await tx.execute(OVERSOLD.read_by_blocks)
            plan = await tx.fetch("EXPLAIN " + OVERSOLD.oversold_in.replace("$1", f"'{{{shows}}}'"))

        assert [line for (line,) in plan if "Seq Scan" in line] == []


class TestTurns:
    """A job that reads much runs in one process of all, and moves on when that process stops."""

    async def test_only_one_of_two_processes_runs_a_job(self, house: GrownHouse) -> None:
        first, second = _Counted(house, "one of two"), _Counted(house, "one of two")

        for _ in range(3):
            await first.job()
            await second.job()

        assert (first.runs, second.runs) == (3, 0)

    async def test_another_process_takes_over_when_the_lease_ends(self, house: GrownHouse) -> None:
        first, second = _Counted(house, "taken over"), _Counted(house, "taken over")
        await first.job()
        await house.app.postgres.execute("UPDATE job_turn SET due_at = now() WHERE name = 'taken over'")

        await second.job()
        first.now_s += LEASE_S_MIN
        await first.job()

        assert (first.runs, second.runs) == (1, 1)


class _Counted:
    """A job in a process of its own."""

    def __init__(self, house: GrownHouse, name: str) -> None:
        self.runs, self.now_s = 0, 0.0

        async def run() -> int:
            self.runs += 1
            return 0

        run.__qualname__ = name
        _, self.job = Turns(house.app.postgres, lambda: self.now_s).alone(1.0, run)


def _gauge() -> float:
    (line,) = [
        one for one in metrics.text().decode().splitlines() if one.startswith("holdfast_oversold_seats ")
    ]
    return float(line.split()[1])
