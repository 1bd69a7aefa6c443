"""Figures match the ledger, however often facts repeat and whenever figures are rebuilt (R33)."""

import asyncio
import csv
import io
import random
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from holdfast.app import App
from holdfast.bookings import Booking, BookingState
from holdfast.checkin.scan import Way
from holdfast.engines.postgres import require_row
from holdfast.holds import SeatsTaken
from holdfast.holds.jobs import SaleJobs
from holdfast.layouts import Layout, LayoutBody
from holdfast.outbox.relay import ConsumerWorker
from holdfast.pricing import Terms
from holdfast.refunds.refund import RefundScope
from holdfast.reports.figures import ShowFigures
from holdfast.reports.store import GROUP, consumer
from tests.support import shows as cast
from tests.support.box_office import clean, started
from tests.support.door import a_doorway, a_scan
from tests.support.fact_recorder import skip_older_facts, turns_are_free
from tests.support.opened import engines_of, where_sold
from tests.support.own_engines import hold
from tests.support.paid_bookings import a_refund, bought, now_of, payment_request
from tests.support.show_fixture import Till, an_owner

TERMS = Terms(fee_minor=100, fee_bp=250, tax_bp=1900)
SEATS = 40
DONE = ["hold"] * 4 + ["pay"] * 4 + ["decline", "release", "lapse", "reduce", "refund", "money"]
EVIL = '=HYPERLINK("http://evil.example")'


def two_categories() -> Layout:
    body = {
        "name": "Hall",
        "focal": [0, -2],
        "categories": [{"name": "Gold", "colour": "#E69F00"}, {"name": EVIL, "colour": "#0072B2"}],
        "sections": [
            {
                "name": "Stalls",
                "rows": [
                    {"label": "A-B", "seats": "1-10", "category": "Gold"},
                    {"label": "Y-Z", "seats": "1-10", "at": [0, 9], "category": EVIL},
                ],
            }
        ],
    }
    return Layout.build(msgspec.convert(body, LayoutBody))


@pytest.fixture(autouse=True, scope="module")
async def news_only(app: App) -> None:
    await skip_older_facts(app, GROUP)


async def hears(app: App) -> None:
    await turns_are_free(app)
    await app.outbox.settle(1_000_000)
    consumer_worker = ConsumerWorker(app.outbox, consumer(app.reports), app.config, wait_s=0.01)
    async with asyncio.timeout(60):
        while await consumer_worker.consume():
            pass


async def figures(app: App, show_id: int) -> ShowFigures:
    return await app.reports.of_show(show_id, None)


async def a_booking_moves(app: App, show_id: int, chance: random.Random, mine: list[Booking]) -> None:
    """Something that people do."""
    confirmed = [one for one in mine if (await now_of(app, one)).state is BookingState.CONFIRMED]
    held = [one for one in mine if (await now_of(app, one)).state is BookingState.HELD]
    taken = await Till(app, show_id).taken()
    free = [seat for seat in range(SEATS) if seat not in taken]
    match chance.choice(DONE):
        case "hold" if len(free) > 3:
            seats = chance.sample(free, chance.randint(1, 3))
            with suppress(SeatsTaken):  # the map frees what lapsed a moment later
                mine.append(await hold(app, show_id, an_owner(), *seats))
        case "pay" if held:
            await app.saga_runner.pay(payment_request(chance.choice(held)))
        case "decline" if held:
            await app.saga_runner.pay(payment_request(chance.choice(held), "tok_declined"))
        case "release" if held:
            await app.holds.cancel(await now_of(app, chance.choice(held)))
        case "lapse" if held:
            await Till(app, show_id).lapse(chance.choice(held).number)
            await SaleJobs(app.bookings, app.claims, app.seatmap, app.redis, app.config).sweep()
        case "reduce" if confirmed:
            booking = await now_of(app, chance.choice(confirmed))
            if len(booking.seats) > 1:
                some = (chance.choice(booking.seats),)
                await app.refunds.decide(a_refund(booking, what=RefundScope.SEATS, seats=some))
        case "refund" if confirmed:
            await app.refunds.decide(a_refund(await now_of(app, chance.choice(confirmed))))
        case "money" if confirmed:
            booking = await now_of(app, chance.choice(confirmed))
            await app.refunds.decide(a_refund(booking, what=RefundScope.MONEY, amount_minor=1))


