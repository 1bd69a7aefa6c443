"""The desk in a real browser: a clerk's refund, a cancelled show with progress, phones and screen readers."""

from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import Page, expect

from holdfast.bookings import public_id, reference
from holdfast.desk import DESK_PAGES
from holdfast.web.caller import Role
from tests.browser.conftest import Newcomer
from tests.support.box_office import Office
from tests.support.desk import DeskHouse, a_desk_house
from tests.support.organiser import a_body, show_of
from tests.support.paid_bookings import bought
from tests.support.shows import fans
from tests.support.wait import until

Axe = Callable[[Page], Awaitable[None]]
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
FILES = (".csv", ".json", ".html")


@pytest.fixture
async def desk(house: Office) -> DeskHouse:
    return await a_desk_house(house.app, house.api)


async def sits_down(house: Office, page: Page, account_id: int) -> None:
    cookie = await house.app.sessions.open_account(account_id, None)
    await page.context.add_cookies([{"name": "holdfast", "value": cookie, "url": house.url}])


async def test_a_clerk_finds_a_booking_by_its_reference_and_refunds_one_ticket(
    house: Office, page: Page, desk: DeskHouse, axe: Axe
) -> None:
    booking = await bought(house.app, desk.show_id, 0, 1)
    await sits_down(house, page, desk.organisation_id)
    await page.goto("/desk")
    await axe(page)

    await page.get_by_label("Find a booking").fill(reference(booking.show_id, booking.number))
    await page.keyboard.press("Enter")

    await expect(page.get_by_role("heading", level=1)).to_have_text(
        reference(booking.show_id, booking.number)
    )
    await axe(page)
    await page.get_by_label("A-2").check()
    await page.get_by_role("button", name="Refund chosen tickets").click()
    await axe(page)
    await page.get_by_role("button", name="Refund 1 ticket: ₹500").click()
    await expect(page.get_by_role("status")).to_have_text("Refunded. The buyer has the money back.")
    await expect(page.locator(".timeline")).to_contain_text("Refund at the desk")
    after = await house.app.bookings.booking(booking.show_id, booking.number)
    assert after is not None
    assert after.seats == (0,)


async def test_a_cancelled_show_refunds_200_bookings_with_progress_and_without_scripts(
    house: Office, plain: Page, desk: DeskHouse
) -> None:
    show_id = await _a_big_show(desk)
    for seat in range(200):
        await bought(house.app, show_id, seat)
    await sits_down(house, plain, desk.organisation_id)
    await plain.goto(f"{desk.path}/shows/{show_id}/cancel")
    await expect(plain.get_by_text("200 bookings will be refunded in full")).to_be_visible()

    await plain.get_by_label("Type the title to confirm").fill("the paper boats")
    await plain.get_by_role("button", name="Cancel the show and refund all").click()

    await expect(plain.get_by_role("heading", level=1)).to_have_text("The show is cancelled")
    await expect(plain.get_by_text("of 200 bookings refunded")).to_be_visible()
    await expect(plain.get_by_text("200 of 200 bookings refunded")).to_be_visible(timeout=60_000)
    await expect(plain.get_by_text("All refunds are done.")).to_be_visible()

    async def are_equal() -> bool:
        figures = await house.app.reports.of_show(show_id, None)
        return (figures.figures.seats_sold, figures.figures.seats_returned) == (0, 200)

    await until(are_equal)
    await plain.goto(f"{desk.path}/shows/{show_id}")
    await expect(plain.get_by_text("0 of 400 sold")).to_be_visible()


async def test_the_progress_of_a_cancelled_show_is_followed_without_a_new_page(
    house: Office, page: Page, desk: DeskHouse, axe: Axe
) -> None:
    for seat in range(3):
        await bought(house.app, desk.show_id, seat)
    await sits_down(house, page, desk.organisation_id)
    await page.goto(f"{desk.path}/shows/{desk.show_id}/cancel")
    await page.get_by_label("Type the title to confirm").fill(desk.title)

    await page.keyboard.press("Enter")

    await expect(page.get_by_role("heading", level=1)).to_have_text("The show is cancelled")
    await axe(page)
    await expect(page.get_by_text("All refunds are done.")).to_be_visible()
    await expect(page.get_by_text("3 of 3 bookings refunded")).to_be_visible()


async def _a_big_show(desk: DeskHouse) -> int:
    layout = await desk.owner.create("/layouts", a_body(seats="1-20", rows="A-R", name="Large hall"))
    hall = {"venue_id": desk.stage.venue_id, "name": "Large", "layout_hash": layout["hash"]}
    made = await desk.owner.create("/halls", hall)
    show = await desk.owner.create("/shows", show_of(desk.stage, hall_id=made["id"]))
    return int(show["id"])


def pages(start: str, **params: object) -> list[str]:
    """The paths of all pages of the desk that begin so. A new kind of page needs a thing to show."""
    found = []
    for page in DESK_PAGES:
        if page.method == "GET" and page.path.startswith(start) and not page.path.endswith(FILES):
            path = page.path.replace(":int}", "}").format(**params)
            found.append(path)
    return found


async def look_at_all(page: Page, axe: Axe, paths: list[str]) -> None:
    for path in paths:
        answer = await page.goto(path)
        assert answer is not None
        assert answer.status == 200, path
        await axe(page)
        assert await page.evaluate(FITS), path


async def test_every_page_of_an_organisation_is_accessible_and_fits_a_phone(
    house: Office, newcomer: Newcomer, desk: DeskHouse, axe: Axe
) -> None:
    booking = await bought(house.app, desk.show_id, 0)
    made = await desk.owner.create("/webhook-endpoints", {"url": "https://example.com/hook"})
    page = await newcomer(phone=True)
    await sits_down(house, page, desk.organisation_id)
    paths = pages(
        "/desk/{organisation:int}",
        organisation=desk.organisation_id,
        show=desk.show_id,
        event=desk.stage.event_id,
        booking=public_id(booking.show_id, booking.number),
        endpoint=made["endpoint"]["endpoint_id"],
    )
    assert len(paths) > 15
    refund = next(path for path in paths if path.endswith("/refund"))
    others = [path for path in paths if path != refund]
    chosen = [desk.path + one for one in ("/legal?text=terms", f"/bookings?show={desk.show_id}")]
    await look_at_all(page, axe, [*others, f"{refund}?seats=A-1", *chosen])


async def test_every_page_of_the_house_is_accessible_and_fits_a_phone(
    house: Office, newcomer: Newcomer, axe: Axe
) -> None:
    (admin,) = await fans(house.app, house.api, 1, Role.ADMIN)
    page = await newcomer(phone=True, dark=True)
    await sits_down(house, page, admin.account_id)
    await page.goto("/desk")
    await expect(page).to_have_url(f"{house.url}/desk/house")
    await look_at_all(page, axe, pages("/desk/house", account=admin.account_id))


async def test_a_code_of_a_pass_is_made_by_keyboard_and_shown_once(
    house: Office, page: Page, desk: DeskHouse
) -> None:
    await sits_down(house, page, desk.organisation_id)
    await page.goto(f"{desk.path}/door?show={desk.show_id}")
    await page.get_by_label("Gate").focus()
    await page.keyboard.type("North")
    await page.keyboard.press("Enter")

    await expect(page.get_by_role("heading", level=1)).to_have_text("Pass code")
    code = await page.locator(".secret").inner_text()
    assert len(code) == 32
    await page.get_by_role("link", name="Done").click()
    await expect(page.get_by_text("North")).to_be_visible()
    assert code not in await page.content()
