"""Prices by time and demand: previewed, set, applied, displayed, and frozen at hold (R33)."""

from datetime import datetime
from typing import Any

import httpx2
import pytest
from msgspec import convert, to_builtins

from holdfast.app import App
from holdfast.organisers.jobs import PriceJobs
from holdfast.organisers.price_rules_store import PriceRulesStore
from holdfast.pricing.rules import EarlyStep, PriceRule, PriceRules
from holdfast.web.caller import Role, Scope
from tests.support.organiser import Organiser, Stage, show_of, sign_in_organiser
from tests.support.price_plans import GOLD, gold_rules, in_hours, set_rules
from tests.support.shows import API, Fan, fans, problem


@pytest.fixture
async def show(organiser: Organiser, stage: Stage) -> dict[str, Any]:
    return await organiser.create("/shows", show_of(stage))


async def load_prices(api: httpx2.AsyncClient, show: dict[str, Any]) -> dict[str, Any]:
    page = (await api.get(f"{API}/shows/{show['id']}")).json()
    return {price["category"]: price for price in page["prices"]}


async def now_look(app: App, show_id: int) -> int:
    """The job, once, with this show due: the clock of the plan is turned, not ours."""
    await app.postgres.execute("UPDATE price_plan SET due_at = now() WHERE show_id = $1", show_id)
    return await PriceJobs(app.postgres, app.catalogue, pause_s=3600, count_seats=app.count_seats).step()


async def sells_all_gold(app: App, api: httpx2.AsyncClient, show_id: int, how_many: int) -> None:
    """Confirmed as a guest list is: no money moves, and the seats are sold."""
    buyers = await fans(app, api, how_many)
    for seat, fan in enumerate(buyers, 1):
        held = await fan.holds(show_id, f"A-{seat}")
        assert held.status_code == 201, held.text
        await app.postgres.execute(
            "UPDATE booking SET state = 'confirmed', confirmed_at = now()"
            " WHERE show_id = $1 AND owner_id = $2 AND state = 'held'",
            show_id,
            fan.account_id,
        )


async def test_rules_can_be_previewed_before_they_apply(
    organiser: Organiser, show: dict[str, Any], api: httpx2.AsyncClient
) -> None:
    body = gold_rules(
        early=[{"until": in_hours(24), "change_minor": -10_000}],
        late=[{"hours_before": 3, "change_minor": 5_000}],
        demand=[{"sold_percent": 50, "change_minor": 8_000}, {"sold_percent": 85, "change_minor": 30_000}],
    )

    answer = await organiser.send("POST", f"/shows/{show['id']}/price-rules/preview", body)

    assert answer.status_code == 200, answer.text
    (gold,) = answer.json()["categories"]
    assert (gold["was_minor"], gold["lines"]["price_minor"], gold["shown"]) == (50_000, 40_000, "400.00 INR")
    assert (gold["seats"], gold["sold"], gold["sections"], gold["then_minor"]) == (20, 0, ["Stalls"], 50_000)
    assert gold["at_percent"] == [0, 10, 20, 30, 40, 50, 60, 70, 80, 85, 90, 100]
    assert [curve["prices_minor"][0] for curve in gold["curves"]] == [40_000, 50_000, 55_000]
    assert gold["curves"][1]["prices_minor"][5:] == [58_000, 58_000, 58_000, 58_000, 70_000, 70_000, 70_000]
    assert (await organiser.send("GET", f"/shows/{show['id']}/price-rules")).json()["rules"] is None
    assert (await load_prices(api, show))["Gold"]["price_minor"] == 50_000


async def test_an_early_price_is_shown_with_its_end_and_the_next_price(
    organiser: Organiser, show: dict[str, Any], api: httpx2.AsyncClient, alice: Fan
) -> None:
    ends = in_hours(24)

    plan = await set_rules(organiser, show, gold_rules(early=[{"until": ends, "change_minor": -10_000}]))
    shown = await load_prices(api, show)
    held = (await alice.holds(show["id"], "A-1", "Z-1")).json()

    assert plan["revision"] == 2
    gold = shown["Gold"]
    assert (gold["price_minor"], gold["moves"], gold["then_minor"]) == (40_000, True, 50_000)
    assert datetime.fromisoformat(gold["until"]) == datetime.fromisoformat(ends)
    assert shown["Silver"]["moves"] is False
    assert shown["Silver"]["until"] is None
    assert [seat["price_minor"] for seat in held["seats"]] == [40_000, 20_000]


