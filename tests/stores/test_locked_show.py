"""One show never slows another: a show whose rows are locked makes only its own buyers wait.

Rebuilds, price changes and every other change of a show lock its sale; an organiser's transaction locks
bookings. Holds, payments and refunds of all shows share their round trips, so without care each of these
locks would be felt in the whole house.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from holdfast.app import App
from holdfast.bookings import Booking, BookingState, OpeningRefused
from holdfast.config import Config
from holdfast.errors import Busy
from holdfast.payments.gateway import Charge, GatewayAnswer
from holdfast.payments.payment import Payment
from holdfast.payments.saga import PaymentStep
from holdfast.payments.store import CapturedPayment
from holdfast.refunds.refund import RefundDecision
from tests.support.claim_pool import Pool
from tests.support.ledger_payments import YES, confirmed, paying, request_for
from tests.support.opened import open_app
from tests.support.own_engines import hold
from tests.support.paid_bookings import a_refund
from tests.support.show_fixture import Till, a_till, an_owner, other_ledger
from tests.support.wait import a_statement_waits, until

LOCKED = OpeningRefused("locked")
BOOKINGS = "SELECT 1 FROM booking WHERE show_id = $1 FOR UPDATE"


@asynccontextmanager
async def locked(
    till: Till, sql: str = "SELECT 1 FROM sale WHERE show_id = $1 FOR UPDATE"
) -> AsyncIterator[None]:
    """Another session has the lock that a rebuild or a change of the show takes."""
    elsewhere, _ = other_ledger(till.app)
    try:
        async with elsewhere.transaction() as tx:
            await tx.execute(sql, till.show)
            yield
    finally:
        await elsewhere.close()


async def two_tills(app: App) -> tuple[Till, Till]:
    tills = await a_till(app), await a_till(app)
    for till in tills:
        await app.seatmap.rebuild(till.show, "test")
    return tills


async def test_a_hold_does_not_wait_for_the_lock_of_another_show(app: App) -> None:
    changed, other = await two_tills(app)

    async with locked(changed):
        waiting = [asyncio.create_task(hold(app, changed.show, an_owner(), seat)) for seat in range(3)]
        for seat in range(5):
            booking = await hold(app, other.show, an_owner(), seat)
            assert booking.show_id == other.show
        assert not any(task.done() for task in waiting)

    assert {(await task).show_id for task in waiting} == {changed.show}
    assert sorted(await changed.taken()) == [0, 1, 2]


async def test_a_batch_skips_the_locked_show_and_opens_the_others(app: App) -> None:
    changed, other = await two_tills(app)
    openings = [till.opening(seat, owner_id=an_owner()) for seat in (1, 2) for till in (changed, other)]

    async with locked(changed):
        outcomes = await other.open_many(openings)

    assert [type(outcome) for outcome in outcomes[1::2]] == [Booking, Booking]
    assert outcomes[::2] == [LOCKED, LOCKED]
    assert await changed.taken() == {}
    assert await changed.violations() == await other.violations() == []


async def test_a_lock_on_another_row_of_a_show_stops_that_show_alone(app: App) -> None:
    """A refund has the counter of one owner: the batch is split, and the other show's part is opened."""
    changed, other = await two_tills(app)
    await changed.opened(9)

    async with locked(changed, "SELECT 1 FROM owner_count WHERE show_id = $1 FOR UPDATE"):
        waiting = asyncio.create_task(hold(app, changed.show, changed.owner, 1))
        booking = await hold(app, other.show, an_owner(), 1)
        assert not waiting.done()

    assert booking.show_id == other.show
    assert (await waiting).seats == (1,)


async def test_a_buyer_who_cannot_wait_longer_gets_the_seats_back_into_the_sale(config: Config) -> None:
    """Refused as busy; a claim that stayed would keep the seat from everyone for ten minutes."""
    async with open_app(replace(config, sale_lock_wait_ms=50)) as hasty:
        till = await a_till(hasty)
        await hasty.seatmap.rebuild(till.show, "test")
        async with locked(till):
            with pytest.raises(Busy):
                await hold(hasty, till.show, an_owner(), 4)

        assert await Pool(hasty.claims, hasty.redis, till.show).states() == "A" * 50
        assert (await hold(hasty, till.show, an_owner(), 4)).seats == (4,)


