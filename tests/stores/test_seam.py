"""Redis decides fast, PostgreSQL decides for good: the rules where the two meet, each with what it stops.

Every test here is an interleaving that would sell a seat twice, lose a hold or show a sold seat as free.
Rule 14 needs payments. What becomes of a lost or a stopped engine is in test_seam_redis_lost.py and
test_seam_engine_away.py.
"""

import asyncio
import time
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from holdfast.bookings import Booking, BookingState, Extension, HoldGone, booking_page
from holdfast.catalogue.store import store_layout
from holdfast.claim import Settlement
from holdfast.holds import OverLimit, SeatsTaken
from holdfast.layouts import Layout, LayoutBody
from holdfast.layouts.body import RowBody
from holdfast.organisers.show_forms import ShowChange
from holdfast.organisers.shows_store import ShowEditor
from holdfast.payments.gateway import Charge, GatewayAnswer
from holdfast.payments.saga import PaymentStep
from holdfast.payments.store import CapturedPayment
from holdfast.web.caller import Scope
from tests.support.ledger_payments import request_for
from tests.support.own_engines import Stage, a_request, claims_of, hold, shown
from tests.support.show_fixture import Till, an_owner
from tests.support.wait import until


class TestRule1OpenIsAllOrNothing:
    async def test_a_pair_with_one_seat_taken_leaves_no_half_booking(self, stage: Stage) -> None:
        """Redis has lost seat 4; a careless insert would store seat 3 for a buyer who was refused."""
        till = await stage.till()
        winner = await hold(stage.app, till.show, an_owner(), 4)
        await stage.pool(till.show).settle("release", winner.claim)

        with pytest.raises(SeatsTaken) as refused:
            await hold(stage.app, till.show, an_owner(), 3, 4)

        assert refused.value.details["taken"] == ["A-5"]
        assert await till.taken() == {4: winner.number}
        assert await shown(stage.app, till.show) == "AAAAH" + "A" * 15

    async def test_best_available_goes_on_to_seats_that_the_ledger_has(self, stage: Stage) -> None:
        """Redis has lost the booking of the best seats: any others will do for a buyer who named none."""
        till = await stage.till()
        winner = await hold(stage.app, till.show, an_owner(), best=2)
        await stage.pool(till.show).settle("release", winner.claim)

        second = await hold(stage.app, till.show, an_owner(), best=2)

        assert not set(second.seats) & set(winner.seats)
        assert await till.taken() == dict.fromkeys(winner.seats, winner.number) | dict.fromkeys(
            second.seats, second.number
        )

    async def test_a_lapsed_row_goes_before_the_insert_that_needs_its_seat(self, stage: Stage) -> None:
        """No sweep has run; an insert that runs before the hold is expired would refuse a free seat."""
        till = await stage.till()
        first = await _lapsed(stage, till, 4)

        second = await hold(stage.app, till.show, an_owner(), 4, 5)

        assert await till.taken() == {4: second.number, 5: second.number}
        assert await till.facts(first.number) == ["booking.held", "booking.expired"]


@pytest.mark.alone
class TestRule2DurationsCrossTheSeam:
    async def test_the_row_ends_before_its_claim_however_long_the_row_took(self, stage: Stage) -> None:
        """A row that counted its time from when it was written would outlive its claim: the seat shows as
        free, and a buyer who takes it is refused."""
        till = await stage.till(hold_ttl_s=30)
        async with stage.between(till.show):
            holding = asyncio.create_task(hold(stage.slow, till.show, an_owner(), 4))
            await asyncio.sleep(0.4)
            assert await shown(stage.app, till.show) == "AAAAH" + "A" * 15
        booking = await holding

        row_left_ms = (
            booking.expires_at - await till.postgres.fetchval("SELECT now()")
        ).total_seconds() * 1000
        claim_left_ms = (await claims_of(stage, till.show))[str(booking.claim)]

        assert 0 < claim_left_ms - row_left_ms < 350

    async def test_who_gets_past_redis_a_moment_early_waits_for_the_row(self, stage: Stage) -> None:
        """The engines' clocks differ: without a second try a seat is refused that is as good as free."""
        till = await stage.till()
        first = await hold(stage.app, till.show, an_owner(), 4)
        await till.lapse(first.number, ago_ms=-300)
        await stage.pool(till.show).settle("release", first.claim)

        began = time.monotonic()
        second = await hold(stage.app, till.show, an_owner(), 4)

        assert 0.25 < time.monotonic() - began < 0.9
        assert await till.taken() == {4: second.number}
        assert await till.violations() == []

    async def test_a_correction_of_the_map_carries_the_rows_end(self, stage: Stage) -> None:
        """A row written into the map for the whole time again would block the seat long after it lapsed."""
        till = await stage.till()
        first = await hold(stage.app, till.show, an_owner(), 4)
        await till.lapse(first.number, ago_ms=-5000)
        await stage.pool(till.show).settle("release", first.claim)

        with pytest.raises(SeatsTaken):
            await hold(stage.app, till.show, an_owner(), 4)

        assert await shown(stage.app, till.show) == "AAAAH" + "A" * 15
        assert 3000 < (await claims_of(stage, till.show))[str(first.claim)] <= 5000


