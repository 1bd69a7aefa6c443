"""Prices are all-in from the first view, explained line by line, and stay as they were promised at hold."""

from datetime import datetime, timedelta
from typing import Any

import httpx2
import pytest

from tests.support.organiser import Organiser, Stage, an_event, show_of
from tests.support.shows import API, Fan, problem

TERMS = {"fee_minor": 1_000, "fee_bp": 500, "tax_bp": 1800, "card_seats_max": 4}
HALF_LATE = {
    "steps": [{"hours_before": 2, "percent": 50}, {"hours_before": 48, "percent": 100}],
    "keep_fee": True,
}
USUAL = {"steps": [{"hours_before": 24, "percent": 100}], "keep_fee": False}
# ₹500 and ₹200 with GST 18 %, a fee of ₹10 and 5 %: worked out by hand.
GOLD = {"price_minor": 50_000, "base_minor": 39_403, "fee_minor": 2_970, "tax_minor": 7_627}
SILVER = {"price_minor": 20_000, "base_minor": 15_190, "fee_minor": 1_759, "tax_minor": 3_051}


def lines_of(page: dict[str, Any]) -> dict[str, int]:
    return {name: page[name] for name in GOLD}


async def load(api: httpx2.AsyncClient, path: str) -> dict[str, Any]:
    answer = await api.get(API + path)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


async def test_a_show_explains_every_price_without_signing_in(
    organiser: Organiser, stage: Stage, api: httpx2.AsyncClient
) -> None:
    show = await organiser.create("/shows", show_of(stage, **TERMS, refund_policy=HALF_LATE))

    page = await load(api, f"/shows/{show['id']}")

    assert [lines_of(price) for price in page["prices"]] == [GOLD, SILVER]
    assert (page["tax_bp"], page["card_seats_max"]) == (1800, 4)


async def test_a_listing_explains_its_price_and_refund_policy(
    organiser: Organiser, stage: Stage, api: httpx2.AsyncClient
) -> None:
    await organiser.create("/shows", show_of(stage, **TERMS, refund_policy=HALF_LATE))

    (listed,) = (await load(api, f"/events?city={stage.city}"))["events"]
    pages = [
        listed,
        await load(api, f"/events/{stage.event_id}"),
        await load(api, f"/venues/{stage.venue_id}"),
    ]

    for (card,) in [page["shows"] for page in pages]:
        assert card["from_price_minor"] == SILVER["price_minor"]
        assert card["from_lines"] == SILVER
        assert [promise["percent"] for promise in card["refund"]["promises"]] == [100, 50]


async def test_refund_promises_are_listed_in_order_with_their_ends(
    organiser: Organiser, stage: Stage, api: httpx2.AsyncClient
) -> None:
    show = await organiser.create("/shows", show_of(stage, refund_policy=HALF_LATE))

    page = await load(api, f"/shows/{show['id']}")

    starts_at = datetime.fromisoformat(page["starts_at"])
    assert page["refund"]["keep_fee"] is True
    assert [
        (one["percent"], one["hours_before"], datetime.fromisoformat(one["until"]))
        for one in page["refund"]["promises"]
    ] == [(100, 48, starts_at - timedelta(hours=48)), (50, 2, starts_at - timedelta(hours=2))]


async def test_a_booking_explains_each_seat_and_the_whole(
    organiser: Organiser, stage: Stage, alice: Fan
) -> None:
    show = await organiser.create("/shows", show_of(stage, **TERMS))

    held = (await alice.holds(show["id"], "A-1", "Z-1")).json()

    assert [lines_of(seat) for seat in held["seats"]] == [GOLD, SILVER]
    assert held["amount"] == 70_000
    assert {name: held[name] for name in ("base_minor", "fee_minor", "tax_minor")} == {
        name: GOLD[name] + SILVER[name] for name in ("base_minor", "fee_minor", "tax_minor")
    }


async def test_a_hold_made_before_a_change_retains_its_price_and_lines(
    organiser: Organiser, stage: Stage, alice: Fan, bob: Fan
) -> None:
    show = await organiser.create("/shows", show_of(stage, **TERMS))
    first = (await alice.holds(show["id"], "A-1", key="mine")).json()

    changed = await organiser.send(
        "PATCH",
        f"/shows/{show['id']}",
        {"prices": {"Gold": 80_000}, "fee_minor": 0, "fee_bp": 0, "tax_bp": 0, "refund_policy": HALF_LATE},
    )
    second = (await bob.holds(show["id"], "A-3")).json()

    assert changed.status_code == 200, changed.text
    assert lines_of(second["seats"][0]) == {
        "price_minor": 80_000,
        "base_minor": 80_000,
        "fee_minor": 0,
        "tax_minor": 0,
    }
    path = f"/bookings/{first['booking_id']}"
    later = [
        (await alice.get(path)).json(),
        (await alice.get("/bookings")).json()["bookings"][0],
        (await alice.holds(show["id"], "A-1", key="mine")).json(),
        (await alice.post(f"{path}/extend")).json(),
        (await alice.delete(path)).json(),
    ]
    assert [lines_of(page["seats"][0]) for page in later] == [GOLD] * 5
    assert {(page["amount"], page["fee_minor"]) for page in later} == {(50_000, GOLD["fee_minor"])}


