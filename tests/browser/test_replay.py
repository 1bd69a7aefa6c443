"""The replay of a sale in a real browser: played at the desk and from a disk, by mouse and keyboard (R33)."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from holdfast.holds import SeatsTaken
from tests.browser.conftest import Newcomer
from tests.support.box_office import Office
from tests.support.desk import DeskHouse, a_desk_house
from tests.support.own_engines import hold
from tests.support.paid_bookings import bought
from tests.support.show_fixture import an_owner

Axe = Callable[[Page], Awaitable[None]]
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
# The colours of the map's pixels, each with how many there are.
PIXELS = """() => {
  const canvas = document.querySelector('[data-part=map]');
  const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  const found = {};
  for (let at = 0; at < pixels.length; at += 4) {
    const colour = pixels.slice(at, at + 3).join(' ');
    if (pixels[at + 3] === 255) found[colour] = (found[colour] ?? 0) + 1;
  }
  return found;
}"""
HELD_LIGHT, SOLD_LIGHT = "217 122 0", "29 79 191"


@pytest.fixture
async def desk(house: Office) -> DeskHouse:
    """Seats sold, given up, held, blocked and refused."""
    desk = await a_desk_house(house.app, house.api)
    for seat in range(6):
        await bought(house.app, desk.show_id, seat)
    gone = await hold(house.app, desk.show_id, an_owner(), 7)
    await house.app.holds.cancel(gone)
    for seats in ((10, 11), (20,)):
        await hold(house.app, desk.show_id, an_owner(), *seats)
    await house.app.holds.block(desk.show_id, [38, 39], "camera", desk.organisation_id)
    for _ in range(3):
        with pytest.raises(SeatsTaken):
            await hold(house.app, desk.show_id, an_owner(), 20)
    await house.app.demand.flush(all_of_them=True)
    return desk


async def sits_down(house: Office, page: Page, desk: DeskHouse) -> str:
    """The path of the page."""
    cookie = await house.app.sessions.open_account(desk.organisation_id, None)
    await page.context.add_cookies([{"name": "holdfast", "value": cookie, "url": house.url}])
    return f"{desk.path}/shows/{desk.show_id}/replay"


async def ledger_counts(house: Office, desk: DeskHouse) -> dict[str, str]:
    (counts,) = (await house.app.bookings.counts_many([desk.show_id])).values()
    free = 40 - sum(counts.values())
    return {
        "free": str(free),
        "held": str(counts["H"]),
        "booked": str(counts["B"]),
        "blocked": str(counts["X"]),
    }


async def shown_counts(page: Page) -> dict[str, str]:
    names = ("free", "held", "booked", "blocked")
    return {name: await page.locator(f"[data-part=count-{name}]").inner_text() for name in names}


async def test_it_plays_to_the_map_of_the_ledger(
    house: Office, page: Page, desk: DeskHouse, axe: Axe
) -> None:
    await page.clock.install()
    await page.goto(await sits_down(house, page, desk))
    await expect(page.locator("[data-part=count-booked]")).to_have_text("6")
    await axe(page)
    await page.get_by_label("Moment of the sale").focus()
    await page.keyboard.press("Home")
    assert (await shown_counts(page))["booked"] == "0"
    assert SOLD_LIGHT not in await page.evaluate(PIXELS)

    await page.get_by_label("Playing time").select_option("10")
    await page.get_by_role("button", name="Play").click()

    await expect(page.get_by_role("button", name="Pause")).to_be_visible()
    await page.clock.run_for(12_000)
    await expect(page.get_by_role("button", name="Play")).to_be_visible()
    assert await shown_counts(page) == await ledger_counts(house, desk)
    pixels = await page.evaluate(PIXELS)
    assert pixels[SOLD_LIGHT] > pixels[HELD_LIGHT] > 0


async def test_keys_play_pause_and_move(house: Office, page: Page, desk: DeskHouse) -> None:
    await page.goto(await sits_down(house, page, desk))
    scrub = page.get_by_label("Moment of the sale")
    await expect(scrub).to_have_value("1000")
    await page.get_by_role("region", name="Replay of the sale").focus()

    await page.keyboard.press("Home")
    await expect(scrub).to_have_value("0")
    await page.keyboard.press("ArrowRight")
    await expect(scrub).to_have_value("20")
    await page.keyboard.press("Space")
    await expect(page.get_by_role("button", name="Pause")).to_be_visible()
    await page.keyboard.press("Space")
    await expect(page.get_by_role("button", name="Play")).to_be_visible()
    await page.keyboard.press("End")
    await expect(scrub).to_have_value("1000")

    assert "6 sold" in (await scrub.get_attribute("aria-valuetext") or "")


async def test_demand_has_its_own_colours(
    house: Office, newcomer: Newcomer, desk: DeskHouse, axe: Axe
) -> None:
    """On a phone, in the dark."""
    page = await newcomer(phone=True, dark=True)
    await page.goto(await sits_down(house, page, desk))
    await expect(page.locator("[data-part=count-booked]")).to_have_text("6")
    before = await page.evaluate(PIXELS)

    await page.get_by_text("Demand").tap()

    await expect(page.get_by_text("wanted 4 times or more")).to_be_visible()
    after = await page.evaluate(PIXELS)
    most_wanted = "253 240 163"  # the last colour of the scale in the dark
    assert after.get(most_wanted, 0) > before.get(most_wanted, 0)
    assert await page.evaluate(FITS)
    await axe(page)


async def test_the_file_plays_from_a_disk_without_a_network(
    house: Office, newcomer: Newcomer, desk: DeskHouse, axe: Axe, tmp_path: Path
) -> None:
    page = await newcomer()
    await page.goto(await sits_down(house, page, desk))
    async with page.expect_download() as saving:
        await page.get_by_role("link", name="Save as a file").click()
    file = tmp_path / "replay.html"
    await (await saving.value).save_as(file)
    await page.context.set_offline(True)
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))

    await page.emulate_media(reduced_motion="no-preference")
    await page.clock.install()
    await page.goto(file.as_uri())

    await expect(page.locator("[data-part=count-booked]")).to_have_text("6")
    await page.get_by_role("button", name="Play").click()
    await page.clock.run_for(15_000)
    await expect(page.get_by_role("button", name="Pause")).to_be_visible()
    assert 400 <= int(await page.get_by_label("Moment of the sale").input_value()) <= 600
    await page.clock.run_for(16_000)
    await expect(page.get_by_role("button", name="Play")).to_be_visible()
    assert await shown_counts(page) == await ledger_counts(house, desk)
    await axe(page)
    assert requested == [file.as_uri()]


async def test_without_scripts_there_are_the_figures(house: Office, plain: Page, desk: DeskHouse) -> None:
    await plain.goto(await sits_down(house, plain, desk))

    await expect(plain.get_by_text("It needs scripts; the figures below do not.")).to_be_visible()
    await expect(plain.get_by_role("row", name="Seats sold 6 of 40")).to_be_visible()
    assert not await plain.get_by_role("button", name="Play").is_visible()