class TestRule3AClaimFreesItsOwnSeatsOnly:
    async def test_a_late_cancellation_frees_no_seats_of_the_next_owner(self, stage: Stage) -> None:
        """Freed by seat number, the next owner's seat would show as free and be claimed a third time."""
        till = await stage.till()
        late = await _lapsed(stage, till, 4)
        await hold(stage.app, till.show, an_owner(), 4)

        with pytest.raises(HoldGone):
            await stage.app.holds.cancel(late)
        await stage.pool(till.show).settle("release", late.claim)

        assert await shown(stage.app, till.show) == "AAAAH" + "A" * 15

    async def test_a_second_try_that_lost_does_not_free_its_first(self, stage: Stage) -> None:
        """The same request twice at once: PostgreSQL reports a repeat, and its claim is the other's."""
        till = await stage.till()
        order = await a_request(stage.app, till.show, an_owner(), 4, request_id="twice")

        await asyncio.gather(*(app.holds.hold(order) for app in (stage.app, stage.slow) for _ in range(3)))

        assert await shown(stage.app, till.show) == "AAAAH" + "A" * 15
        assert await till.rows() == 1


@pytest.mark.alone
class TestRule4ExtendTheClaimFirst:
    async def test_the_claim_has_its_new_end_before_the_row_has(self, stage: Stage) -> None:
        """The other way round, a crash in between leaves a row whose seats show as free."""
        till = await stage.till(hold_ttl_s=30)
        booking = await hold(stage.app, till.show, an_owner(), 4)
        pool = stage.pool(till.show)
        await pool.settle("extend", booking.claim, 5000)
        await till.lapse(booking.number, ago_ms=-4900)

        async with till.postgres.transaction() as tx:
            await tx.execute("SELECT 1 FROM booking WHERE show_id = $1 FOR UPDATE", till.show)
            extending = asyncio.create_task(stage.app.holds.extend(booking, 30))

            async def has_time() -> bool:
                return (await claims_of(stage, till.show))[str(booking.claim)] > 25_000

            await until(has_time, within_s=2)
            assert not extending.done()

        extended = await extending
        assert (extended.expires_at - datetime.now(UTC)).total_seconds() > 25

    async def test_extending_never_takes_time_from_the_claim(self, stage: Stage) -> None:
        """A show may hold longer than the cap on extensions: the row keeps its end, and so must the claim."""
        till = await stage.till(hold_ttl_s=3600)
        booking = await hold(stage.app, till.show, an_owner(), 4)

        extended = await stage.app.holds.extend(booking, 3600)

        assert extended.expires_at == booking.expires_at
        assert (await claims_of(stage, till.show))[str(booking.claim)] > 3_590_000

    async def test_an_extended_row_whose_claim_was_lost_has_one_again(self, stage: Stage) -> None:
        """Otherwise its seats show as free for as long as it was extended."""
        till = await stage.till()
        booking = await hold(stage.app, till.show, an_owner(), 4)
        await stage.pool(till.show).settle("release", booking.claim)

        await stage.app.holds.extend(booking, 600)

        assert await shown(stage.app, till.show) == "AAAAH" + "A" * 15


