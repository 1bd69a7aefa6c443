"""A real browser on a real box office: `holdfast serve` and `holdfast work` with their engines and a sandbox.

    house        the box office: its address, its engines from inside (tests.support.box_office)
    page         a page of a desktop browser, of a new visitor
    phone        the same on a phone with a touch screen
    plain        the same in a browser that runs no scripts
    newcomer     more of them: `await newcomer(dark=True)`, `await newcomer(phone=True)`
    axe          `await axe(page)`: axe-core finds nothing wrong with what is there now

Where there is no Chromium these tests are left out, and the run says so; with CI set that is an error.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from tests.support.box_office import Office, office
from tools.browser import DESKTOP, LEAN, PHONE, chromium, find_chromium

HERE = Path(__file__).parent
PATIENCE_MS = 60_000  # the machine may be busy with other tests
# A refused form, a server that is away: Chromium writes each to its console, and each may be part of a story.
EXPECTED = "Failed to load resource:"

Newcomer = Callable[..., Awaitable[Page]]
expect.set_options(timeout=PATIENCE_MS)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if find_chromium(LEAN) is not None:
        return
    ours = [item for item in items if HERE in item.path.parents]
    if ours and os.environ.get("CI"):
        raise pytest.UsageError("no Chromium for tests/browser: install it, or name it in CHROMIUM")
    items[:] = [item for item in items if item not in ours]
    config.hook.pytest_deselected(items=ours)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if find_chromium(LEAN) is None:
        terminalreporter.write_line("tests/browser: left out, no Chromium found; name one in CHROMIUM")


@pytest.fixture(scope="package")
async def house() -> AsyncIterator[Office]:
    unlimited: dict[str, Any] = {
        "logins_per_minute_max": 0,
        "signups_per_address_hour_max": 0,
        "resets_per_address_hour_max": 0,
        "puzzle_bits": 10,  # the processor is needed for other things
    }
    async with office(web=1, requests_per_second_max=0, mail_page=1, **unlimited) as opened:
        yield opened


@pytest.fixture(scope="package")
async def browser() -> AsyncIterator[Browser]:
    async with chromium(LEAN) as opened:
        yield opened


@pytest.fixture
async def newcomer(browser: Browser, house: Office) -> AsyncIterator[Newcomer]:
    """A visitor with a separate browser; errors in its console fail the test."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def record(message: ConsoleMessage) -> None:
        is_part_of_it = message.text.startswith(EXPECTED) and "/static/" not in message.location["url"]
        if message.type == "error" and not is_part_of_it:
            complaints.append(message.text)

    async def come(*, phone: bool = False, dark: bool = False, **more: Any) -> Page:
        given = {**(PHONE if phone else DESKTOP), "color_scheme": "dark" if dark else "light", **more}
        # Animations are off: axe would measure colours half-way.
        context = await browser.new_context(base_url=house.url, reduced_motion="reduce", **given)
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        page = await context.new_page()
        page.on("console", record)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return page

    yield come
    for context in contexts:
        await context.close()
    assert not complaints, complaints


@pytest.fixture
async def page(newcomer: Newcomer) -> Page:
    return await newcomer()


@pytest.fixture
async def phone(newcomer: Newcomer) -> Page:
    return await newcomer(phone=True)


@pytest.fixture
async def plain(newcomer: Newcomer) -> Page:
    return await newcomer(java_script_enabled=False)


@pytest.fixture
def axe() -> Callable[[Page], Awaitable[None]]:
    async def look(page: Page) -> None:
        # Half a megabyte: not sent again to a page that has it.
        has_it = await page.evaluate("'axe' in window")
        found = await (Axe("'loaded'") if has_it else Axe()).run(page)
        assert found.violations_count == 0, found.generate_report()

    return look
