"""The live map of `examples/dispatch`: figures, keyboard, a summary in words, phone and dark (R41)."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import pytest
from playwright.async_api import Page, expect

from examples.dispatch.cars import Fleet
from examples.dispatch.city import City
from examples.dispatch.ledger import open_ledger
from examples.dispatch.phones import Habits, Manner, Phones
from examples.dispatch.rules import Rules
from examples.dispatch.server import Faults, build_application
from examples.dispatch.simulation import Demand, Simulation
from examples.dispatch.worker import Plan, run_worker
from tests.browser.conftest import Newcomer
from tests.conftest import served
from tests.support.box_office import Office
from tests.support.second_ledger import a_database, empty_valkey

DRIVERS = 30


@pytest.fixture(scope="module")
async def city_map(house: Office) -> AsyncIterator[str]:
    """The address of a small city with one worker, in this process."""
    config = house.app.config
    city, rules, dice = City(radius=4), Rules(offer_s=2), random.Random(1)
    async with a_database(config.database_url) as url, open_ledger(url, connections_max=4) as ledger:
        await ledger.create_tables()
        fleet = Fleet.spread(city, DRIVERS, seed=1)
        await ledger.add_drivers([car.cell for car in fleet.cars])
        phones = Phones(ledger, Habits({Manner.ACCEPT: 1.0}))
        simulation = Simulation(ledger, fleet, phones, Demand(city, 2.0, dice), rules)
        plan = Plan(url, config.redis_url, DRIVERS, city, rules)
        jobs = [asyncio.create_task(simulation.run()), asyncio.create_task(run_worker(plan))]
        faults: Faults = {"flush": partial(empty_valkey, config.redis_url)}
        async with served(build_application(simulation, faults)) as address:
            yield address
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)


async def test_the_map_is_live_and_obeys_the_keyboard(city_map: str, newcomer: Newcomer) -> None:
    page = await newcomer()
    await page.goto(city_map)
    await expect(page.locator("#summary")).to_contain_text("drivers online are free")
    await expect(page.locator("#verdict")).to_have_text("No driver ever had two offers.")
    await page.click("text=Empty Valkey")
    await expect(page.locator("#done")).to_have_text("Done: empty valkey.")
    await expect(page.locator("#feed li").first).to_contain_text("accepted")

    await page.locator("#map").focus()
    await page.keyboard.press("Space")

    await expect(page.locator("#pause")).to_have_text("Continue")

    await page.keyboard.press("3")
    await page.keyboard.press("Space")

    await expect(page.locator("#speeds [aria-pressed=true]")).to_have_text("4×")
    await expect(page.locator("#pause")).to_have_text("Pause")


async def test_the_page_is_accessible_on_a_phone_and_in_the_dark(
    city_map: str, newcomer: Newcomer, axe: Callable[[Page], Awaitable[None]]
) -> None:
    for page in (await newcomer(), await newcomer(phone=True, dark=True)):
        await page.goto(city_map)
        await expect(page.locator("#summary")).to_contain_text("drivers online are free")

        await axe(page)

        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
