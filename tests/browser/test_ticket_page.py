"""A ticket on a phone: read off its screen by a scanner, with a network and without one (R30)."""

import io
from collections.abc import Awaitable, Callable

import pytest
import zxingcpp
from PIL import Image
from playwright.async_api import Page, expect

from holdfast.bookings import from_public_id
from holdfast.tickets import Codes, EntryPolicy
from tests.support.box_office import Office
from tests.support.browser_seats import box_of
from tests.support.shows import Fan

ASKS_WITHIN_MS = 30_000  # the page asks for a code every ten seconds
Axe = Callable[[Page], Awaitable[None]]
IS_CACHED = """async () => {
  await navigator.serviceWorker.ready
  const cache = await caches.open("tickets-1")
  return (await cache.match(location.href)) !== undefined
}"""


@pytest.fixture
async def ticket(house: Office) -> dict[str, str]:
    show = await house.a_show(seats=20, price_minor=0)
    (fan,) = await house.fans(1)
    return await booked(fan, show)


async def booked(fan: Fan, show: int) -> dict[str, str]:
    booking = (await fan.holds(show, "A-4")).json()["booking_id"]
    (page,) = (await fan.get(f"/bookings/{booking}/tickets")).json()["tickets"]
    return {"booking_id": booking, **{name: str(text) for name, text in page.items()}}


async def shown(phone: Page) -> set[str]:
    """What a scanner reads off the screen."""
    picture = Image.open(io.BytesIO(await phone.screenshot()))
    return {one.text for one in zxingcpp.read_barcodes(picture)}


async def test_once_opened_it_opens_without_a_network(phone: Page, ticket: dict[str, str]) -> None:
    await phone.goto(ticket["page_url"])
    assert await shown(phone) == {ticket["code"]}
    await phone.wait_for_function(IS_CACHED)

    await phone.context.set_offline(True)
    await phone.reload()

    await expect(phone.get_by_text("Row A, seat 4")).to_be_visible()
    assert await shown(phone) == {ticket["code"]}


async def test_a_suspended_ticket_says_why_instead_of_its_code(
    phone: Page, house: Office, ticket: dict[str, str], axe: Axe
) -> None:
    booking = from_public_id(ticket["booking_id"])
    await house.app.postgres.execute("SELECT suspend_tickets($1, $2, true)", *booking)

    await phone.goto(ticket["page_url"])

    await expect(phone.locator("#qr")).to_be_hidden()
    why, seat = phone.get_by_role("status"), phone.get_by_text("Row A, seat 4")
    await expect(why).to_contain_text("the payment is disputed")
    assert (await box_of(why))["y"] < (await box_of(seat))["y"]
    await axe(phone)


async def test_a_live_code_is_drawn_for_the_phone(phone: Page, house: Office) -> None:
    show = await house.a_show(seats=20, price_minor=0)
    await house.app.tickets.set_door(show, EntryPolicy(codes=Codes.LIVE))
    (fan,) = await house.fans(1)
    ticket = await booked(fan, show)

    await phone.goto(ticket["page_url"])
    await expect(phone.locator("#qr img")).to_be_visible()

    (code,) = await shown(phone)
    assert (await house.app.tickets.read(code)).tag is not None


async def test_one_that_was_given_away_shows_nothing_any_more(phone: Page, house: Office) -> None:
    show = await house.a_show(seats=20, price_minor=0)
    await house.app.tickets.set_door(show, EntryPolicy(codes=Codes.LIVE))
    (fan,) = await house.fans(1)
    ticket = await booked(fan, show)
    await phone.goto(ticket["page_url"])
    await expect(phone.locator("#qr img")).to_be_visible()

    given = await fan.post(f"/tickets/{ticket['ticket_id']}/transfer", {"email": "bob@example.com"})

    assert given.status_code == 200, given.text
    await expect(phone.get_by_text("This ticket was transferred")).to_be_visible(timeout=ASKS_WITHIN_MS)
    await expect(phone.locator("#qr img")).to_have_count(0)


async def test_nothing_is_wrong_with_it(phone: Page, ticket: dict[str, str], axe: Axe) -> None:
    await phone.goto(ticket["page_url"])

    await axe(phone)