async def test_a_step_by_demand_is_a_new_revision_with_an_audit_row_and_a_fact(
    app: App, organiser: Organiser, show: dict[str, Any], api: httpx2.AsyncClient, alice: Fan
) -> None:
    await set_rules(organiser, show, gold_rules(demand=[{"sold_percent": 25, "change_minor": 8_000}]))
    before = (await alice.holds(show["id"], "B-1")).json()
    await sells_all_gold(app, api, show["id"], 4)
    assert await now_look(app, show["id"]) == 0  # 4 of 20

    (late_buyer,) = await fans(app, api, 1)
    await late_buyer.holds(show["id"], "A-6")
    await app.postgres.execute(
        "UPDATE booking SET state = 'confirmed', confirmed_at = now() WHERE show_id = $1 AND owner_id = $2",
        show["id"],
        late_buyer.account_id,
    )
    assert await now_look(app, show["id"]) == 1  # 5 of 20: a quarter
    assert await now_look(app, show["id"]) == 0

    plan = (await organiser.send("GET", f"/shows/{show['id']}/price-rules")).json()
    (change,) = plan["changes"]
    assert (change["was_minor"], change["price_minor"], change["why"]) == (50_000, 58_000, "step")
    assert (change["sold"], change["seats"], change["actor_id"]) == (5, 20, None)
    fact = await app.catalogue_home.postgres.fetchval(
        "SELECT body::text FROM outbox WHERE show_id = $1 AND kind = 'show.prices_changed'", show["id"]
    )
    assert '"price_minor": 58000' in fact
    after = (await alice.holds(show["id"], "B-3")).json()
    again = (await alice.get(f"/bookings/{before['booking_id']}")).json()
    assert after.get("amount"), after
    assert (after["amount"], again["amount"]) == (58_000, 50_000)


async def test_seats_that_lapse_and_are_held_again_cost_the_price_of_then(
    app: App, organiser: Organiser, show: dict[str, Any], alice: Fan
) -> None:
    first = (await alice.holds(show["id"], "A-1")).json()
    await set_rules(organiser, show, gold_rules(early=[{"until": in_hours(24), "change_minor": -10_000}]))
    extended = await alice.post(f"/bookings/{first['booking_id']}/extend")
    await alice.delete(f"/bookings/{first['booking_id']}")

    second = (await alice.holds(show["id"], "A-1")).json()

    assert (first["amount"], extended.json()["amount"], second["amount"]) == (50_000, 50_000, 40_000)


