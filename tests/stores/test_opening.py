"""Winners of the race become durable: all requested seats, or none; many in one round trip."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from msgspec.structs import replace

from holdfast.app import App
from holdfast.bookings import (
    AlreadyOpened,
    Booking,
    Bookings,
    BookingState,
    OpeningOutcome,
    OpeningRefused,
    SeatsLost,
)
from holdfast.engines.metrics import metrics
from tests.support.show_fixture import Till, a_till, an_owner, other_ledger
from tests.support.wait import until


@pytest.fixture
async def till(app: App) -> Till:
    return await a_till(app)


@pytest.fixture
async def elsewhere(app: App) -> AsyncIterator[Bookings]:
    """The ledger of another process."""
    postgres, ledger = other_ledger(app)
    yield ledger
    await postgres.close()


class TestAllOrNothing:
    async def test_a_winner_has_every_seat_and_its_price(self, till: Till) -> None:
        booking = await till.opened(3, 4, price_minor=1700)

        assert (booking.seats, booking.prices_minor, booking.amount_minor) == ((3, 4), (1700, 1700), 3400)
        assert booking.state is BookingState.HELD
        assert await till.taken() == {3: booking.number, 4: booking.number}

    async def test_a_loser_leaves_no_row_at_all(self, till: Till) -> None:
        winner = await till.opened(4)
        loser = an_owner()

        answer = await till.open(3, 4, 5, owner_id=loser)

        assert isinstance(answer, SeatsLost)
        assert [(r.seat, r.claim.claim_id, r.state) for r in answer.rivals] == [
            (4, winner.claim_id, BookingState.HELD)
        ]
        assert await till.taken() == {4: winner.number}
        assert (await till.rows(), await till.counted(loser)) == (1, 0)
        assert await till.violations() == []

    async def test_of_two_in_one_batch_one_wins(self, till: Till) -> None:
        answers = await till.open_many([till.opening(3, 4), till.opening(3, 4, owner_id=an_owner())])

        assert sorted(type(answer).__name__ for answer in answers) == ["Booking", "SeatsLost"]
        assert await till.rows() == 1

    async def test_answers_come_in_the_order_of_the_requests(self, till: Till) -> None:
        await till.opened(10)
        openings = [till.opening(seat, owner_id=an_owner()) for seat in (12, 10, 11)]

        answers = await till.open_many(openings)

        assert [type(answer) for answer in answers] == [Booking, SeatsLost, Booking]

    async def test_losing_to_a_loser_reports_no_rival(self, till: Till) -> None:
        """1-2, 2-3 and 3-4 in one batch: the middle one gets nothing, so seat 3 is free in the end."""
        chain = [till.opening(*pair, owner_id=an_owner()) for pair in ((1, 2), (2, 3), (3, 4))]

        answers = await till.open_many(chain)

        live = set(await till.taken())
        blamed = {r.seat for answer in answers if isinstance(answer, SeatsLost) for r in answer.rivals}
        assert blamed <= live
        assert await till.violations() == []

    async def test_a_seat_that_comes_free_while_the_batch_looks_has_no_rival(self, till: Till) -> None:
        """A batch waits for one seat; meanwhile the owner of another, already found taken, lets go."""
        lapsed, live = await till.opened(3), await till.opened(4)
        await till.lapse(lapsed.number)

        async with till.postgres.transaction() as tx:
            await tx.execute("SELECT 1 FROM taken_seat WHERE show_id = $1 AND seat = 3 FOR UPDATE", till.show)
            waiting = asyncio.create_task(till.open(3, 4, owner_id=an_owner()))
            await until(lambda: _wait(till, 1))
            await till.ledger.cancel(live, till.owner)

        assert await waiting == SeatsLost(())
        assert await till.violations() == []

    async def test_batches_in_opposite_order_cannot_wait_for_each_other(
        self, till: Till, elsewhere: Bookings
    ) -> None:
        """One has seat 5 and waits for 10, to go on to 15; the other wants 15 and 5. Taken in the order they
        were requested, each would have what the other waits for."""
        before = _retries()
        here = [till.opening(seat, owner_id=an_owner()) for seat in (5, 10, 15)]
        there = [till.opening(seat, owner_id=an_owner()) for seat in (15, 5)]

        async with till.postgres.transaction() as tx:
            await tx.execute("INSERT INTO taken_seat (show_id, seat, number) VALUES ($1, 10, 0)", till.show)
            first = asyncio.create_task(till.open_many(here))
            await until(lambda: _wait(till, 1))
            second = asyncio.create_task(till.open_many(there, elsewhere))
            await until(lambda: _wait(till, 2))
            await tx.execute("DELETE FROM taken_seat WHERE show_id = $1 AND seat = 10", till.show)

        assert [type(answer) for answer in await first] == [Booking] * 3
        assert [type(answer) for answer in await second] == [SeatsLost] * 2
        assert _retries() == before

    async def test_batches_in_opposite_order_race_and_each_seat_has_one_winner(
        self, till: Till, elsewhere: Bookings
    ) -> None:
        for first in range(0, 48, 16):
            pairs = [(seat, seat + 1) for seat in range(first, first + 16, 2)]
            here = [till.opening(*pair, owner_id=an_owner()) for pair in pairs]
            there = [till.opening(*pair, owner_id=an_owner()) for pair in reversed(pairs)]

            answers = await asyncio.gather(till.open_many(here), till.open_many(there, elsewhere))

            won = [answer for batch in answers for answer in batch if isinstance(answer, Booking)]
            assert len(won) == 8
        taken = await till.taken()
        assert sorted(taken) == list(range(48))
        assert all(taken[seat] == taken[seat + 1] for seat in range(0, 48, 2))
        assert await till.violations() == []


class TestLapsedRows:
    async def test_of_the_requested_seats_are_released_in_passing(self, till: Till) -> None:
        lapsed = await till.opened(3, 4)
        await till.lapse(lapsed.number)

        winner = await till.opened(4, 5, owner_id=an_owner())

        assert await till.taken() == {4: winner.number, 5: winner.number}
        assert (await till.booking(lapsed.number)).state is BookingState.EXPIRED
        assert await till.moves(lapsed.number) == [("hold", "held"), ("expire", "expired")]
        assert await till.facts(lapsed.number) == ["booking.held", "booking.expired"]
        assert await till.counted() == 0
        assert await till.violations() == []

    async def test_are_released_even_if_the_buyer_loses_another_seat(self, till: Till) -> None:
        lapsed, live = await till.opened(3), await till.opened(4)
        await till.lapse(lapsed.number)

        assert isinstance(await till.open(3, 4, owner_id=an_owner()), SeatsLost)
        assert await till.taken() == {4: live.number}
        assert await till.violations() == []

    async def test_free_their_owner_to_hold_again_in_the_same_breath(self, app: App) -> None:
        till = await a_till(app, owner_seats_max=2)
        lapsed = await till.opened(3, 4)
        await till.lapse(lapsed.number)

        again = await till.opened(3, 4)

        assert again.state is BookingState.HELD
        assert await till.counted() == 2

    @pytest.mark.alone
    async def test_that_have_time_left_are_not_released(self, till: Till) -> None:
        live = await till.opened(3)
        await till.lapse(live.number, ago_ms=-400)

        answer = await till.open(3, owner_id=an_owner())

        assert isinstance(answer, SeatsLost)
        assert 0 < answer.rivals[0].left_ms <= 400

    async def test_are_closed_once_by_sweeps_and_openings_at_the_same_time(
        self, till: Till, elsewhere: Bookings
    ) -> None:
        lapsed = [await till.opened(seat, owner_id=an_owner()) for seat in range(20)]
        for booking in lapsed:
            await till.lapse(booking.number)
        openings = [till.opening(seat, owner_id=an_owner()) for seat in range(20)]

        closed, _, _, answers = await asyncio.gather(
            till.ledger.sweep(500),
            elsewhere.sweep(500),
            elsewhere.sweep(500),
            till.open_many(openings, elsewhere),
        )

        assert len(closed) == len(set(closed))
        for booking in lapsed:
            assert (await till.moves(booking.number)).count(("expire", "expired")) == 1
        assert {type(answer) for answer in answers} <= {Booking, SeatsLost}
        assert await till.violations() == []


class TestTheRowsTime:
    async def test_is_what_is_left_of_the_claims(self, till: Till) -> None:
        opening = till.opening(3, ttl_ms=10_000)
        now = time.monotonic()
        (answer,) = await till.ledger.open_many([replace(opening, claimed_at_s=now - 4)])

        assert isinstance(answer, Booking)
        left = answer.expires_at - answer.opened_at
        assert timedelta(seconds=5) < left <= timedelta(seconds=6)


class TestLimits:
    async def test_hold_though_redis_has_forgotten_everything(self, app: App) -> None:
        till = await a_till(app, owner_seats_max=4)
        await till.opened(0, 1, 2)

        assert await till.open(3, 4) == OpeningRefused("limit")
        assert await till.counted() == 3
        assert sorted(await till.taken()) == [0, 1, 2]
        assert await till.violations() == []

    async def test_count_several_bookings_of_one_owner_in_one_batch(self, app: App) -> None:
        till = await a_till(app, owner_seats_max=4)

        answers = await till.open_many([till.opening(seat, seat + 1) for seat in (0, 2, 4)])

        assert [type(answer) for answer in answers] == [Booking, Booking, OpeningRefused]
        assert await till.counted() == 4
        assert sorted(await till.taken()) == [0, 1, 2, 3]
        assert await till.violations() == []

    async def test_hold_for_one_owner_in_several_processes(self, app: App, elsewhere: Bookings) -> None:
        till = await a_till(app, owner_seats_max=4)
        here = [till.opening(seat, seat + 1) for seat in (0, 2, 4)]
        there = [till.opening(seat, seat + 1) for seat in (10, 12, 14)]

        await asyncio.gather(till.open_many(here), till.open_many(there, elsewhere))

        assert await till.counted() == len(await till.taken()) == 4
        assert await till.violations() == []

    async def test_are_given_back_by_a_cancellation(self, app: App) -> None:
        till = await a_till(app, owner_seats_max=2)
        booking = await till.opened(0, 1)

        assert await till.ledger.cancel(booking, till.owner) is not None
        assert (await till.opened(2, 3)).state is BookingState.HELD


class TestIdempotency:
    async def test_the_same_request_later_gives_the_same_booking(self, till: Till) -> None:
        opening = till.opening(3, 4)

        (first,) = await till.open_many([opening])
        (again,) = await till.open_many([opening])

        assert number_of(again) == number_of(first)
        assert await till.rows() == 1

    async def test_the_same_request_in_one_batch_gives_one_booking(self, till: Till) -> None:
        opening = till.opening(3, 4)

        first, again = await till.open_many([opening, opening])

        assert number_of(again) == number_of(first)
        assert await till.rows() == 1

    async def test_the_same_request_in_two_processes_gives_one_booking(
        self, till: Till, elsewhere: Bookings
    ) -> None:
        openings = [till.opening(seat) for seat in range(10)]

        here, there = await asyncio.gather(
            till.open_many(openings), till.open_many(list(reversed(openings)), elsewhere)
        )

        assert [number_of(one) for one in here] == [number_of(one) for one in reversed(there)]
        assert await till.rows() == 10
        assert await till.violations() == []

    async def test_the_same_request_for_other_seats_finds_its_first_booking(self, till: Till) -> None:
        """A retried "best available" that got other seats this time."""
        booking = await till.opened(3, 4, request_id="best")

        found = await till.open(7, 8, request_id="best")

        assert found == AlreadyOpened(replace(booking, is_replay=True))
        assert sorted(await till.taken()) == [3, 4]

    async def test_the_same_request_with_another_body_is_refused(self, till: Till) -> None:
        await till.opened(3, request_id="reused", body_hash=1)

        assert await till.open(5, request_id="reused", body_hash=2) == OpeningRefused("key_reused")
        assert sorted(await till.taken()) == [3]

    async def test_a_request_id_is_its_owners_own(self, till: Till) -> None:
        mine = await till.opened(3, request_id="shared")
        yours = await till.opened(4, request_id="shared", owner_id=an_owner())

        assert mine.number != yours.number

    async def test_twins_that_lose_are_both_refused(self, till: Till) -> None:
        """Both in one batch: the first is forgotten, and the second must not be answered from it."""
        await till.opened(3)
        twin = till.opening(3, owner_id=an_owner())

        answers = await till.open_many([twin, twin, till.opening(9, owner_id=an_owner())])

        assert [type(answer) for answer in answers] == [SeatsLost, SeatsLost, Booking]

    async def test_twins_over_the_limit_are_both_refused(self, app: App) -> None:
        till = await a_till(app, owner_seats_max=1)
        twin = till.opening(3, 4)

        assert await till.open_many([twin, twin]) == [OpeningRefused("limit")] * 2

    @pytest.mark.parametrize("end", ["cancelled", "lapsed"])
    async def test_a_request_whose_booking_ended_is_refused(self, till: Till, end: str) -> None:
        """Its seats are free for other buyers: it must not be answered as if it still had them."""
        opening = till.opening(3, 4)
        (first,) = await till.open_many([opening])
        assert isinstance(first, Booking)
        if end == "lapsed":
            await till.lapse(first.number)
        else:
            await till.ledger.cancel(await till.booking(first.number), till.owner)

        (again,) = await till.open_many([opening])

        assert isinstance(again, AlreadyOpened)
        assert again.booking.state in (BookingState.CANCELLED, BookingState.EXPIRED)


class TestTheSale:
    @pytest.mark.parametrize("window_s", [(3600, 7200), (-7200, -3600)])
    async def test_that_is_not_open_opens_nothing(self, app: App, window_s: tuple[int, int]) -> None:
        till = await a_till(app, opens_in_s=window_s[0], closes_in_s=window_s[1])

        assert await till.open(3) == OpeningRefused("closed")
        assert await till.rows() == 0

    async def test_that_was_cancelled_opens_nothing(self, till: Till) -> None:
        await till.postgres.execute("UPDATE sale SET cancelled = true WHERE show_id = $1", till.show)

        assert await till.open(3) == OpeningRefused("closed")

    async def test_that_does_not_exist_opens_nothing(self, till: Till) -> None:
        assert await till.open(3, show_id=2**40) == OpeningRefused("closed")

    async def test_of_another_revision_opens_nothing(self, till: Till) -> None:
        """Prices and seats may have changed since the request was parsed."""
        assert await till.open(3, revision=2) == OpeningRefused("stale")
        assert await till.rows() == 0

    async def test_must_be_marked_before_the_ledger_sells_alone(self, till: Till) -> None:
        await till.app.seatmap.rebuild(till.show, "test")
        before = await till.open(3, ledger_only=True)
        await till.ledger.mark_map_stale(till.show)

        assert before == OpeningRefused("unmarked")
        assert isinstance(await till.open(3, ledger_only=True), Booking)

    async def test_shows_of_one_batch_are_judged_apart(self, till: Till) -> None:
        other = await a_till(till.app, opens_in_s=3600)

        answers = await till.open_many([till.opening(3), other.opening(3)])

        assert isinstance(answers[0], Booking)
        assert answers[1] == OpeningRefused("closed")


async def _wait(till: Till, how_many: int) -> bool:
    """For a lock that another has."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    return bool(await till.postgres.fetchval(waiting) >= how_many)


def _retries() -> float:
    """Batches that were sent again because they had met a deadlock."""
    lines = metrics.text().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("holdfast_ledger_retries_total"))


def number_of(answer: OpeningOutcome) -> int:
    assert isinstance(answer, Booking), answer
    return answer.number
