"""R2, R3: a visitor finds events with a mouse, a keyboard, a phone, and without scripts."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.async_api import Page, expect

from holdfast.web.caller import Role
from tests.browser.conftest import Newcomer
from tests.support.box_office import Office
from tests.support.organiser import Stage, a_stage, an_event, show_of, sign_in_organiser
from tests.support.searchable_events import index_event

WEIGHT_BYTES_MAX = 100_000
SCRIPT_BYTES_MAX = 3_000
Look = Callable[[Page], Awaitable[None]]


@dataclass(frozen=True)
class Programme:
    stage: Stage
    events: dict[str, int]  # by title
    shows: dict[str, int]

    @property
    def paths(self) -> tuple[str, ...]:
        """Every sort of page: with much on it and with nothing."""
        first = next(iter(self.events.values()))
        return (
            "/",
            f"/?city={self.stage.city}",
            f"/events/{first}",
            f"/venues/{self.stage.venue_id}",
            "/find?q=hour",
            "/find?q=silvr+hower&sort=rating",
            "/find?q=zzzzqqqq",
        )


@pytest.fixture(scope="package")
async def programme(house: Office) -> Programme:
    """A small town with films, a concert and a match, and one show that is nearly full."""
    organiser, admin = (
        await sign_in_organiser(house.app, house.api),
        await sign_in_organiser(house.app, house.api, Role.ADMIN),
    )
    stage = await a_stage(house.app, house.api, organiser)
    events, shows = {}, {}
    listed = (
        ("Silver Hour", "film", "Drama", "Hindi"),
        ("Golden Hour", "film", "Comedy", "Tamil"),
        ("The Eleventh Hour Orchestra", "concert", "Classical", ""),
        ("Herons v Kites", "match", "Cricket", ""),
        ("<script>window.broken = 1</script>", "film", '"><img src=x onerror="window.broken=1">', ""),
    )
    for place, (title, kind, genre, language) in enumerate(listed):
        about = {"people": ["Ada Brown"], "rating": 7.5, "featured": True, "description": f"About {title}."}
        event = await admin.create(
            "/events", an_event(title=title, kind=kind, genre=genre, language=language, **about)
        )
        for day in range(14 if place == 0 else 1):
            starts_at = datetime.now(UTC) + timedelta(days=day, hours=4 + 3 * place)
            wanted = show_of(stage, event_id=event["id"], starts_at=starts_at.isoformat())
            if place == 3:
                wanted["opens_at"] = (datetime.now(UTC) + timedelta(hours=5)).isoformat()
            shows[title] = int((await admin.create("/shows", wanted))["id"])
        events[title] = int(event["id"])
        await index_event(house.app, event["id"])
    return Programme(stage, events, shows)


async def test_a_misspelt_search_reaches_the_event(page: Page, programme: Programme) -> None:
    await page.goto("/")
    field = page.get_by_role("combobox", name="Search films, concerts and matches")
    await field.fill("golden howr")
    await field.press("Enter")

    await expect(page.get_by_text("Did you mean")).to_be_visible()
    await page.get_by_role("link", name="golden hour", exact=True).click()
    await page.get_by_role("heading", name="Golden Hour").get_by_role("link").click()

    await expect(page.get_by_role("heading", level=1)).to_have_text("Golden Hour")
    assert page.url.endswith(f"/events/{programme.events['Golden Hour']}")


async def test_suggestions_are_used_from_the_keyboard(page: Page, programme: Programme) -> None:
    await page.goto("/")
    field = page.get_by_role("combobox")
    await field.fill("silver")

    options = page.get_by_role("option")
    await expect(options).to_have_count(2)  # the event, and all results
    await expect(field).to_have_attribute("aria-expanded", "true")
    await expect(page.locator(".masthead [role=status]")).to_have_text("Suggestions: 1")
    await field.press("Escape")
    await expect(field).to_have_attribute("aria-expanded", "false")
    await expect(field).to_have_value("silver")
    await field.press("ArrowDown")
    await expect(options.first).to_have_attribute("aria-selected", "true")
    pointed = await field.get_attribute("aria-activedescendant")
    assert pointed == await options.first.get_attribute("id")
    await field.press("Enter")

    await expect(page.get_by_role("heading", level=1)).to_have_text("Silver Hour")


async def test_arrow_keys_cycle_through_suggestions_and_back_to_the_typed_text(
    page: Page, programme: Programme
) -> None:
    await page.goto("/")
    field = page.get_by_role("combobox")
    await field.fill("hour")
    options = page.get_by_role("option")
    await expect(options).to_have_count(4)

    await field.press("ArrowUp")

    await expect(options.last).to_have_attribute("aria-selected", "true")
    await field.press("ArrowDown")
    await expect(field).not_to_have_attribute("aria-activedescendant", re.compile("."))
    await field.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("“hour”")


async def test_suggestions_forgive_a_typo_and_lead_to_all_results(page: Page, programme: Programme) -> None:
    await page.goto("/")
    field = page.get_by_role("combobox")
    await field.fill("goldn howr")

    options = page.get_by_role("option")
    await expect(options).to_have_count(2)
    await expect(options.first).to_contain_text("Golden Hour")
    await expect(options.first).to_contain_text(re.compile(r"Film · \w{3}, [\w ]+"))
    await expect(options.last).to_have_text("See all results for “goldn howr”")
    await options.last.click()

    await expect(page.get_by_role("heading", level=1)).to_have_text("“goldn howr”")
    await expect(page.get_by_role("heading", name="Golden Hour")).to_be_visible()


@pytest.mark.parametrize("language", ["en", "de", "hi"])
async def test_the_name_of_a_day_keeps_clear_of_the_edges_of_its_tile(
    page: Page, programme: Programme, language: str
) -> None:
    await page.set_extra_http_headers({"Accept-Language": language})
    await page.goto(f"/events/{programme.events['Silver Hour']}")

    gaps = await page.locator(".days a").evaluate_all("""tiles => tiles.map(tile => {
      const words = document.createRange();
      words.selectNodeContents(tile.querySelector(".days-week"));
      const [inner, outer] = [words.getBoundingClientRect(), tile.getBoundingClientRect()];
      return Math.min(inner.left - outer.left, outer.right - inner.right);
    })""")

    assert len(gaps) > 7
    assert min(gaps) >= 8


async def test_suggestions_use_the_width_of_a_phone(phone: Page, programme: Programme) -> None:
    await phone.goto("/")
    await phone.get_by_role("combobox").fill("eleventh")

    option = phone.get_by_role("option").first
    await expect(option).to_contain_text("The Eleventh Hour Orchestra")
    box = await phone.get_by_role("listbox").bounding_box()
    size = phone.viewport_size
    assert box
    assert size
    assert box["width"] >= size["width"] * 0.9
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= size["width"]


async def test_a_mistake_in_a_filter_leaves_the_results_in_sight_on_a_phone(
    phone: Page, programme: Programme
) -> None:
    await phone.goto("/find?q=golden+hour&city=&date_from=2090-02-01&date_to=2090-01-01")

    await expect(phone.get_by_role("heading", name="Golden Hour", level=2)).to_be_in_viewport()
    notice = phone.locator(".find-mistake")
    await expect(notice).to_contain_text("Until: This is before the first date")
    await notice.get_by_role("link").click()
    await expect(phone.locator("#date_to")).to_be_in_viewport()
    await expect(phone.locator("#date_to-wrong")).to_be_visible()


async def test_only_the_last_of_many_questions_is_answered(page: Page, programme: Programme) -> None:
    requested: list[str] = []
    page.on(
        "request", lambda request: requested.append(request.url) if "suggestions" in request.url else None
    )
    await page.goto("/")

    await page.get_by_role("combobox").press_sequentially("golden hour", delay=5)

    await expect(page.get_by_role("option").last).to_have_text("See all results for “golden hour”")
    await expect(page.get_by_role("option")).to_have_count(2)
    assert len(requested) < len("golden hour")
    assert requested[-1].endswith("q=golden+hour")


async def test_a_chosen_city_is_remembered_without_scripts(plain: Page, programme: Programme) -> None:
    await plain.goto("/")
    await plain.locator(f"button[value={programme.stage.city}]").click()

    await expect(plain.get_by_role("heading", level=1)).to_have_text("What's on in Testpur")
    await plain.goto("/find?q=hour")
    await expect(plain.locator(".chips")).to_contain_text("Testpur")
    await plain.get_by_role("link", name="Concerts").click()
    await expect(plain.get_by_role("listitem").get_by_role("heading", level=2)).to_have_text(
        ["The Eleventh Hour Orchestra"]
    )
    await plain.locator(".hit-shows a").first.click()
    assert plain.url.endswith(f"/shows/{programme.shows['The Eleventh Hour Orchestra']}")


async def test_a_day_is_chosen_from_the_row(phone: Page, programme: Programme) -> None:
    await phone.goto(f"/events/{programme.events['Silver Hour']}")
    days = phone.get_by_role("navigation", name="Choose a day").get_by_role("link")
    await expect(days).to_have_count(14)

    await days.nth(2).click()

    await expect(days.nth(2)).to_have_attribute("aria-current", "date")
    await expect(phone.locator(".ticket")).to_have_count(1)


async def test_near_me_requests_the_location_and_finds_nearby_events(
    newcomer: Newcomer, programme: Programme
) -> None:
    near = {"latitude": 19.01234, "longitude": 72.8}
    page = await newcomer(geolocation=near, permissions=["geolocation"])
    await page.goto("/find?q=golden")

    await page.get_by_role("button", name="Near me").click()

    await expect(page).to_have_url(re.compile(r"near=19\.01%2C72\.80"))  # no more than it takes
    await expect(page.locator(".hit-where").first).to_contain_text("km")


async def test_the_readers_own_zone_comes_first(newcomer: Newcomer, programme: Programme) -> None:
    page = await newcomer(timezone_id="Asia/Kolkata")
    await page.goto("/")

    await expect(page.locator("fieldset").first).to_contain_text("India")
    await expect(page.locator("button.is-near").first).to_be_visible()


async def test_a_viewer_in_another_time_zone_sees_both_times(
    newcomer: Newcomer, programme: Programme
) -> None:
    page = await newcomer(timezone_id="Europe/Berlin")
    await page.goto(f"/events/{programme.events['Golden Hour']}")

    await expect(page.locator(".ticket .own-time")).to_have_count(1)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_axe_finds_nothing(newcomer: Newcomer, programme: Programme, axe: Look, dark: bool) -> None:
    page = await newcomer(dark=dark, phone=dark)
    for path in programme.paths:
        await page.goto(path)
        await axe(page)
    await page.goto("/")
    await page.get_by_role("combobox").fill("hour")
    await expect(page.get_by_role("option").first).to_be_visible()
    await axe(page)


@pytest.mark.parametrize("language", ["en-GB", "de-DE", "hi-IN"])
async def test_on_a_phone_nothing_sticks_out_and_everything_can_be_tapped(
    newcomer: Newcomer, programme: Programme, language: str
) -> None:
    page = await newcomer(phone=True, locale=language)
    for path in programme.paths[1:6]:
        await page.goto(path)
        assert (await cut_off(page), await too_small(page)) == ([], []), path


# What a show's status says depends on the time of day; these are the longest it can say.
@pytest.mark.parametrize(
    ("language", "status"),
    [
        ("de-DE", "Verkauf ab Donnerstag 00:40"),
        ("en-GB", "On sale Wednesday 12:40 pm"),
        ("hi-IN", "बिक्री बृहस्पतिवार अपराह्न 12:40 से"),
    ],
)
async def test_on_a_phone_a_long_status_of_a_show_wraps(
    newcomer: Newcomer, programme: Programme, language: str, status: str
) -> None:
    page = await newcomer(phone=True, locale=language)
    for path in programme.paths[1:6]:
        await page.goto(path)
        await page.evaluate(
            """(status) => {
                 for (const one of document.querySelectorAll(".status")) one.textContent = status;
               }""",
            status,
        )
        assert await cut_off(page) == [], path


async def cut_off(page: Page) -> list[str]:
    """Elements beyond the right edge: a page clips them, which is as bad as having to scroll to them."""
    found: list[str] = await page.evaluate(
        """() => [...document.querySelectorAll('main *, .masthead *, .foot *')]
           .filter((one) => !one.closest('.shelf, .days, .fan, .unseen, svg'))
           .filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > 391)
           .map((one) => one.outerHTML.slice(0, 90))"""
    )
    return found


async def too_small(page: Page) -> list[str]:
    """Elements that are too low to be tapped."""
    found: list[str] = await page.evaluate(
        """() => [...document.querySelectorAll(
             'main button:not([hidden]), main .time, main .days a, main .ticket-paper, main summary')]
           .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 44)
           .map((one) => one.outerHTML.slice(0, 90))"""
    )
    return found


async def test_pages_are_light(newcomer: Newcomer, programme: Programme) -> None:
    for path in programme.paths[1:5]:
        page = await newcomer(phone=True)
        weighed = await weight(page, path)
        assert sum(weighed.values()) <= WEIGHT_BYTES_MAX, (path, weighed)
        assert all(url.startswith(("http://127.0.0.1", "data:")) for url in weighed), weighed
        suggest = next(size for url, size in weighed.items() if url.endswith("suggest.js"))
        assert suggest <= SCRIPT_BYTES_MAX, suggest


async def weight(page: Page, path: str) -> dict[str, int]:
    """Bytes over the wire by address, headers and all, until no more requests are sent."""
    session = await page.context.new_cdp_session(page)
    await session.send("Network.enable")
    urls: dict[str, str] = {}
    sizes: dict[str, int] = {}

    def begun(event: dict[str, Any]) -> None:
        urls[event["requestId"]] = event["request"]["url"]

    def done(event: dict[str, Any]) -> None:
        url = urls.get(event["requestId"], event["requestId"])
        sizes[url] = sizes.get(url, 0) + int(event["encodedDataLength"])

    session.on("Network.requestWillBeSent", begun)
    session.on("Network.loadingFinished", done)
    await page.goto(path, wait_until="networkidle")
    return sizes


async def test_a_name_with_code_in_it_runs_nowhere(page: Page, programme: Programme) -> None:
    nasty = programme.events["<script>window.broken = 1</script>"]
    for path in (programme.paths[1], f"/events/{nasty}", programme.paths[3], "/find?q=script"):
        await page.goto(path)
        assert await page.evaluate("window.broken") is None, path
    field = page.get_by_role("combobox")
    await field.fill("script")

    await expect(page.get_by_role("option").first).to_contain_text("<script>window.broken = 1</script>")
    assert await page.evaluate("window.broken") is None


async def test_forced_colours_keep_what_is_chosen_visible(newcomer: Newcomer, programme: Programme) -> None:
    page = await newcomer(forced_colors="active")
    await page.goto(f"/events/{programme.events['Silver Hour']}")

    chosen = page.locator(".days a[aria-current]")

    assert await chosen.evaluate("(one) => getComputedStyle(one).borderTopWidth") == "2px"
    assert (
        await page.locator(".ticket-edge").first.evaluate("(one) => getComputedStyle(one).maskImage")
        == "none"
    )