@pytest.mark.parametrize(
    "change", [{"prices": {"Gold": 90_000}}, {"fee_minor": 2_000}, {"fee_bp": 0}, {"tax_bp": 500}]
)
async def test_after_any_single_change_the_lines_are_those_of_the_hold(
    organiser: Organiser, stage: Stage, alice: Fan, change: dict[str, Any]
) -> None:
    show = await organiser.create("/shows", show_of(stage, **TERMS))
    held = (await alice.holds(show["id"], "A-1")).json()

    changed = await organiser.send("PATCH", f"/shows/{show['id']}", change)

    assert changed.json()["revision"] == 2
    page = (await alice.get(f"/bookings/{held['booking_id']}")).json()
    assert lines_of(page["seats"][0]) == GOLD


async def test_a_fee_that_the_cheapest_seat_cannot_bear_is_refused(
    organiser: Organiser, stage: Stage
) -> None:
    dear = await organiser.send("POST", "/shows", show_of(stage, fee_minor=20_001))
    show = await organiser.create("/shows", show_of(stage, fee_minor=15_000))
    raised = await organiser.send("PATCH", f"/shows/{show['id']}", {"fee_minor": 20_001})
    lowered = await organiser.send("PATCH", f"/shows/{show['id']}", {"prices": {"Silver": 14_999}})
    taxed = await organiser.send("PATCH", f"/shows/{show['id']}", {"tax_bp": 10_000})

    for answer in (dear, raised, lowered, taxed):
        assert (answer.status_code, problem(answer)["code"]) == (422, "fee_too_high")
    assert problem(taxed)["net_minor"] == 10_000
    assert (await organiser.send("GET", f"/shows/{show['id']}")).json() == show


async def test_a_free_show_has_no_fee(organiser: Organiser, stage: Stage, alice: Fan) -> None:
    show = await organiser.create("/shows", show_of(stage, **TERMS, prices={"Gold": 0, "Silver": 0}))

    held = (await alice.holds(show["id"], "A-1")).json()

    assert held["state"] == "confirmed"
    assert (held["amount"], held["base_minor"], held["fee_minor"], held["tax_minor"]) == (0, 0, 0, 0)


async def test_a_show_has_the_policy_its_event_had_when_it_was_made(
    organiser: Organiser, stage: Stage
) -> None:
    before = await organiser.create("/shows", show_of(stage))
    changed = await organiser.send("PATCH", f"/events/{stage.event_id}", {"refund_policy": HALF_LATE})
    later = {"starts_at": (datetime.fromisoformat(before["starts_at"]) + timedelta(days=1)).isoformat()}
    after = await organiser.create("/shows", show_of(stage, **later))
    even_later = {"starts_at": (datetime.fromisoformat(before["starts_at"]) + timedelta(days=2)).isoformat()}
    own = await organiser.create("/shows", show_of(stage, **even_later, refund_policy={"steps": []}))

    assert before["refund_policy"] == USUAL
    assert changed.json()["refund_policy"] == HALF_LATE
    assert after["refund_policy"] == HALF_LATE
    assert own["refund_policy"] == {"steps": [], "keep_fee": False}
    assert (await organiser.send("GET", f"/shows/{before['id']}")).json()["refund_policy"] == USUAL

    follows = await organiser.send("PATCH", f"/shows/{before['id']}", {"refund_policy": None})

    assert follows.json()["refund_policy"] == HALF_LATE
    assert follows.json()["revision"] == 2


async def test_terms_that_are_the_same_leave_the_revision(organiser: Organiser, stage: Stage) -> None:
    show = await organiser.create("/shows", show_of(stage, **TERMS, refund_policy=HALF_LATE))

    same = await organiser.send("PATCH", f"/shows/{show['id']}", {**TERMS, "refund_policy": HALF_LATE})
    lifted = await organiser.send("PATCH", f"/shows/{show['id']}", {"card_seats_max": None})

    assert same.json() == show
    assert (lifted.json()["revision"], lifted.json()["card_seats_max"]) == (2, None)
    assert lifted.json()["fee_bp"] == 500


@pytest.mark.parametrize(
    "policy",
    [
        {"steps": [{"hours_before": 1, "percent": 101}]},
        {"steps": [{"hours_before": -1, "percent": 50}]},
        {"steps": [{"hours_before": 1, "percent": 50, "days": 2}]},
        {"steps": [{"hours_before": n, "percent": 50} for n in range(11)]},
        {"keep": True},
        [],
    ],
)
async def test_an_invalid_policy_is_refused(organiser: Organiser, stage: Stage, policy: Any) -> None:
    event = await organiser.send("POST", "/events", an_event(refund_policy=policy))
    show = await organiser.send("POST", "/shows", show_of(stage, refund_policy=policy))

    assert (event.status_code, show.status_code) == (422, 422)