class TestRule8LimitsHoldInTheLedger:
    async def test_a_redis_that_lost_its_counts_does_not_lift_them(self, stage: Stage) -> None:
        """Without a counter in the ledger, losing one key sells a person the house."""
        till = await stage.till(owner_seats_max=4)
        owner = an_owner()
        await hold(stage.app, till.show, owner, 0, 1, 2)
        await stage.app.redis.call("HDEL", stage.pool(till.show).key("owners"), owner)

        with pytest.raises(OverLimit):
            await hold(stage.app, till.show, owner, 5, 6)

        assert await shown(stage.app, till.show) == "HHH" + "A" * 17
        assert await till.counted(owner) == 3


class TestRule9TheLedgerKnowsARequest:
    async def test_a_retried_best_available_gets_its_first_seats_and_no_others(self, stage: Stage) -> None:
        """Redis forgot the request and chose other seats: without the rule, two pairs for one request."""
        till = await stage.till()
        owner = an_owner()
        first = await hold(stage.app, till.show, owner, best=2, request_id="best")
        pool = stage.pool(till.show)
        await stage.app.redis.call("HDEL", pool.key("owners"), f"#{first.claim_id}")

        again = await hold(stage.app, till.show, owner, best=2, request_id="best")

        assert (again.number, again.seats) == (first.number, first.seats)
        assert (await shown(stage.app, till.show)).count("H") == 2
        assert await pool.has(owner) == 2

    async def test_a_retry_of_what_was_cancelled_keeps_no_seats(self, stage: Stage) -> None:
        """The ledger answers "that booking is over"; the claim made on the way to it must go."""
        till = await stage.till()
        order = await a_request(stage.app, till.show, an_owner(), 4, request_id="over")
        booking = await stage.app.holds.hold(order)
        await stage.app.holds.cancel(booking)

        with pytest.raises(HoldGone):
            await stage.app.holds.hold(order)

        assert await shown(stage.app, till.show) == "A" * 20

    async def test_a_retry_after_the_price_changed_has_the_first_price(self, stage: Stage) -> None:
        """The price of a seat is frozen at its hold, and so is the answer."""
        till = await stage.till()
        owner = an_owner()
        first = await hold(stage.app, till.show, owner, 4, request_id="price")
        await _change(stage, till.show, ShowChange(prices={"Standard": 9900}))

        again = await hold(stage.app, till.show, owner, 4, request_id="price")
        other = await hold(stage.app, till.show, an_owner(), 5)

        assert again.amount_minor == first.amount_minor == 1500
        assert other.amount_minor == 9900


class TestRule10ABlockIsARow:
    async def test_a_block_missing_from_the_map_cannot_be_held(self, stage: Stage) -> None:
        """Stored in Redis alone, a block would be gone with Redis."""
        till = await stage.till()
        await stage.app.bookings.block(till.show, [4, 5], "camera", an_owner())
        assert await shown(stage.app, till.show) == "A" * 20

        with pytest.raises(SeatsTaken):
            await hold(stage.app, till.show, an_owner(), 4)

        assert await shown(stage.app, till.show) == "AAAAXX" + "A" * 14

    async def test_an_unblocking_that_comes_late_frees_no_seat_of_another_owner(self, stage: Stage) -> None:
        till = await stage.till()
        await stage.app.holds.block(till.show, [4, 5], "camera", an_owner())
        (block,) = await stage.app.bookings.blocks(till.show)
        await stage.app.bookings.cancel(block, an_owner())
        await stage.app.bookings.mark_map_stale(till.show)
        await stage.app.seatmap.rebuild(till.show, "test")
        await hold(stage.app, till.show, an_owner(), 5)

        await stage.app.claims.settle_many(till.show, [Settlement("unblock", block.claim)])

        assert await shown(stage.app, till.show) == "AAAAAH" + "A" * 14


