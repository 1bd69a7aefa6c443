"""Test buyers over HTTP: accounts of their own, holds, sandbox money. Each step is timed."""

import asyncio
import json
import secrets
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import aiohttp

from holdfast.engines.errors import OperatorError
from holdfast.simulation.bottleneck import Level, parse_metrics, subtract

if TYPE_CHECKING:
    from holdfast.simulation.rehearsal_options import RehearsalOptions

API = "/api/v1"
TIMEOUT_S = 30.0
METRICS_WITHIN_S = 5.0  # processes write their sums once per second
LOOK_AGAIN_S = 0.1
PAUSE_MAX_S = 1.0  # of Retry-After
STEPS = ("look", "hold", "pay", "tickets")
NOTHING_LEFT = {"sold_out", "seats_taken", "over_limit"}
CANCEL_AT_ONCE = 16


@dataclass
class RehearsalBuyer:
    token: str
    password: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@dataclass
class LevelTimes:
    """What the buyers of one level saw."""

    steps: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in STEPS})
    purchases: int = 0
    failures: Counter[str] = field(default_factory=Counter)


class Shop:
    """An installation seen from outside."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url.rstrip("/")

    async def send(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Status and body; (0, …) without a response."""
        try:
            async with self._session.request(
                method, self._url + path, json=body, headers=headers
            ) as response:
                text = await response.read()
                page = json.loads(text) if "json" in response.content_type else {}
                return response.status, page if isinstance(page, dict) else {"list": page}
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return 0, {"code": type(error).__name__}

    async def read_metrics(self) -> dict[str, float]:
        try:
            async with self._session.get(f"{self._url}/metrics") as response:
                return parse_metrics(await response.text()) if response.status == 200 else {}
        except (aiohttp.ClientError, TimeoutError):
            return {}


