"""What becomes of a booking in the ledger: confirmed, refused a wrong move, blocked, swept."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from holdfast.app import App
from holdfast.bookings import Booking, Bookings, BookingState, SeatsLost
from holdfast.bookings.booking import MOVES
from tests.support.show_fixture import Till, a_till, an_owner, other_ledger


@pytest.fixture
async def till(app: App) -> Till:
    return await a_till(app)


@pytest.fixture
async def elsewhere(app: App) -> AsyncIterator[Bookings]:
    """The ledger of another process."""
    postgres, ledger = other_ledger(app)
    yield ledger
    await postgres.close()


class TestNothingToPay:
    async def test_is_confirmed_at_once_with_two_moves_and_two_facts(self, till: Till) -> None:
        booking = await till.opened(3, 4, price_minor=0)

        assert booking.state is BookingState.CONFIRMED
        assert booking.confirmed_at == booking.opened_at
        assert await till.moves(booking.number) == [("hold", "held"), ("confirm", "confirmed")]
        assert await till.facts(booking.number) == ["booking.held", "booking.confirmed"]
        assert await till.violations() == []

    async def test_is_never_swept(self, till: Till) -> None:
        booking = await till.opened(3, price_minor=0)
        await till.lapse(booking.number)
        await till.ledger.sweep(500)

        assert isinstance(await till.open(3, owner_id=an_owner()), SeatsLost)
        assert (await till.booking(booking.number)).state is BookingState.CONFIRMED


async def test_the_fence_grows_with_every_booking(till: Till, elsewhere: Bookings) -> None:
    fences = []
    for seat in range(6):
        (answer,) = await till.open_many([till.opening(seat)], elsewhere if seat % 2 else None)
        assert isinstance(answer, Booking)
        fences.append((await till.booking(answer.number)).fence)

    assert fences == sorted(set(fences))


async def test_the_ledger_itself_refuses_moves_that_are_not_drawn(till: Till) -> None:
    """The trigger rejects moves that bypass the code."""
    drawn = {(before, after) for (before, _), after in MOVES.items()}
    made = set()
    for before in BookingState:
        for after in set(BookingState) - {before}:
            if await _moves(till, before, after):
                made.add((before, after))

    assert made == drawn


async def _moves(till: Till, before: BookingState, after: BookingState) -> bool:
    """Whether a row in one state can be put into the other; nothing of it stays."""
    timed = {BookingState.CONFIRMED, BookingState.REFUNDED}
    try:
        async with till.postgres.transaction() as tx:
            await tx.execute(
                "INSERT INTO booking (show_id, number, owner_id, fence, state, request_id, body_hash,"
                " claim_id, seats, prices_minor, amount_minor, currency, opened_at, expires_at, confirmed_at)"
                " VALUES ($1, -1, 1, 1, $2, 'move', 0, 'c', '{1}', '{0}', 0, 'EUR', now(), now(), $3)",
                till.show,
                before,
                (await tx.fetchval("SELECT now()")) if before in timed else None,
            )
            await tx.execute(
                "UPDATE booking SET state = $2, confirmed_at = CASE WHEN $3 THEN now() END"
                " WHERE show_id = $1 AND number = -1",
                till.show,
                after,
                after in timed,
            )
            raise _Undo
    except asyncpg.CheckViolationError:
        return False
    except _Undo:
        return True


class _Undo(Exception):
    """Rolls a transaction back."""


class TestBlocks:
    async def test_a_blocked_seat_cannot_be_opened(self, till: Till) -> None:
        number = await till.ledger.block(till.show, [3, 4], "camera", an_owner())

        answer = await till.open(4, 5)

        assert isinstance(number, int)
        assert isinstance(answer, SeatsLost)
        assert [(r.seat, r.state) for r in answer.rivals] == [(4, BookingState.BLOCKED)]
        assert await till.violations() == []

    async def test_a_taken_seat_cannot_be_blocked(self, till: Till) -> None:
        booking = await till.opened(4)

        assert await till.ledger.block(till.show, [3, 4], "camera", an_owner()) == (4,)
        assert await till.taken() == {4: booking.number}

    async def test_a_lapsed_seat_can(self, till: Till) -> None:
        lapsed = await till.opened(4)
        await till.lapse(lapsed.number)

        assert isinstance(await till.ledger.block(till.show, [3, 4], "camera", an_owner()), int)
        assert await till.facts(lapsed.number) == ["booking.held", "booking.expired"]
        assert await till.violations() == []

    async def test_an_unblocked_seat_can_be_opened(self, till: Till) -> None:
        await till.ledger.block(till.show, [3], "camera", an_owner())
        (block,) = await till.ledger.blocks(till.show)

        assert await till.ledger.cancel(block, an_owner()) is not None
        assert isinstance(await till.open(3), Booking)
        assert await till.violations() == []

    async def test_some_seats_of_a_block_are_released_and_the_audit_is_clean(self, till: Till) -> None:
        number = await till.ledger.block(till.show, [3, 4], "camera", an_owner())
        await till.postgres.execute("SELECT * FROM release_block($1, $2, $3, 1)", till.show, number, [3])

        assert await till.taken() == {4: number}
        assert await till.violations() == []

    async def test_a_block_and_a_booking_at_once_make_one_owner(
        self, till: Till, elsewhere: Bookings
    ) -> None:
        for seat in range(0, 20, 2):
            blocked, answers = await asyncio.gather(
                elsewhere.block(till.show, [seat, seat + 1], "camera", an_owner()),
                till.open_many([till.opening(seat, seat + 1, owner_id=an_owner())]),
            )
            assert isinstance(blocked, int) != isinstance(answers[0], Booking)
        assert await till.violations() == []

    async def test_a_block_does_not_count_towards_any_owners_limit(self, app: App) -> None:
        till = await a_till(app, owner_seats_max=2)
        await till.ledger.block(till.show, range(10, 20), "press", till.owner)

        assert isinstance(await till.open(0, 1), Booking)


async def test_a_row_that_another_is_closing_is_skipped_and_not_waited_for(till: Till) -> None:
    booking = await till.opened(3)
    await till.lapse(booking.number)

    async with till.postgres.transaction() as tx:
        closed = await tx.fetch("SELECT * FROM expire_lapsed($1, $2)", [till.show], [booking.number])
        swept = await asyncio.wait_for(till.ledger.sweep(500), 2)

    assert len(closed) == 1
    assert (till.show, booking.number) not in swept
    assert await till.moves(booking.number) == [("hold", "held"), ("expire", "expired")]


async def test_several_sweeps_at_once_close_each_row_once(till: Till, elsewhere: Bookings) -> None:
    numbers = []
    for seat in range(30):
        booking: Booking = await till.opened(seat, owner_id=an_owner())
        await till.lapse(booking.number)
        numbers.append((till.show, booking.number))

    sweeps = await asyncio.gather(
        *(ledger.sweep(500) for ledger in (till.ledger, elsewhere) for _ in range(4))
    )

    closed = [row for rows in sweeps for row in rows if row[0] == till.show]
    assert sorted(closed) == sorted(numbers)
    assert await till.taken() == {}
    assert await till.violations() == []
