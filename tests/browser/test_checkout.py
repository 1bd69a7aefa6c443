"""From a hold to a ticket in a real browser: the clock, two tabs, lost networks, killed servers, axe."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from playwright.async_api import Error, Page, Route, expect

from tests.support.box_office import Office
from tests.support.browser_checkout import (
    ANN,
    begins_to_pay,
    charges,
    ends_in,
    has_bought,
    holds,
    is_given_up,
    pays,
)
from tests.support.wait import until

AxeLook = Callable[[Page], Awaitable[None]]
Newcomer = Callable[..., Awaitable[Page]]


def in_both(axe: AxeLook) -> AxeLook:
    """By day and by night."""

    async def look(page: Page) -> None:
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme)
            await axe(page)

    return look


async def test_every_booking_state_has_an_accessible_page(phone: Page, house: Office, axe: AxeLook) -> None:
    page, axe = phone, in_both(axe)
    show = await house.a_show(seats=20)
    path = await holds(page, show, "A-1", "A-2")
    await axe(page)
    await page.click("#pay button")
    await expect(page.locator("#name")).to_be_focused()
    await axe(page)

    await begins_to_pay(page)
    await axe(page)
    await page.goto(path)
    await expect(page.get_by_text("Finish your payment")).to_be_visible()
    await axe(page)
    await page.click("a.pay")
    await page.click("button[value=decline]")
    await page.wait_for_url("**/bookings/**")
    await expect(page.get_by_text("Payment declined.")).to_be_visible()
    await axe(page)

    await pays(page)
    await expect(page.locator(".qr")).to_have_count(2)
    labels = "each => each.map(dt => Math.round(dt.getBoundingClientRect().top))"
    tops = await page.locator(".ticket >> nth=0 >> .where dt").evaluate_all(labels)
    assert (len(tops), len(set(tops))) == (4, 1), "section, row, seat and category are on one line"
    await page.click(".give summary >> nth=0")
    await page.click(".fold summary >> nth=-1")
    await axe(page)
    await page.goto("/my")
    await axe(page)
    await page.goto(f"{path}/cancel")
    await axe(page)
    await page.click("#refund .pay")
    await expect(page.get_by_text("Tickets refunded")).to_be_visible()
    await axe(page)


async def test_a_past_booking_has_an_accessible_page(page: Page, house: Office, axe: AxeLook) -> None:
    axe = in_both(axe)
    await page.goto("/my")
    await expect(page.get_by_text("No tickets yet")).to_be_visible()
    await axe(page)
    show = await house.a_show(seats=20)
    path = await holds(page, show, "A-1")
    await page.click("text=Release seats")
    await expect(page.get_by_text("Seats released")).to_be_visible()
    await axe(page)
    await page.click("text=Get the same seats again")
    await page.wait_for_url(lambda url: not url.endswith(path))
    lapsing = "/" + page.url.split("/", 3)[3]
    await ends_in(house, lapsing, 1)
    await page.goto(lapsing)
    await expect(page.get_by_text("Your reservation expired")).to_be_visible()
    await axe(page)
    await page.goto("/my/offline")
    await axe(page)


async def test_the_page_explains_a_payment_that_arrives_after_the_seats_are_lost(
    newcomer: Newcomer, page: Page, house: Office, axe: AxeLook
) -> None:
    show, other = await house.a_show(seats=10), await newcomer()
    path = await holds(page, show, "A-1")
    await begins_to_pay(page)
    gateway = page.url
    await is_given_up(house, path)
    await page.goto(path)
    await expect(page.get_by_text("still waiting to hear whether your payment went through")).to_be_visible()
    await holds(other, show, "A-1")

    await page.goto(gateway)
    await page.click("button[value=pay]")

    await expect(page.get_by_text("Your payment came too late")).to_be_visible()
    await in_both(axe)(page)
    # The jobs made the refund; the test did not request it.
    await until(lambda: _says(page, "It may take a few days to appear."), within_s=20)


async def _says(page: Page, sentence: str) -> bool:
    await page.reload()
    return await page.get_by_text(sentence).count() == 1


async def test_the_clock_is_the_servers_and_speaks_at_two_minutes_and_at_half_a_minute(
    newcomer: Newcomer, house: Office
) -> None:
    page = await newcomer()
    await page.clock.install(time=datetime.now(UTC) + timedelta(hours=1))  # a clock that is an hour fast
    await holds(page, await house.a_show(seats=10, hold_ttl_s=180), "A-1")
    left = page.locator("#left")
    await expect(left).to_have_text(re.compile("^(3:00|2:5[0-9])$"))
    size = "(element) => parseFloat(getComputedStyle(element).fontSize)"
    assert await left.evaluate(size) > await page.locator(".until-clock").evaluate(size)
    announced = await page.evaluate_handle(
        """() => {
            const announced = [], spoken = document.getElementById("announce");
            new MutationObserver(() => announced.push(spoken.textContent)).observe(spoken, {childList: true});
            return announced;
        }"""
    )

    await page.clock.run_for(50_000)
    assert await announced.json_value() == []
    await page.clock.run_for(15_000)
    assert await announced.json_value() == ["Two minutes left to pay for your seats."]
    await page.clock.run_for(80_000)
    assert await announced.json_value() == ["Two minutes left to pay for your seats."]
    await page.clock.run_for(10_000)
    assert await announced.json_value() == [
        "Two minutes left to pay for your seats.",
        "30 seconds left to pay for your seats.",
    ]
    await expect(left).to_have_attribute("aria-live", "off")


async def test_the_page_shows_an_expired_hold_by_itself_and_restores_typed_values(
    page: Page, house: Office
) -> None:
    path = await holds(page, await house.a_show(seats=10, hold_ttl_s=3), "A-1")
    await page.fill("#name", ANN[0])
    await page.fill("#email", ANN[1])

    await expect(page.get_by_text("Your reservation expired")).to_be_visible()
    await page.click("text=Get the same seats again")
    await page.wait_for_url(lambda url: not url.endswith(path))
    await expect(page.locator("#email")).to_have_value(ANN[1])


async def test_a_background_tab_follows_the_other_and_cannot_pay_twice(page: Page, house: Office) -> None:
    path = await holds(page, await house.a_show(seats=10), "A-1")
    other = await page.context.new_page()
    await other.goto(path)
    await begins_to_pay(page)
    await begins_to_pay(other)
    assert page.url == other.url
    await page.click("button[value=pay]")
    await page.wait_for_selector(".qr")

    await other.goto(path)
    await expect(other.locator(".qr")).to_have_count(1)
    assert await charges(house, path) == 1


async def test_a_tab_that_comes_to_the_front_reloads_the_real_state(page: Page, house: Office) -> None:
    path = await holds(page, await house.a_show(seats=10), "A-1")
    other = await page.context.new_page()
    await other.goto(path)
    await pays(page)
    await other.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await expect(other.locator(".qr")).to_have_count(1)


async def test_reload_back_and_a_lost_network_lose_neither_seats_nor_money(page: Page, house: Office) -> None:
    path = await holds(page, await house.a_show(seats=10), "A-1")
    await page.reload()
    await begins_to_pay(page)
    await page.go_back()
    await expect(page.get_by_text("Reserved until")).to_be_visible()
    await page.context.set_offline(True)
    await page.evaluate("window.dispatchEvent(new Event('online'))")  # a look that fails
    await page.close()

    again = await _tab(house, page)
    await again.goto(path)
    await expect(again.get_by_text("Finish your payment")).to_be_visible()
    await again.click("a.pay")
    await again.click("button[value=pay]")
    await again.wait_for_selector(".qr")
    assert await charges(house, path) == 1


async def test_paying_without_a_network_says_so_and_keeps_what_was_typed(page: Page, house: Office) -> None:
    await holds(page, await house.a_show(seats=10), "A-1")
    await page.fill("#name", ANN[0])
    await page.fill("#email", ANN[1])
    await page.context.set_offline(True)

    await page.click("#pay button")

    await expect(page.get_by_role("alert")).to_contain_text("No connection")
    await expect(page.locator("#email")).to_have_value(ANN[1])
    await expect(page.locator("#pay button")).not_to_have_attribute("aria-busy", "true")
    await page.context.set_offline(False)
    await page.click("#pay button")
    await page.wait_for_url("**/pay/**")


async def _tab(house: Office, page: Page) -> Page:
    await page.context.set_offline(False)
    return await page.context.new_page()


async def signs_up(page: Page, path: str) -> None:
    """The guest who bought this booking has an account from now on."""
    await page.goto(f"/sign-up?back={path}")
    email = f"ann-{uuid4().hex}@example.org"
    for name, text in (("name", ANN[0]), ("email", email), ("password", "correct horse battery")):
        await page.fill(f"main [name={name}]", text)
    await page.click("main button")
    await page.wait_for_selector(".qr")


async def test_tickets_open_without_a_network_and_are_gone_after_signing_out(
    page: Page, house: Office
) -> None:
    path = await has_bought(page, await house.a_show(seats=10), "A-1")
    await signs_up(page, path)
    link = await page.get_attribute("a[data-keep]", "href")
    assert link is not None
    await page.goto("/my")
    await until(lambda: _is_cached(page, "/my", path, link), within_s=15)

    await page.context.set_offline(True)
    await page.goto("/my")
    await expect(page.locator(f'a[href="{path}"]')).to_be_visible()
    await page.goto(path)
    await expect(page.locator(".qr")).to_be_visible()
    assert await page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgba(0, 0, 0, 0)"
    await page.goto(link)
    await expect(page.locator("#qr svg, #qr img")).to_be_visible()
    await page.goto(f"/bookings/{'a' * 20}")
    await expect(page.get_by_text("This page isn't saved on your device")).to_be_visible()
    await page.goto("/")  # where an installed app starts
    await expect(page.locator(f'a[href="{path}"]')).to_be_visible()

    await page.context.set_offline(False)
    await page.goto("/my")
    await page.click("text=Sign out")
    await page.wait_for_url(lambda url: not url.endswith("/my"))
    await until(lambda: _is_forgotten(page, path, link), within_s=15)


async def test_signing_out_while_tickets_are_being_stored_leaves_none(page: Page, house: Office) -> None:
    """The worker has read /my, and not yet fetched its tickets, which need no session."""
    path = await has_bought(page, await house.a_show(seats=10), "A-1")
    await signs_up(page, path)
    link = await page.get_attribute("a[data-keep]", "href")
    assert link is not None
    reading, may_go_on, went_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def delay(route: Route) -> None:
        answer = await route.fetch()
        if route.request.headers["accept"] == "*/*":  # not for the page itself
            reading.set()
            await may_go_on.wait()
        await route.fulfill(response=answer)
        if may_go_on.is_set():
            went_on.set()

    await page.context.route("**/my", delay)
    await page.goto("/my")
    await asyncio.wait_for(reading.wait(), 15)
    await page.click("text=Sign out")
    await page.wait_for_url(lambda url: not url.endswith("/my"))
    await until(lambda: _is_forgotten(page, path, link), within_s=15)
    may_go_on.set()
    await asyncio.wait_for(went_on.wait(), 15)

    for _ in range(20):
        assert await _is_forgotten(page, path, link)
        await asyncio.sleep(0.05)


async def test_my_tickets_stores_tickets_whose_booking_page_was_left_early(page: Page, house: Office) -> None:
    path = await has_bought(page, await house.a_show(seats=10), "A-1")
    link = await page.get_attribute("a[data-keep]", "href")
    assert link is not None
    await until(lambda: _is_cached(page, path, link), within_s=15)
    await page.evaluate("caches.delete('tickets-1')")

    await page.goto("/my")

    await until(lambda: _is_cached(page, "/my", path, link), within_s=15)


async def _is_cached(page: Page, *paths: str) -> bool:
    script = "async (paths) => (await Promise.all(paths.map((p) => caches.match(p)))).every(Boolean)"
    return bool(await page.evaluate(script, list(paths)))


async def _is_forgotten(page: Page, *paths: str) -> bool:
    script = "async (paths) => (await Promise.all(paths.map((p) => caches.match(p)))).some(Boolean)"
    return not await page.evaluate(script, list(paths))


async def test_the_page_shows_the_real_payment_state_after_the_web_server_was_killed(
    page: Page, house: Office
) -> None:
    path = await holds(page, await house.a_show(seats=10), "A-1")
    await begins_to_pay(page)
    killed = house.kill("web-1")
    # The gateway takes the money while no web server is running.
    await page.request.post(page.url, form={"choice": "pay"}, max_redirects=0)
    await house.back("web-1", killed)

    await until(lambda: _has_tickets(page, path), within_s=20)
    assert await charges(house, path) == 1


async def test_a_web_server_killed_by_the_form_that_pays_leaves_a_page_to_go_on_from(
    page: Page, house: Office
) -> None:
    path = await holds(page, await house.a_show(seats=10), "A-1")
    form: dict[str, str | float | bool] = {"attempt": "1", "name": ANN[0], "email": ANN[1]}
    paying = asyncio.create_task(page.request.post(f"{path}/pay", form=form, max_redirects=0))
    killed = house.kill("web-1")
    await asyncio.gather(paying, return_exceptions=True)
    await house.back("web-1", killed)

    async def can_go_on() -> bool:
        await page.goto(path)
        return await page.locator("#pay button, a.pay").count() == 1

    await until(can_go_on, within_s=20)
    if await page.locator("a.pay").count():
        await page.click("a.pay")
    else:
        await begins_to_pay(page)
    await page.click("button[value=pay]")
    await until(lambda: _has_tickets(page, path), within_s=20)
    assert await charges(house, path) == 1


async def _has_tickets(page: Page, path: str) -> bool:
    with suppress(Error):  # a page that waits for a payment reloads itself, and that may end our own visit
        await page.goto(path)
        return await page.locator(".qr").count() == 1
    return False


async def test_without_scripts_it_is_the_same_way(plain: Page, house: Office) -> None:
    await holds(plain, await house.a_show(seats=10), "A-1")
    await expect(plain.locator(".until-clock")).to_contain_text(":")
    await pays(plain)
    await expect(plain.locator(".qr")).to_be_visible()
    await plain.goto("/my")
    await expect(plain.get_by_text("Confirmed", exact=True)).to_be_visible()