async def by_the_ledger(app: App, show_id: int) -> dict[str, Any]:
    """The same sums, over bookings, moves, tickets and refunds themselves."""
    row = require_row(
        await app.postgres.fetchrow(
            """
        SELECT (SELECT count(*) FROM booking WHERE show_id = $1) AS held,
               (SELECT count(DISTINCT number) FROM payment WHERE show_id = $1) AS paying,
               (SELECT count(*) FROM booking WHERE show_id = $1 AND confirmed_at IS NOT NULL) AS confirmed,
               (SELECT count(*) FROM booking WHERE show_id = $1 AND state = 'expired') AS lapsed,
               (SELECT count(*) FROM booking WHERE show_id = $1 AND state = 'cancelled') AS cancelled,
               (SELECT count(*) FROM booking WHERE show_id = $1 AND state = 'refunded') AS refunded,
               (SELECT coalesce(sum(amount_minor), 0)::bigint FROM booking
                 WHERE show_id = $1 AND state = 'confirmed') AS amount,
               (SELECT count(*) FROM taken_seat JOIN booking USING (show_id, number)
                 WHERE show_id = $1 AND state = 'confirmed') AS sold,
               (SELECT count(*) FROM ticket WHERE show_id = $1 AND voided_at IS NOT NULL) AS returned,
               (SELECT coalesce(sum(amount_minor), 0)::bigint FROM refund WHERE show_id = $1) AS refunds,
               (SELECT coalesce(sum(amount_minor), 0)::bigint FROM refund
                 WHERE show_id = $1 AND state = 'done') AS done
        """,
            show_id,
        )
    )
    return dict(row)


def figures_by_name(result: ShowFigures) -> dict[str, Any]:
    sale = result.figures
    funnel = msgspec.structs.asdict(sale.funnel)
    assert funnel.pop("failed") == 0
    return funnel | {
        "amount": sum(one.amount_minor for one in sale.revenue),
        "sold": sale.seats_sold,
        "returned": sale.seats_returned,
        "refunds": sum(one.amount_minor for one in sale.refunds),
        "done": sum(one.done_minor for one in sale.refunds),
    }


async def revenue_by_the_ledger(app: App, show_id: int, layout: Layout) -> dict[str, tuple[int, ...]]:
    sums: dict[str, tuple[int, ...]] = {}
    rows = await app.postgres.fetch(
        "SELECT unnest(seats) AS seat, unnest(prices_minor) AS price FROM booking"
        " WHERE show_id = $1 AND state = 'confirmed'",
        show_id,
    )
    for row in rows:
        name, line = layout.categories[layout.category_of[row["seat"]]].name, TERMS.lines(row["price"])
        more = (1, line.price_minor, line.base_minor, line.fee_minor, line.tax_minor)
        sums[name] = tuple(a + b for a, b in zip(sums.get(name, (0,) * 5), more, strict=True))
    return sums


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_figures_match_the_ledger_after_any_actions(app: App, seed: int) -> None:
    layout, chance, mine = two_categories(), random.Random(seed), list[Booking]()
    show_id = await cast.a_show(app, layout=layout, sold_on=TERMS)
    for _ in range(60):
        await a_booking_moves(app, show_id, chance, mine)

    await hears(app)
    result = await figures(app, show_id)

    assert result.figures.seats_sold > 0
    assert result.figures.seats_returned > 0
    assert figures_by_name(result) == await by_the_ledger(app, show_id)
    assert {
        one.category: (one.seats, one.amount_minor, one.base_minor, one.fee_minor, one.tax_minor)
        for one in result.figures.revenue
    } == await revenue_by_the_ledger(app, show_id, layout)
    assert sum(one.sold - one.returned for one in result.minutes) == result.figures.seats_sold

    for _ in range(2):
        oldest = await app.postgres.fetchval("SELECT min(id) FROM outbox WHERE show_id = $1", show_id)
        assert await app.outbox.replay(GROUP, oldest) > 0
        await hears(app)
        assert await figures(app, show_id) == result

    await app.reports.rebuild_show(show_id)
    assert await figures(app, show_id) == result


