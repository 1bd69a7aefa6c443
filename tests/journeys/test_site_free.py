"""Free tickets on the pages: held first, booked when the buyer has given an address."""

from collections.abc import Callable
from typing import Any

from holdfast.app import App
from holdfast.claim import Settlement
from holdfast.pricing import Terms
from tests.support.browser_session import ANN, Visitor, booking_key, state_of
from tests.support.wait import until

HOLD_ENDS = "UPDATE booking SET expires_at = now() - interval '1 s' WHERE show_id = $1 AND number = $2"


async def test_a_guest_gives_an_address_before_free_tickets_are_booked(
    ann: Visitor, app: App, a_show: Callable[..., Any]
) -> None:
    show = await a_show(seats=10, price_minor=0, sold_on=Terms())
    path = await ann.holds(show, "A-1", "A-2")
    assert await state_of(app, path) == "held"
    assert ann.says("Where should we send your tickets?")
    assert ann.says("Get 2 free tickets")
    assert ann.says("Free")
    assert not ann.says("€0")
    assert not ann.says("Pay"), "nothing on the page speaks of paying"
    assert not ann.says("pay for")

    await ann.sends("/pay", name="Ann Otter", email="")
    assert ann.status == 422
    assert await state_of(app, path) == "held"
    await ann.sends("/pay", **ANN)

    assert ann.at == path
    assert ann.says("Your 2 tickets")
    assert ann.says("We've sent a link to ann@example.org.")
    assert ann.text.count('class="qr"') == 2
    await until(lambda: ann.sees_states(show, "BB" + "A" * 8))


async def test_free_tickets_can_be_booked_while_they_are_held_and_not_later(
    ann: Visitor, app: App, a_show: Callable[..., Any]
) -> None:
    path = await ann.holds(await a_show(seats=10, price_minor=0), "A-1")
    await app.postgres.execute(HOLD_ENDS, *booking_key(path))
    booking = await app.bookings.booking(*booking_key(path))
    assert booking is not None
    await app.holds.update_map(booking.show_id, Settlement("release", booking.claim))

    answer = await ann.client.post(f"{path}/pay", data=ANN)  # a tab that was opened before

    assert answer.status_code == 410
    assert await state_of(app, path) != "confirmed"
    await ann.goes(path)
    await ann.sends("/again")
    await ann.sends("/pay")
    assert ann.says("Your ticket"), "the address is known from the try before"


async def test_two_tabs_book_free_tickets_once(ann: Visitor, app: App, a_show: Callable[..., Any]) -> None:
    path = await ann.holds(await a_show(seats=10, price_minor=0), "A-1")
    other = Visitor(ann.client)
    await other.goes(path)
    await ann.sends("/pay", **ANN)

    await other.sends("/pay", **ANN)

    assert other.says("Your ticket")
    tickets = "SELECT count(*) FROM ticket WHERE show_id = $1 AND number = $2"
    assert await app.postgres.fetchval(tickets, *booking_key(path)) == 1


async def test_a_cancelled_show_gives_no_free_tickets(
    ann: Visitor, app: App, a_show: Callable[..., Any]
) -> None:
    show = await a_show(seats=10, price_minor=0)
    path = await ann.holds(show, "A-1")
    await app.postgres.execute("UPDATE sale SET cancelled = true WHERE show_id = $1", show)

    await ann.sends("/pay", **ANN)

    assert ann.status == 410
    assert await state_of(app, path) != "confirmed"


async def test_the_page_of_a_free_show_says_free(ann: Visitor, a_show: Callable[..., Any]) -> None:
    show = await a_show(seats=10, price_minor=0)
    await ann.goes(f"/shows/{show}")
    assert ann.says("<strong>Free</strong>")
    assert not ann.says("€0")
    assert not ann.says("before you pay")
    assert not ann.says("Fees and taxes included")
