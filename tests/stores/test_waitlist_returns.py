"""R26: tickets that are sold back at face value stay valid until a waiting party fits their seats."""

import pytest

from holdfast.app import App
from holdfast.bookings import Booking, BookingState, WrongMove
from holdfast.catalogue import ShowOnSale
from holdfast.refunds import SeatsNotYours
from holdfast.waitlist.errors import NoSuchReturn, ReturnSold
from tests.support.paid_bookings import bought, now_of, refunds_of
from tests.support.waitlist_hall import WaitlistHall, a_hall


@pytest.fixture
async def hall(app: App) -> WaitlistHall:
    """Six seats: two are held, four are for a test to buy."""
    hall = await a_hall(app, 6)
    await hall.fill((0, 1))
    return hall


async def put(hall: WaitlistHall, booking: Booking, *seats: int) -> str:
    page = await hall.app.waitlists.returns.put(booking, seats or None, await show_of(hall))
    return page.state


async def show_of(hall: WaitlistHall) -> ShowOnSale:
    return await hall.app.catalogue.show_on_sale(hall.show)


async def return_state(hall: WaitlistHall, booking: Booking) -> str:
    return (await hall.app.waitlists.returns.page(booking, await show_of(hall))).state


async def test_the_price_comes_back_when_a_party_is_found(hall: WaitlistHall) -> None:
    sold = await bought(hall.app, hall.show, 2, 3, 4)
    await put(hall, sold, 2, 3)
    party = await hall.join(2)

    await hall.step()
    await hall.step()

    after = await now_of(hall.app, sold)
    (refund,) = await refunds_of(hall.app, sold)
    assert (after.state, after.seats) == (BookingState.CONFIRMED, (4,))
    assert (refund.amount_minor, refund.seats) == (3000, (2, 3))
    assert await hall.offered_seats(party) == (2, 3)
    assert await return_state(hall, sold) == "sold"
    assert await hall.till.violations() == []


async def test_until_then_the_tickets_are_valid_and_the_owner_may_keep_them(hall: WaitlistHall) -> None:
    sold = await bought(hall.app, hall.show, 2, 3)
    await put(hall, sold)
    await hall.join(4)
    await hall.step()
    tickets = await hall.app.tickets.of_booking(hall.show, sold.number)

    await hall.app.waitlists.returns.withdraw(sold)
    await hall.join(2)
    await hall.step()

    assert all(ticket.voided_at is None for ticket in tickets)
    assert (await now_of(hall.app, sold)).state is BookingState.CONFIRMED
    assert await return_state(hall, sold) == "withdrawn"
    with pytest.raises(NoSuchReturn):
        await hall.app.waitlists.returns.withdraw(sold)


async def test_only_the_seats_that_the_party_needs_are_sold(hall: WaitlistHall) -> None:
    sold = await bought(hall.app, hall.show, 2, 3, 4, 5)
    await put(hall, sold)
    party = await hall.join(1)

    await hall.step()
    await hall.step()

    assert len((await now_of(hall.app, sold)).seats) == 3
    assert len(await hall.offered_seats(party) or ()) == 1
    assert await return_state(hall, sold) == "open"


async def test_returned_seats_and_freed_ones_make_a_group(hall: WaitlistHall) -> None:
    sold = await bought(hall.app, hall.show, 2, 3)
    await put(hall, sold)
    party = await hall.join(4)
    await hall.lapse(hall.holders[0])

    await hall.step()
    await hall.step()

    assert await hall.offered_seats(party) == (0, 1, 2, 3)
    assert await hall.till.violations() == []


async def test_a_crash_before_the_refund_is_made_good_by_the_next_step(hall: WaitlistHall) -> None:
    sold = await bought(hall.app, hall.show, 2, 3)
    await put(hall, sold)
    party = await hall.join(2)
    await hall.till.postgres.execute(
        "UPDATE waitlist_return SET selling = seats WHERE show_id = $1", hall.show
    )

    with pytest.raises(ReturnSold):
        await hall.app.waitlists.returns.withdraw(sold)
    await hall.poll()
    await hall.poll()

    assert await hall.offered_seats(party) == (2, 3)
    assert (await now_of(hall.app, sold)).state is BookingState.REFUNDED


async def test_a_booking_that_was_cancelled_meanwhile_is_not_refunded_twice(hall: WaitlistHall) -> None:
    sold = await bought(hall.app, hall.show, 2, 3)
    await put(hall, sold)
    party = await hall.join(2)
    await hall.app.refunds.cancel(await now_of(hall.app, sold), None)

    await hall.step()
    await hall.step()

    assert len(await refunds_of(hall.app, sold)) == 1
    assert await hall.offered_seats(party) == (2, 3)


async def test_what_cannot_be_returned_is_refused(hall: WaitlistHall) -> None:
    sold = await bought(hall.app, hall.show, 2, 3)

    with pytest.raises(WrongMove):
        await put(hall, hall.holders[0])
    with pytest.raises(SeatsNotYours):
        await put(hall, sold, 2, 4)