class TestWhoSaysWhatTheyWereShown:
    async def test_is_refused_when_the_price_has_changed_and_nothing_is_held(
        self, organiser: Organiser, show: dict[str, Any], alice: Fan, bob: Fan
    ) -> None:
        await set_rules(organiser, show, gold_rules(early=[{"until": in_hours(24), "change_minor": -10_000}]))

        refused = await alice.post(
            f"/shows/{show['id']}/holds", {"seats": ["A-1", "Z-1"], "expected_total_minor": 70_000}
        )
        others = await bob.holds(show["id"], "A-1")
        held = await alice.post(
            f"/shows/{show['id']}/holds", {"seats": ["A-2", "Z-1"], "expected_total_minor": 60_000}
        )

        shown = problem(refused)
        assert (refused.status_code, shown["code"]) == (409, "price_changed")
        assert (shown["total_minor"], shown["expected_total_minor"], shown["currency"]) == (
            60_000,
            70_000,
            "INR",
        )
        assert shown["seats"][0] == {"label": "A-1", "price_minor": 40_000}
        assert others.status_code == 201
        assert (held.status_code, held.json()["amount"]) == (201, 60_000)

    async def test_is_refused_for_the_best_seats_too(
        self, organiser: Organiser, show: dict[str, Any], alice: Fan
    ) -> None:
        wish = {"best": {"count": 2, "category": "Gold"}}

        refused = await alice.post(f"/shows/{show['id']}/holds", {**wish, "expected_total_minor": 99_999})
        held = await alice.post(f"/shows/{show['id']}/holds", {**wish, "expected_total_minor": 100_000})

        assert problem(refused)["total_minor"] == 100_000
        assert held.status_code == 201
        assert len((await alice.get(f"/shows/{show['id']}/seats/mine")).json()["seats"]) == 2

    async def test_has_the_first_answer_when_they_ask_again_after_a_step(
        self, organiser: Organiser, show: dict[str, Any], alice: Fan
    ) -> None:
        path, body = f"/shows/{show['id']}/holds", {"seats": ["A-1"], "expected_total_minor": 50_000}
        first = await alice.post(path, body, key="once")
        await set_rules(organiser, show, gold_rules(early=[{"until": in_hours(24), "change_minor": -10_000}]))

        again = await alice.post(path, body, key="once")
        other = await alice.post(path, {**body, "expected_total_minor": 1}, key="once")

        assert (again.status_code, again.content) == (201, first.content)
        assert problem(other)["code"] == "key_reused"


async def test_a_worker_that_knows_the_old_price_charges_the_new_one_or_refuses(
    app: App, organiser: Organiser, show: dict[str, Any], alice: Fan, bob: Fan
) -> None:
    """The API process has the show in its cache; another process makes the step."""
    await alice.holds(show["id"], "A-10")
    await put_elsewhere(app, show["id"], organiser.who.account_id, in_hours(24))

    old = await alice.post(f"/shows/{show['id']}/holds", {"seats": ["A-1"], "expected_total_minor": 50_000})
    new = await alice.post(f"/shows/{show['id']}/holds", {"seats": ["A-2"], "expected_total_minor": 40_000})
    silent = await bob.holds(show["id"], "A-3")

    assert problem(old)["total_minor"] == 40_000, old.text
    assert (new.status_code, new.json()["amount"]) == (201, 40_000)
    assert silent.json()["amount"] == 40_000


async def put_elsewhere(app: App, show_id: int, account_id: int, ends: str) -> None:
    step = EarlyStep(until=datetime.fromisoformat(ends), change_minor=-10_000)
    rule = convert({**GOLD, "early": [to_builtins(step)]}, PriceRule)
    scope = Scope(account_id, False, account_id)
    await PriceRulesStore(app.postgres, app.catalogue, scope, 5, count_seats=app.count_seats).put(
        show_id, PriceRules(currency="INR", rules=(rule,))
    )