async def test_a_show_that_stays_locked_gives_its_place_back_when_it_is_free_again(app: App) -> None:
    """After the lock its holds travel with all others again."""
    changed, other = await two_tills(app)
    async with locked(changed):
        waiting = asyncio.create_task(hold(app, changed.show, an_owner(), 1))
        await hold(app, other.show, an_owner(), 1)
    await waiting

    await until(lambda: asyncio.sleep(0, app.holds.locked_shows == 0))
    both = await asyncio.gather(*(hold(app, till.show, an_owner(), 2) for till in (changed, other)))
    assert [booking.seats for booking in both] == [(2,), (2,)]


async def test_a_hold_is_not_cancelled_while_its_map_is_rebuilt(app: App) -> None:
    """The rebuild has read its row: the new map would have the claim, and the release went to the old one."""
    changed, other = await two_tills(app)
    theirs = await hold(app, changed.show, an_owner(), 1)
    ours = [await hold(app, other.show, an_owner(), seat) for seat in range(5)]

    async with locked(changed):
        waiting = asyncio.ensure_future(app.holds.cancel(theirs))
        await until(lambda: a_statement_waits(app.postgres))
        for booking in ours:
            assert (await app.holds.cancel(booking)).state is BookingState.CANCELLED
        assert not waiting.done()
        assert sorted(await changed.taken()) == [1]

    assert (await waiting).state is BookingState.CANCELLED
    assert await changed.taken() == await other.taken() == {}
    assert await changed.violations() == await other.violations() == []


async def test_a_hold_that_is_extended_beside_a_rebuild_has_its_new_end_in_the_map(app: App) -> None:
    """The rebuild has read the old end: its map would end the claim while the buyer still holds the seat."""
    changed, other = await two_tills(app)
    theirs, ours = await hold(app, changed.show, an_owner(), 1), await hold(app, other.show, an_owner(), 1)
    pool = Pool(app.claims, app.redis, changed.show)

    async with locked(changed):
        extending = asyncio.ensure_future(app.holds.extend(theirs, 1200))
        await until(lambda: a_statement_waits(app.postgres))
        assert (await app.holds.extend(ours, 1200)).expires_at > ours.expires_at
        assert not extending.done()
        await pool.settle("extend", theirs.claim, 60_000)  # the map that is published has the old end

    assert (await extending).expires_at > theirs.expires_at
    claims = (await pool.map()).claims or {}
    assert claims[str(theirs.claim)] > await pool.now_ms() + 1_000_000


async def test_holds_are_not_merged_and_blocks_not_released_while_their_map_is_rebuilt(app: App) -> None:
    till, _ = await two_tills(app)
    owner = an_owner()
    first, added = await hold(app, till.show, owner, 1), await hold(app, till.show, owner, 2)
    number = await app.holds.block(till.show, [5], "", owner)
    assert isinstance(number, int)
    block = await till.booking(number)

    async with locked(till):
        with pytest.raises(Busy):
            await app.bookings.merge(first, added, life_max_s=1800)
        with pytest.raises(Busy):
            await app.holds.unblock(block, owner)
    await app.holds.unblock(block, owner)

    assert sorted(await till.taken()) == [1, 2]
    assert await till.violations() == []


async def paid(app: App, till: Till, seat: int) -> Booking:
    return await till.booking((await confirmed(app, await paying(app, till.show, seat))).number)


async def test_a_refund_does_not_wait_for_the_lock_of_another_show(app: App) -> None:
    changed, other = await two_tills(app)
    theirs, ours = await paid(app, changed, 1), await paid(app, other, 1)

    async with locked(changed):
        waiting = asyncio.ensure_future(app.refund_store.decide(a_refund(theirs)))
        decided = await app.refund_store.decide(a_refund(ours))
        assert not waiting.done()

    assert [decided.outcome, (await waiting).outcome] == ["decided", "decided"]
    assert await changed.taken() == await other.taken() == {}
    assert await changed.violations() == await other.violations() == []


