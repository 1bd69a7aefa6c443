"""A worker changes prices on time, and every web worker shows the new one (R33)."""

from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.organisers.price_rules_store import PriceRulesStore
from holdfast.pricing.rules import EarlyStep, PriceRule, PriceRules
from holdfast.web.caller import Scope
from tests.support.box_office import Office
from tests.support.shows import API
from tests.support.wait import until

SOON = timedelta(seconds=2)
BASE, EARLY = 3000, 2500


async def test_an_early_price_ends_by_itself_and_not_before_the_announced_time(stage: Office) -> None:
    show, (fan, other) = await stage.a_show(seats=20, price_minor=BASE), await stage.fans(2)
    ends = datetime.now(UTC) + SOON
    step = EarlyStep(until=ends, change_minor=EARLY - BASE)
    rule = PriceRule(
        category="Standard", base_minor=BASE, floor_minor=1000, ceiling_minor=9000, early=(step,)
    )
    app = stage.app
    desk = PriceRulesStore(app.postgres, app.catalogue, Scope(1, is_admin=True), pause_s=5)
    await desk.put(show, PriceRules(currency="EUR", rules=(rule,)))

    held = (await fan.holds(show, "A-1")).json()
    first = await load_price(stage, show)

    async def has_stepped() -> bool:
        return bool((await load_price(stage, show))["price_minor"] == BASE)

    await until(has_stepped, within_s=20)
    after = (await other.holds(show, "A-2")).json()
    reloaded = (await fan.get(f"/bookings/{held['booking_id']}")).json()

    assert (first["price_minor"], first["then_minor"]) == (EARLY, BASE)
    assert datetime.fromisoformat(first["until"]) == ends
    (change,) = (await desk.plan(show)).changes[:1]
    assert (change.why, change.price_minor) == ("step", BASE)
    assert change.at >= ends
    assert (held["amount"], reloaded["amount"], after["amount"]) == (EARLY, EARLY, BASE)


async def load_price(stage: Office, show: int) -> dict[str, Any]:
    page = (await stage.api.get(f"{API}/shows/{show}")).json()
    (price,) = page["prices"]
    assert isinstance(price, dict)
    return price
