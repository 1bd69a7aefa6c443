"""A sale fills its tables faster than PostgreSQL counts them: plans made for a few rows must do for many."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from holdfast.app import open_app
from holdfast.bookings import Booking
from holdfast.config import Config
from holdfast.engines.postgres import Queries
from holdfast.engines.startup_checks import connect
from tests.support.grown_house import GrownHouse
from tests.support.ledger_payments import request_for
from tests.support.second_ledger import a_ledger, beside
from tests.support.show_fixture import a_till

Q = Queries("holdfast.notifications")
SEATS = 400
READS_PER_SEAT = 12
READS_PER_PAYMENT = 100
TABLES = ("booking", "booking_move", "payment", "taken_seat", "ticket")


@pytest.fixture(scope="module")
async def house(config: Config) -> AsyncIterator[GrownHouse]:
    """One show with a booking per seat, and statistics of the moment when it had two."""
    async with a_ledger(config.database_url) as url:
        connection = await connect(url)
        async with open_app(replace(await beside(config, url, 11), postgres_pool_max=2)) as app:
            till = await a_till(app, SEATS)
            for table in TABLES:
                await connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
            openings = [till.opening(seat, price_minor=0, owner_id=seat + 1) for seat in range(SEATS)]
            await till.open_many(openings[:2])
            await connection.execute(f"ANALYZE {', '.join(TABLES)}")
            await till.open_many(openings[2:])
            yield GrownHouse(app, till.show, till.show)
        await connection.close()


async def test_the_progress_of_a_cancellation_reads_each_booking_once(house: GrownHouse) -> None:
    found = await house.app.refund_store.cancellation(house.show_id)

    assert found.bookings == SEATS
    read = await house.rows_read(lambda: house.app.refund_store.cancellation(house.show_id))
    assert read <= SEATS * READS_PER_SEAT


async def test_the_people_of_a_show_are_read_once_each(house: GrownHouse) -> None:
    since = datetime(2020, 1, 1, tzinfo=UTC)

    async def people() -> int:
        return len(await house.app.postgres.fetch(Q.people_of_show, house.show_id, 0, 1000, since))

    assert await people() == SEATS
    assert await house.rows_read(people) <= SEATS * READS_PER_SEAT


async def test_a_payment_starts_without_reading_the_holds_of_others(house: GrownHouse) -> None:
    till = await a_till(house.app, SEATS)
    openings = [till.opening(seat, owner_id=seat + 1) for seat in range(SEATS)]
    held = [one for one in await till.open_many(openings) if isinstance(one, Booking)]

    async def pay() -> None:
        (started,) = await house.app.payments.start_many([request_for(held.pop())])
        assert started.outcome == "charge"

    assert await house.rows_read(pay) <= READS_PER_PAYMENT