class TestRule11SeatNumbersOnlyGrow:
    async def test_a_grown_layout_keeps_every_booking_on_its_seat(self, stage: Stage) -> None:
        """With new numbers, earlier bookings would have other seats."""
        till = await stage.till()
        booking = await hold(stage.app, till.show, an_owner(), 12)
        show = await stage.app.catalogue.show_on_sale(till.show)
        label = show.layout.labels[12]
        (section,) = show.layout.body.sections
        front = RowBody(label="Z", seats="1-4", at=(0.0, 0.5), align="centre", category="Standard")
        grown = Layout.build(_with_row_in_front(show.layout, front), after=show.layout)
        await store_layout(stage.app.postgres, grown)

        await _change(stage, till.show, ShowChange(layout_hash=grown.hash))
        await stage.jobs().rebuild_stale()
        await hold(stage.app, till.show, an_owner(), grown.index_of["Z-2"])

        after = await stage.app.catalogue.show_on_sale(till.show)
        page = booking_page(await till.booking(booking.number), after, after.terms)
        assert [seat.label for seat in page.seats] == [label]
        assert len(section.rows) == 2
        assert await shown(stage.app, till.show) == "A" * 12 + "H" + "A" * 7 + "AHAA"


class TestRule12TheFence:
    async def test_a_step_with_an_older_fence_changes_nothing(self, stage: Stage) -> None:
        """A process that read the booking before its last change must not decide about its current state."""
        till = await stage.till()
        ledger, late = stage.app.bookings, await till.opened(4)
        change = "UPDATE booking SET fence = nextval('ledger_number'), state = $2 WHERE show_id = $1"

        await till.postgres.execute(change, till.show, BookingState.HELD)
        assert await ledger.cancel(late, late.owner_id) is None
        assert await ledger.extend_holds([Extension(till.show, late.number, late.fence, 600, 1800)]) == [None]

    async def test_money_of_an_attempt_with_an_older_fence_confirms_nothing(self, stage: Stage) -> None:
        """Its answer came when the payer had tried again: the second attempt decides, this one is late."""
        till = await stage.till()
        payments, booking = stage.app.payments, await till.opened(4)
        first = (await payments.start(request_for(booking))).payment
        assert first is not None
        await payments.give_back(first, Charge(answer=GatewayAnswer.NO), PaymentStep.DECLINED)
        second = (await payments.start(request_for(booking))).payment
        assert second is not None

        came = Charge(answer=GatewayAnswer.YES, reference="pay_1", amount_minor=1500, currency="EUR")
        (late,) = await payments.confirm_many([CapturedPayment(first, came, 0, 0)])
        (paid,) = await payments.confirm_many([CapturedPayment(second, came, 0, 0)])

        assert (late.step, late.booking_state) == (PaymentStep.LATE, BookingState.PAYING)
        assert (paid.step, paid.booking_state) == (PaymentStep.PAID, BookingState.CONFIRMED)

    async def test_the_number_after_a_lost_redis_is_still_a_later_one(self, stage: Stage) -> None:
        """A counter in Redis starts again when Redis does."""
        till = await stage.till()
        first = await hold(stage.app, till.show, an_owner(), 4)
        await stage.app.redis.call("FLUSHALL")

        assert (await hold(stage.app, till.show, an_owner(), 5)).fence > first.fence


class TestRule13FactsStay:
    async def test_every_move_is_published_and_never_lost(self, stage: Stage) -> None:
        """A fact that is only sent is lost with the process that was to send it."""
        till = await stage.till()
        held = await hold(stage.app, till.show, an_owner(), 4)
        gone = await hold(stage.app, till.show, an_owner(), 5)
        await stage.app.holds.cancel(gone)
        await stage.app.redis.call("FLUSHALL")
        await stage.jobs().sweep()

        assert await till.facts(held.number) == ["booking.held"]
        assert await till.facts(gone.number) == ["booking.held", "booking.cancelled"]
        assert await till.violations() == []


async def _lapsed(stage: Stage, till: Till, seat: int) -> Booking:
    """A hold whose time has just passed on both clocks, and whose row is not closed."""
    booking = await hold(stage.app, till.show, an_owner(), seat)
    await till.lapse(booking.number)
    await stage.pool(till.show).settle("extend", booking.claim, 1)
    await asyncio.sleep(0.003)
    return booking


async def _change(stage: Stage, show_id: int, change: ShowChange) -> None:
    app = stage.app
    await ShowEditor(app.postgres, app.catalogue, app.config, Scope(1, True)).change_show(show_id, change)


def _with_row_in_front(layout: Layout, row: RowBody) -> LayoutBody:
    (section,) = layout.body.sections
    return replace(layout.body, sections=[replace(section, rows=[row, *section.rows])])