async def test_a_rebuild_corrects_figures_and_facts_consumed_later_change_nothing(app: App) -> None:
    show_id = await cast.a_show(app, 10, sold_on=TERMS)
    booking = await bought(app, show_id, 1, 2)
    await app.refunds.decide(a_refund(booking, what=RefundScope.SEATS, seats=(2,)))
    await app.postgres.execute(
        "INSERT INTO report_stage (show_id, number, stage, at) VALUES ($1, 1, 'confirmed', now())", show_id
    )

    await app.reports.rebuild_show(show_id)  # before any fact was consumed
    result = await figures(app, show_id)
    await hears(app)

    assert (result.figures.seats_sold, result.figures.seats_returned, result.figures.funnel.confirmed) == (
        1,
        1,
        1,
    )
    assert await figures(app, show_id) == result


async def test_a_block_is_not_counted_as_a_booking(app: App) -> None:
    show_id = await cast.a_show(app, 10)
    await app.seatmap.rebuild(show_id, "test")
    number = await app.holds.block(show_id, (1, 2), "band", 1)
    assert isinstance(number, int)
    await app.holds.unblock(await Till(app, show_id).booking(number), 1)

    await hears(app)
    consumed = await figures(app, show_id)
    await app.reports.rebuild_show(show_id)

    assert consumed.figures.funnel.held == 0
    assert await figures(app, show_id) == consumed


async def test_entries_are_counted_by_gate_and_minute_without_undone_ones(app: App) -> None:
    doorway = await a_doorway(app)
    north, south = await doorway.stand("North"), await doorway.stand("South")
    codes = [(await doorway.ticket(seat))[1] for seat in range(4)]
    await north.scans(codes[0])
    await north.scans(codes[0])  # used: not admitted
    await south.scans(codes[1])
    await south.scans(codes[2])
    await south.scans(codes[2], Way.EXIT)
    mistake = await north.scans(codes[3])
    await app.checkin.undo(north.account_id, doorway.till.show, mistake.check_in_id, a_scan())

    result = (await figures(app, doorway.till.show)).gates

    sums = {
        gate: (
            sum(one.came_in for one in result if one.gate == gate),
            sum(one.went_out for one in result if one.gate == gate),
        )
        for gate in ("North", "South")
    }
    assert sums == {"North": (1, 0), "South": (2, 1)}


async def test_a_sheet_has_every_seat_and_runs_nothing(app: App) -> None:
    show_id = await cast.a_show(app, layout=two_categories(), sold_on=TERMS)
    booking = await bought(app, show_id, 1, 25)
    await bought(app, show_id, 2)
    await app.refunds.decide(a_refund(booking, what=RefundScope.SEATS, seats=(1,)))
    await hears(app)

    text = b"".join([page async for page in app.reports.sheet([show_id])]).decode()

    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [(row["seat"], row["price_minor"], bool(row["returned_at"])) for row in rows] == [
        ("A-2", "0", True),
        ("Y-6", "1500", False),
        ("A-3", "1500", False),
    ]
    assert rows[1]["category"] == "'" + EVIL


async def test_an_operator_can_rebuild_all_figures(app: App) -> None:
    show_id = await cast.a_show(app, 10, sold_on=TERMS)
    await bought(app, show_id, 1)
    env = engines_of(where_sold(app.config))

    process = await started(
        *("-m", "holdfast", "figures", "rebuild", "--json"),
        env={**clean(), **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()

    assert process.returncode == 0, errors.decode()
    assert msgspec.json.decode(output)["shows"] >= 1
    assert (await figures(app, show_id)).figures.seats_sold == 1