async def test_a_price_that_follows_rules_is_not_set_by_hand(
    organiser: Organiser, show: dict[str, Any]
) -> None:
    path = f"/shows/{show['id']}"
    await set_rules(organiser, show, gold_rules(early=[{"until": in_hours(24), "change_minor": -10_000}]))

    gold = await organiser.send("PATCH", path, {"prices": {"Gold": 10}})
    silver = await organiser.send("PATCH", path, {"prices": {"Silver": 25_000}})
    fee = await organiser.send("PATCH", path, {"fee_minor": 30_001, "prices": {"Silver": 40_000}})
    gone = await organiser.send("DELETE", f"{path}/price-rules")
    after = await organiser.send("PATCH", path, {"prices": {"Gold": 45_000}})

    assert (gold.status_code, problem(gold)["code"]) == (409, "priced_by_rules")
    assert problem(gold)["categories"] == ["Gold"]
    assert silver.json()["prices"] == {"Gold": 40_000, "Silver": 25_000}
    assert problem(fee)["code"] == "fee_too_high"  # the price may come down to its floor
    assert gone.json()["prices"][0]["price_minor"] == 50_000
    assert after.json()["prices"]["Gold"] == 45_000
    plan = (await organiser.send("GET", f"{path}/price-rules")).json()
    assert [(c["category"], c["price_minor"], c["why"]) for c in plan["changes"]] == [
        ("Gold", 45_000, "organiser"),
        ("Gold", 50_000, "rules"),
        ("Silver", 25_000, "organiser"),
        ("Gold", 40_000, "rules"),
    ]


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        (gold_rules(floor_minor=80_000), "bad_price_rules", "rules[0].floor_minor"),
        (gold_rules(base_minor=20_000), "bad_price_rules", "rules[0].base_minor"),
        (gold_rules(category="Royal box"), "unknown_category", None),
        ({**gold_rules(), "currency": "EUR"}, "bad_price_rules", "currency"),
        (
            gold_rules(demand=[{"sold_percent": 50, "change_minor": 1}] * 2),
            "bad_price_rules",
            "rules[0].demand",
        ),
        (
            gold_rules(early=[{"until": in_hours(24 * 9), "change_minor": 1}]),
            "bad_price_rules",
            "rules[0].early",
        ),
        (gold_rules(early=[{"until": in_hours(-1), "change_minor": 1}]), "bad_price_rules", "rules[0].early"),
        (gold_rules(floor_minor=0), "invalid", "rules[0].floor_minor"),
        (gold_rules(base_minor=-1), "invalid", "rules[0].base_minor"),
        (gold_rules(floor_minor=1_000_000_001), "invalid", "rules[0].floor_minor"),
        (
            gold_rules(demand=[{"sold_percent": 101, "change_minor": 1}]),
            "invalid",
            "rules[0].demand[0].sold_percent",
        ),
        (gold_rules(demand=[{"sold_percent": n, "change_minor": 1} for n in range(1, 14)]), "invalid", None),
        (gold_rules(discount=10), "invalid", None),
        ({"currency": "INR", "rules": []}, "invalid", None),
    ],
)
async def test_bad_rules_are_refused_alike_when_tried_out_and_when_set(
    organiser: Organiser, show: dict[str, Any], body: dict[str, Any], code: str, field: str | None
) -> None:
    path = f"/shows/{show['id']}/price-rules"

    answers = [await organiser.send("POST", f"{path}/preview", body), await organiser.send("PUT", path, body)]

    for answer in answers:
        assert (answer.status_code, problem(answer)["code"]) == (422, code), answer.text
        assert field is None or problem(answer)["field"] == field
    assert (await organiser.send("GET", path)).json()["changes"] == []


async def test_a_fee_that_the_floor_cannot_bear_is_refused(organiser: Organiser, stage: Stage) -> None:
    show = await organiser.create("/shows", show_of(stage, fee_minor=15_000))

    answer = await organiser.send("PUT", f"/shows/{show['id']}/price-rules", gold_rules(floor_minor=14_999))

    assert problem(answer)["code"] == "fee_too_high"


async def test_only_the_shows_organiser_can_set_rules(
    app: App, api: httpx2.AsyncClient, show: dict[str, Any], alice: Fan
) -> None:
    stranger, path = await sign_in_organiser(app, api), f"/shows/{show['id']}/price-rules"

    answers = [
        await stranger.send("GET", path),
        await stranger.send("PUT", path, gold_rules()),
        await stranger.send("POST", f"{path}/preview", gold_rules()),
        await stranger.send("DELETE", path),
    ]

    assert [answer.status_code for answer in answers] == [404] * 4
    assert (await alice.get(f"/admin{path}")).status_code == 403
    admin = await sign_in_organiser(app, api, Role.ADMIN)
    assert (await admin.send("PUT", path, gold_rules())).status_code == 200


async def test_a_cancelled_show_takes_no_rules_and_its_prices_move_no_more(
    app: App, organiser: Organiser, show: dict[str, Any]
) -> None:
    await set_rules(organiser, show, gold_rules(demand=[{"sold_percent": 1, "change_minor": 100}]))
    await organiser.send("PATCH", f"/shows/{show['id']}", {"cancelled": True})

    refused = await organiser.send("PUT", f"/shows/{show['id']}/price-rules", gold_rules())

    assert problem(refused)["code"] == "show_cancelled"
    assert await now_look(app, show["id"]) == 0