class Buyers:
    """Accounts that were made for this rehearsal, and what they bought."""

    def __init__(self, shop: Shop, options: "RehearsalOptions", show_id: int) -> None:
        self._shop = shop
        self._options = options
        self._show_id = show_id
        self._numbers = count()
        self._run = secrets.token_hex(4)
        self.people: list[RehearsalBuyer] = []
        self.bookings: list[tuple[str, RehearsalBuyer]] = []
        self.is_over = False  # nothing is left to buy, or as much was bought as is allowed
        self._has_waiting_room = False

    async def sign_up(self) -> None:
        for number in range(self._options.accounts):
            password = secrets.token_urlsafe(18)
            body = {
                "email": f"rehearsal-{self._run}-{number}@rehearsal.invalid",
                "password": password,
                "name": "Rehearsal",
            }
            status, page = await self._shop.send("POST", f"{API}/accounts", body)
            if status != 201:
                break
            self.people.append(RehearsalBuyer(page["access_token"], password))
        if not self.people:
            raise OperatorError(
                f"no test account could be made ({page.get('code')}): sign-ups per address and hour are"
                " limited by HOLDFAST_SIGNUPS_PER_ADDRESS_HOUR_MAX"
            )

    async def run_level(self, at_once: int, seconds: float) -> Level:
        before = await self._shop.read_metrics()
        measured, began = LevelTimes(), time.perf_counter()
        stop_at = began + seconds
        await asyncio.gather(*(self._buy_until(stop_at, measured) for _ in range(at_once)))
        took_s = time.perf_counter() - began
        if self._has_waiting_room:
            raise OperatorError("the show has a waiting room: rehearse with a show that has none")
        used = await self._read_used(before, len(measured.steps["hold"]))
        return Level(
            at_once=at_once,
            seconds=took_s,
            purchases=measured.purchases,
            steps=measured.steps,
            failures=measured.failures,
            used=used,
        )

    async def _read_used(self, before: dict[str, float], holds: int) -> dict[str, float]:
        """Once all processes have written what they did for us."""
        give_up_at = time.perf_counter() + METRICS_WITHIN_S
        name = "holdfast_openings_total"
        while True:
            after = await self._shop.read_metrics()
            used = subtract(after, before)
            if used.get(name, 0.0) >= holds or time.perf_counter() > give_up_at:
                return used
            await asyncio.sleep(LOOK_AGAIN_S)

    async def _buy_until(self, stop_at: float, measured: LevelTimes) -> None:
        while time.perf_counter() < stop_at and not self.is_over:
            await self._buy(measured)

    async def _buy(self, measured: LevelTimes) -> None:
        number = next(self._numbers)
        if number >= self._options.purchases:
            self.is_over = True
            return
        buyer, show = self.people[number % len(self.people)], f"{API}/shows/{self._show_id}"
        if not await self._step("look", ("GET", f"{show}/seats", None), buyer, measured):
            return
        wish = {"best": {"count": self._options.seats_per_order}}
        if not (held := await self._step("hold", ("POST", f"{show}/holds", wish), buyer, measured)):
            return
        booking = f"{API}/bookings/{held['booking_id']}"
        self.bookings.append((booking, buyer))
        card = {"method": f"tok_ok:{self._run}-{number}"}
        if not await self._step("pay", ("POST", f"{booking}/pay", card), buyer, measured):
            return
        path = ("GET", f"{booking}/tickets", None)
        if not self._options.tickets or await self._step("tickets", path, buyer, measured):
            measured.purchases += 1

    async def _step(
        self, name: str, request: tuple[str, str, Any], buyer: RehearsalBuyer, measured: LevelTimes
    ) -> dict[str, Any]:
        """The response, timed; empty if it is not the one that a buyer wants."""
        began = time.perf_counter()
        status, page = await self._shop.send(*request, buyer.headers)
        if name == "pay" and status == 202:
            status, page = await self._wait_for(request[1].removesuffix("/pay"), buyer)
        if status not in (200, 201) or (name == "pay" and page.get("state") != "confirmed"):
            await self._note_failure(name, status, page, measured)
            return {}
        measured.steps[name].append(time.perf_counter() - began)
        return page or {"status": status}

    async def _wait_for(self, booking: str, buyer: RehearsalBuyer) -> tuple[int, dict[str, Any]]:
        give_up_at = time.perf_counter() + TIMEOUT_S
        while True:
            status, page = await self._shop.send("GET", booking, headers=buyer.headers)
            if page.get("state") != "paying" or time.perf_counter() > give_up_at:
                return status, page
            await asyncio.sleep(LOOK_AGAIN_S)

    async def _note_failure(self, step: str, status: int, page: dict[str, Any], measured: LevelTimes) -> None:
        code = str(page.get("code", page.get("state", "unknown")))
        self._has_waiting_room = self._has_waiting_room or code == "not_admitted"
        if self._has_waiting_room or (step == "hold" and code in NOTHING_LEFT):
            self.is_over = True
            return
        measured.failures[f"{step} {status} {code}"] += 1
        await asyncio.sleep(min(PAUSE_MAX_S, float(page.get("retry_after_s", LOOK_AGAIN_S))))

    # ── afterwards ────────────────────────────────────────────────────────────────────

    async def cancel_bookings(self) -> int:
        """Give everything back, as buyers; how many bookings are left."""

        async def cancel(booking: str, buyer: RehearsalBuyer) -> bool:
            status, _ = await self._shop.send("DELETE", booking, headers=buyer.headers)
            return status in (200, 202, 204)

        left = 0
        for first in range(0, len(self.bookings), CANCEL_AT_ONCE):
            some = self.bookings[first : first + CANCEL_AT_ONCE]
            left += (await asyncio.gather(*(cancel(*each) for each in some))).count(False)
        return left

    async def erase(self) -> int:
        """Delete the accounts; how many are left."""
        left = 0
        for buyer in self.people:
            body = {"current_password": buyer.password}
            status, _ = await self._shop.send("POST", f"{API}/me/erasure", body, buyer.headers)
            left += status != 204
        return left
