"""Whatever the rules do, a booking costs what it cost at its hold (R33): a state machine on real engines.

People hold, extend, pay, give back and let lapse, over HTTP; an organiser sets and takes away rules; time and
sales move the prices. After every step each booking that was ever made has the price and the lines it was
answered with, what was paid and what came back are that amount, and no price has left floor and ceiling.

6 stories; 100 with --full, an option of tests/storms: name that folder, too, to have it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import httpx2
import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as some
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from holdfast import pricing
from holdfast.app import App
from holdfast.bookings import booking_page, from_public_id
from holdfast.organisers.jobs import PriceJobs
from holdfast.organisers.price_rules_store import PriceRulesStore
from holdfast.pricing.rules import DemandStep, EarlyStep, LateStep, PriceRule, PriceRules
from holdfast.web.caller import Scope
from tests.support.paid_bookings import refund_jobs
from tests.support.show_fixture import Till
from tests.support.shows import Fan, a_show, fans

Result = TypeVar("Result")
SEATS, ROW = 20, 10
BASE = 1500
# In hours from now. The sale closes in 24, the show starts in 48.
EARLY_ENDS, LAST_HOURS = (1, 20), (25, 27)
CHANGES = some.integers(-3000, 3000)


@some.composite
def price_rules(draw: some.DrawFn) -> PriceRules:
    percents = draw(some.lists(some.integers(1, 60), max_size=4, unique=True))
    now = datetime.now(UTC)
    early = [
        EarlyStep(until=now + timedelta(hours=h), change_minor=draw(CHANGES))
        for h in draw(some.lists(some.integers(*EARLY_ENDS), max_size=2, unique=True))
    ]
    late = [
        LateStep(hours_before=h, change_minor=draw(CHANGES))
        for h in draw(some.lists(some.integers(*LAST_HOURS), max_size=2, unique=True))
    ]
    return PriceRules(
        currency="EUR",
        rules=(
            PriceRule(
                category="Standard",
                base_minor=BASE,
                floor_minor=draw(some.integers(200, BASE)),
                ceiling_minor=draw(some.integers(BASE, 6000)),
                early=tuple(early),
                late=tuple(late),
                demand=tuple(DemandStep(sold_percent=p, change_minor=draw(CHANGES)) for p in percents),
            ),
        ),
    )


@dataclass
class Promise:
    """The response to a hold."""

    fan: Fan
    page: dict[str, Any]
    paid: bool = False
    seats: dict[str, dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        self.seats = {seat["label"]: seat for seat in self.page["seats"]}

    @property
    def path(self) -> str:
        return f"/bookings/{self.page['booking_id']}"


@dataclass(frozen=True)
class World:
    app: App
    api: httpx2.AsyncClient
    loop: asyncio.AbstractEventLoop

    def wait(self, act: Awaitable[Result]) -> Result:
        """From the machine's thread: the engines' loop does it."""

        async def acting() -> Result:
            return await act

        return asyncio.run_coroutine_threadsafe(acting(), self.loop).result(60)


class FrozenPrices(RuleBasedStateMachine):
    world: World
    open_holds = Bundle("open_holds")
    bought = Bundle("bought")

    @initialize()
    def opens(self) -> None:
        terms = pricing.Terms(fee_minor=100, fee_bp=300, tax_bp=700)
        app = self.world.app
        self.show = self.do(a_show(app, SEATS, price_minor=BASE, owner_seats_max=20, sold_on=terms))
        self.people: list[Fan] = self.do(fans(app, self.world.api, 3))
        scope = Scope(1, is_admin=True)
        self.rules_store = PriceRulesStore(
            app.postgres, app.catalogue, scope, pause_s=3600, count_seats=app.count_seats
        )
        self.plan: PriceRules | None = None
        self.promises: list[Promise] = []

    def do(self, act: Awaitable[Result]) -> Result:
        return self.world.wait(act)

    @rule(rules=price_rules())
    def rules_are_set(self, rules: PriceRules) -> None:
        self.do(self.rules_store.put(self.show, rules))
        self.plan = rules

    @rule()
    def rules_are_taken_away(self) -> None:
        self.do(self.rules_store.remove(self.show))
        self.plan = None

    @rule(hours=some.integers(1, 26))
    def time_passes(self, hours: int) -> None:
        """The show and its steps come nearer by so many hours; the ledger's clock stays."""
        if self.plan is not None:
            (only,) = self.plan.rules
            nearer = tuple(
                msgspec.structs.replace(step, until=step.until - timedelta(hours=hours))
                for step in only.early
            )
            self.plan = msgspec.structs.replace(
                self.plan, rules=(msgspec.structs.replace(only, early=nearer),)
            )
            text = msgspec.json.encode(self.plan).decode()
            self.sql("UPDATE price_plan SET rules = $2::text::jsonb, due_at = now() WHERE show_id = $1", text)
        self.prices_follow()

    @rule()
    def prices_follow(self) -> None:
        self.sql("UPDATE price_plan SET due_at = now() WHERE show_id = $1")
        app = self.world.app
        self.do(PriceJobs(app.postgres, app.catalogue, pause_s=3600, count_seats=app.count_seats).step())

    @rule(
        target=open_holds,
        who=some.integers(0, 2),
        first=some.integers(1, ROW - 1),
        row=some.sampled_from("AB"),
        says=some.booleans(),
    )
    def hold_seats(self, who: int, first: int, row: str, says: bool) -> Any:
        fan, seats = self.people[who], [f"{row}-{first}", f"{row}-{first + 1}"]
        price = self.price()
        body = {"seats": seats} | ({"expected_total_minor": 2 * price} if says else {})
        answer = self.do(fan.post(f"/shows/{self.show}/holds", body))
        if answer.status_code == 409:  # taken
            assert answer.json()["code"] in ("seats_taken", "over_limit"), answer.text
            return multiple()
        assert answer.status_code == 201, answer.text
        promise = Promise(fan, answer.json())
        assert promise.page["amount"] == 2 * price
        self.promises.append(promise)
        return promise

    @rule(promise=open_holds)
    def extends(self, promise: Promise) -> None:
        answer = self.do(promise.fan.post(f"{promise.path}/extend"))
        if answer.status_code == 200:
            assert answer.json()["amount"] == promise.page["amount"]

    @rule(target=bought, promise=consumes(open_holds))
    def pays(self, promise: Promise) -> Any:
        answer = self.do(promise.fan.post(f"{promise.path}/pay", {"method": "tok_ok"}))
        if answer.status_code != 200:  # it has lapsed
            assert answer.status_code == 410, answer.text
            return multiple()
        promise.paid = True
        (payment,) = self.do(promise.fan.get(f"{promise.path}/payments")).json()["attempts"]
        assert payment["amount"] == promise.page["amount"]
        return promise

    @rule(promise=consumes(open_holds))
    def lapses(self, promise: Promise) -> None:
        _, number = from_public_id(promise.page["booking_id"])
        self.sql("UPDATE booking SET expires_at = now() WHERE show_id = $1 AND number = $2", number)
        self.do(self.world.app.bookings.sweep(500))

    @rule(promise=consumes(bought))
    def gives_everything_back(self, promise: Promise) -> None:
        quote = self.do(promise.fan.get(f"{promise.path}/refund")).json()
        assert quote["amount"] == promise.page["amount"]
        self.do(promise.fan.delete(promise.path))
        self.do(refund_jobs(self.world.app).carry_out())
        back = self.do(promise.fan.get(promise.path)).json()["refunds"]
        assert sum(refund["amount"] for refund in back) == promise.page["amount"]

    @invariant()
    def every_booking_costs_what_it_cost(self) -> None:
        for promise in getattr(self, "promises", []):
            now = self.do(self.page_of_now(promise))
            assert now["amount"] == promise.page["amount"]
            assert [promise.seats[seat["label"]] for seat in now["seats"]] == now["seats"]

    @invariant()
    def no_price_leaves_its_bounds(self) -> None:
        if (plan := getattr(self, "plan", None)) is not None:
            (only,) = plan.rules
            assert only.floor_minor <= self.price() <= only.ceiling_minor

    def teardown(self) -> None:
        if hasattr(self, "show"):
            assert self.do(Till(self.world.app, self.show).violations()) == []

    async def page_of_now(self, promise: Promise) -> dict[str, Any]:
        """The booking as returned by a process that has just read the newest prices."""
        app = self.world.app
        app.catalogue.forget(self.show)
        show = await app.catalogue.show_on_sale(self.show)
        booking = await app.bookings.booking(*from_public_id(promise.page["booking_id"]))
        assert booking is not None
        page = booking_page(booking, show, await app.catalogue.terms(show, booking.revision))
        fields: dict[str, Any] = msgspec.to_builtins(page)
        return fields

    def price(self) -> int:
        sql = "SELECT price_minor FROM price WHERE show_id = $1"
        return int(self.do(self.world.app.postgres.fetchval(sql, self.show)))

    def sql(self, statement: str, *more: object) -> None:
        self.do(self.world.app.postgres.execute(statement, self.show, *more))


@pytest.fixture(scope="session")
def stories(pytestconfig: pytest.Config) -> int:
    return 100 if pytestconfig.getoption("--full", default=False) else 6


async def test_a_held_booking_never_changes_its_price(
    app: App, api: httpx2.AsyncClient, stories: int
) -> None:
    class Machine(FrozenPrices):
        world = World(app, api, asyncio.get_running_loop())

    limits = settings(
        max_examples=stories,
        stateful_step_count=25,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),  # a story of engines takes minutes to shorten
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    run: Callable[..., None] = run_state_machine_as_test

    await asyncio.to_thread(run, Machine, settings=limits)
