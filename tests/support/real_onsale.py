"""The people of a simulated on-sale at a real box office: they arrive, choose, hold and pay alike."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import aiohttp
import numpy as np

from holdfast.simulation import Scenario
from holdfast.simulation.bottleneck import parse_metrics
from holdfast.simulation.population import draw_choosing, draw_population, lognormal, seed_streams
from tests.support.box_office import Office
from tests.support.shows import API, Fan

PATIENCE_S = 60.0


@dataclass
class RealSale:
    """Seconds since the opening."""

    seats_sold: int = 0
    sold_out_s: float = 0.0
    waits_s: list[float] = field(default_factory=list)  # from the arrival to the ticket
    unexpected: list[str] = field(default_factory=list)

    @property
    def median_wait_s(self) -> float:
        return median(self.waits_s)


@dataclass(frozen=True)
class ServiceTimes:
    """Of a purchase that no other disturbs."""

    gateway_s: float
    around_gateway_s: float  # of the payment, beside the gateway
    hold_s: float


class Crowd:
    """Without a waiting room: everybody is inside on arrival."""

    def __init__(self, house: Office, scenario: Scenario, show: int, session: aiohttp.ClientSession) -> None:
        self._url = house.url
        self._scenario = scenario
        self._show = show
        self._session = session
        streams = seed_streams(scenario.seed)
        self.people = draw_population(scenario, streams)
        self.choose_s = draw_choosing(scenario, self.people.is_bot, streams["choosing"])
        self._checkout = lognormal(streams["checkout"], scenario.spread)
        self._random = np.random.default_rng(scenario.seed)
        self.sale = RealSale()

    async def run(self, fans: Sequence[Fan]) -> RealSale:
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for person, fan in enumerate(fans):
                group.create_task(self._live(person, fan, began))
        return self.sale

    async def _live(self, person: int, fan: Fan, began: float) -> None:
        came_at = began + float(self.people.arrive_s[person])
        await sleep_until(came_at + float(self.choose_s[person]))
        size = int(self.people.size[person])
        booking = await self._hold(fan, size)
        while not booking and not self._is_over(came_at):
            await asyncio.sleep(self._random.exponential(self._scenario.retry_s))
            booking = await self._hold(fan, size)
        if not booking:
            return
        await asyncio.sleep(self._scenario.checkout_s * next(self._checkout))
        status, page = await self._post(fan, f"/bookings/{booking}/pay", {"method": "tok_ok"})
        if status != 200 or page["state"] != "confirmed":
            self.sale.unexpected.append(f"pay {status} {page}")
            return
        now = time.monotonic()
        self.sale.seats_sold += size
        self.sale.sold_out_s = now - began
        self.sale.waits_s.append(now - came_at)

    def _is_over(self, came_at: float) -> bool:
        return self.sale.seats_sold >= self._scenario.seats or time.monotonic() > came_at + PATIENCE_S

    async def _hold(self, fan: Fan, size: int) -> str:
        status, page = await self._post(fan, f"/shows/{self._show}/holds", {"best": {"count": size}})
        if status == 201:
            return str(page["booking_id"])
        if status != 409:
            self.sale.unexpected.append(f"hold {status} {page}")
        return ""

    async def _post(self, fan: Fan, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        async with self._session.post(f"{self._url}{API}{path}", json=body, headers=fan.headers) as response:
            return response.status, await response.json(content_type=None)


async def run_real_sale(house: Office, scenario: Scenario, show: int, fans: Sequence[Fan]) -> RealSale:
    connector, timeout = aiohttp.TCPConnector(limit=0), aiohttp.ClientTimeout(total=PATIENCE_S)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        return await Crowd(house, scenario, show, session).run(fans)


async def measure_service(house: Office, show: int, fan: Fan, count: int = 6) -> ServiceTimes:
    """One purchase after the other. The first warms everything up."""
    held_s, paid_s, gateway_s = [], [], []
    for _ in range(count):
        before = await read_gateway_s(house)
        began = time.monotonic()
        booking = (await fan.holds(show, best={"count": 1})).json()["booking_id"]
        held = time.monotonic()
        paid = await fan.post(f"/bookings/{booking}/pay", {"method": "tok_ok"})
        assert paid.status_code == 200, paid.text
        held_s.append(held - began)
        paid_s.append(time.monotonic() - held)
        gateway_s.append(await read_gateway_s(house) - before)
    gateway = median(gateway_s[1:])
    return ServiceTimes(gateway, max(0.0, median(paid_s[1:]) - gateway), median(held_s[1:]))


async def read_gateway_s(house: Office) -> float:
    """Seconds that calls of the gateway took so far. One web worker answers with its own, newest sums."""
    text = (await house.api.get("/metrics")).text
    return parse_metrics(text).get("holdfast_gateway_seconds_sum", 0.0)


async def sleep_until(at: float) -> None:
    await asyncio.sleep(max(0.0, at - time.monotonic()))