async def test_a_refund_of_a_show_that_stays_locked_is_refused_as_busy(config: Config) -> None:
    async with open_app(replace(config, sale_lock_wait_ms=50)) as hasty:
        changed, other = await two_tills(hasty)
        theirs, ours = await paid(hasty, changed, 1), await paid(hasty, other, 1)

        async with locked(changed):
            refused, decided = await asyncio.gather(
                *(hasty.refund_store.decide(a_refund(booking)) for booking in (theirs, ours)),
                return_exceptions=True,
            )

        assert isinstance(decided, RefundDecision)
        assert decided.outcome == "decided"
        assert isinstance(refused, Busy)
        assert refused.details["retry_after_s"] == 1
        assert (await changed.booking(theirs.number)).seats == (1,)
        assert (await hasty.refund_store.decide(a_refund(theirs))).outcome == "decided"


async def test_a_payment_starts_without_waiting_for_a_locked_booking_of_another_show(app: App) -> None:
    changed, other = await two_tills(app)
    theirs, ours = await hold(app, changed.show, an_owner(), 1), await hold(app, other.show, an_owner(), 1)

    async with locked(changed, BOOKINGS):
        waiting = asyncio.ensure_future(app.payments.start(request_for(theirs)))
        started = await app.payments.start(request_for(ours))
        assert not waiting.done()

    assert [started.outcome, (await waiting).outcome] == ["charge", "charge"]


def captured(payment: Payment) -> CapturedPayment:
    charge = replace(YES, amount_minor=payment.amount_minor, currency=payment.currency)
    return CapturedPayment(payment, charge, 100, 50)


async def test_a_payment_is_confirmed_without_waiting_for_a_locked_booking_of_another_show(app: App) -> None:
    changed, other = await two_tills(app)
    theirs, ours = await paying(app, changed.show, 1), await paying(app, other.show, 1)

    async with locked(changed, BOOKINGS):
        waiting = asyncio.ensure_future(app.payments.confirm(captured(theirs)))
        after = await app.payments.confirm(captured(ours))
        assert not waiting.done()

    assert [after.step, (await waiting).step] == [PaymentStep.PAID, PaymentStep.PAID]
    assert await changed.violations() == await other.violations() == []


async def test_payments_that_end_do_not_wait_long_for_a_locked_booking(app: App) -> None:
    """Their connection is needed; the job takes them up again, and nothing was written meanwhile."""
    till, _ = await two_tills(app)
    declined, expired, late = [await paying(app, till.show, seat) for seat in (1, 2, 3)]
    late = await confirmed(app, await app.payments.release(late, is_sure=False))
    no = Charge(answer=GatewayAnswer.NO)

    async with locked(till, BOOKINGS):
        for ending in (
            app.payments.give_back(declined, no, PaymentStep.DECLINED),
            app.payments.release(expired, is_sure=True),
            app.payments.book_late(late, may_book=True),
        ):
            with pytest.raises(Busy):
                await ending

    assert (await app.payments.give_back(declined, no, PaymentStep.DECLINED)).step is PaymentStep.DECLINED
    assert (await app.payments.release(expired, is_sure=True)).step is PaymentStep.EXPIRED
    assert (await app.payments.book_late(late, may_book=True)).step is PaymentStep.PAID
    assert await till.violations() == []


async def test_the_holds_of_a_cancelled_show_do_not_wait_long_for_its_lock(app: App) -> None:
    till, _ = await two_tills(app)
    held = await hold(app, till.show, an_owner(), 1)

    async with locked(till):
        with pytest.raises(Busy):
            await app.refund_store.let_holds_go([held])

    assert [claim.units for claim in await app.refund_store.let_holds_go([held])] == [(1,)]
    assert await till.taken() == {}
