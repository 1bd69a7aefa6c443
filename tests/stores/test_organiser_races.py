"""Prices step and layouts change while buyers hold seats (R33): two processes, real engines, a small storm.

A successful hold is charged the price in its response; a buyer with an expected total is charged that total
or refused; and no taken seat is renamed, moved to another category or withdrawn.
"""

import asyncio
import random
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from msgspec.structs import replace

from holdfast.app import App
from holdfast.bookings import from_public_id
from holdfast.bookings.encoding import encode_openings, remaining_ms
from holdfast.catalogue.store import store_layout
from holdfast.engines.postgres import Queries, require_row
from holdfast.errors import Busy
from holdfast.layouts import Layout, LayoutBody
from holdfast.layouts.body import CategoryBody, RowBody, SectionBody
from holdfast.organisers.errors import LayoutUnsafe
from holdfast.organisers.price_rules_store import PriceRulesStore
from holdfast.organisers.show_forms import LayoutChange
from holdfast.pricing.rules import EarlyStep, PriceRule, PriceRules
from holdfast.web.caller import Scope
from tests.support.paid_bookings import violations
from tests.support.show_fixture import Till
from tests.support.shows import Fan, a_show, fans
from tests.support.wait import a_statement_waits, until

LEDGER = Queries("holdfast.bookings")

PEOPLE, TRIES = 12, 12
CHANGES = 12
ROWS, ROW = "ABCDEFGH", 10
EARLY = 3  # people who cannot take all seats, whatever they keep
ADMIN = Scope(1, is_admin=True)


def rules(change_minor: int) -> PriceRules:
    step = EarlyStep(until=datetime.now(UTC) + timedelta(hours=5), change_minor=change_minor)
    gold = PriceRule(category="Gold", base_minor=3000, floor_minor=1000, ceiling_minor=9000, early=(step,))
    return PriceRules(currency="EUR", rules=(gold,))


def hall(names: list[str], gold: str) -> LayoutBody:
    """Rows of ten; the seats of row A have these names, and those in `gold` of row B are gold."""
    rows = [
        RowBody(row, names if row == "A" else f"1-{ROW}", at=(0.0, float(place)), category="Gold")
        for place, row in enumerate(ROWS)
    ]
    rows[1] = replace(rows[1], category="Silver", categories={"Gold": gold})
    kinds = [CategoryBody("Gold", "#E69F00"), CategoryBody("Silver", "#0072B2")]
    return LayoutBody("Hall", (0.0, -2.0), kinds, [SectionBody("Stalls", rows)])


FIRST = hall([str(n) for n in range(1, ROW + 1)], "1-5")


async def a_sale(app: App) -> int:
    show = await a_show(app, layout=Layout.build(FIRST), price_minor=3000, owner_seats_max=1000)
    await app.seatmap.rebuild(show, "test")
    return show


async def shopping(fan: Fan, show: int, responses: list[tuple[dict[str, Any], httpx2.Response]]) -> None:
    """Hold a pair, sometimes saying what it costs, sometimes letting it go again."""
    for _ in range(TRIES):
        row, first = random.choice(ROWS), random.randrange(1, ROW)
        body: dict[str, Any] = {"seats": [f"{row}-{first}", f"{row}-{first + 1}"]}
        if random.random() < 0.3:
            body = {"best": {"count": 2}}
        if random.random() < 0.5:
            body["expected_total_minor"] = random.choice([6000, 5000, 8000])
        answer = await fan.post(f"/shows/{show}/holds", body)
        responses.append((body, answer))
        if answer.status_code == 201 and random.random() < 0.5:
            await fan.delete(f"/bookings/{answer.json()['booking_id']}")


async def settled(app: App, show: int) -> list[str]:
    """What an audit finds once what is under way has come to rest."""
    found: list[str] = []

    async def nothing_is_wrong() -> bool:
        found[:] = await violations(app, show)
        return not found

    with suppress(TimeoutError):  # the assertions below report the problem
        await until(nothing_is_wrong, within_s=5)
    return found


async def test_every_buyer_is_charged_the_displayed_price_while_prices_step(
    app: App, api: httpx2.AsyncClient
) -> None:
    show, people = await a_sale(app), await fans(app, api, PEOPLE)
    home = app.catalogue_home
    changer = PriceRulesStore(home.postgres, home.catalogue, ADMIN, pause_s=3600, count_seats=app.count_seats)
    responses: list[tuple[dict[str, Any], httpx2.Response]] = []

    async def stepping() -> None:
        for turn in range(CHANGES):
            await changer.put(show, rules((-500, 0, 1000)[turn % 3]))
            await asyncio.sleep(0.03)

    await asyncio.gather(stepping(), *(shopping(fan, show, responses) for fan in people))

    codes = Counter(answer.json().get("code", "yes") for _, answer in responses)
    assert codes.keys() <= {"yes", "seats_taken", "sold_out", "price_changed"}, codes
    assert min(codes["yes"], codes["price_changed"]) > 0, codes
    price_of = await gold_prices(app, show)
    for body, answer in responses:
        expected = body.get("expected_total_minor")
        if answer.status_code != 201:
            assert answer.json().get("total_minor") != expected or expected is None
            continue
        page = answer.json()
        assert expected in (None, page["amount"])
        row = await app.postgres.fetchrow(
            "SELECT revision, amount_minor FROM booking WHERE show_id = $1 AND request_id IS NOT NULL"
            " AND number = $2",
            show,
            number_of(page),
        )
        assert row is not None
        assert row["amount_minor"] == page["amount"]
        gold = [seat["price_minor"] for seat in page["seats"] if seat["category"] == "Gold"]
        assert set(gold) <= {price_of[row["revision"]]}
    assert await settled(app, show) == []


def number_of(page: dict[str, Any]) -> int:
    return from_public_id(page["booking_id"])[1]


async def gold_prices(app: App, show: int) -> dict[int, int]:
    """Revision -> what a gold seat cost under it, from the audit rows."""
    rows = await app.postgres.fetch(
        "SELECT revision, price_minor FROM price_change WHERE show_id = $1 AND category = 'Gold'", show
    )
    changed = {row["revision"]: row["price_minor"] for row in rows}
    last = await app.postgres.fetchval("SELECT revision FROM show WHERE id = $1", show)
    prices, now = {}, 3000
    for revision in range(1, last + 1):
        now = changed.get(revision, now)
        prices[revision] = now
    return prices


async def test_no_taken_seat_differs_after_a_layout_change(app: App, api: httpx2.AsyncClient) -> None:
    show, people = await a_sale(app), await fans(app, api, PEOPLE)
    changer = app.layout_change(ADMIN)
    responses: list[tuple[dict[str, Any], httpx2.Response]] = []
    outcomes: Counter[str] = Counter()
    has_changed = asyncio.Event()

    async def changing() -> None:
        turn = 0
        while turn < CHANGES or not outcomes["done"]:
            outcomes[await one_change(turn)] += 1
            if outcomes["done"]:
                has_changed.set()
            await asyncio.sleep(0.02)
            turn += 1

    async def joining(fan: Fan) -> None:
        """Later: all people together may be sold out before a change is possible."""
        await has_changed.wait()
        await shopping(fan, show, responses)

    async def one_change(turn: int) -> str:
        names = [str(n) for n in range(1, ROW + 1)]
        names[random.randrange(ROW)] = f"x{turn}"
        layout = Layout.build(hall(names, random.choice(["1-5", "1-2", "7-9"])))
        await store_layout(app.postgres, layout)
        seat = f"{random.choice('CDEFGH')}-{random.randrange(1, ROW + 1)}"
        change = random.choice([LayoutChange(withdraw=(seat,)), LayoutChange(layout_hash=layout.hash)])
        try:
            await changer.apply(show, change)
        except (LayoutUnsafe, Busy) as refused:
            return refused.code
        await app.seatmap.rebuild(show, "changed")
        return "done"

    early, late = people[:EARLY], people[EARLY:]
    async with asyncio.timeout(60):
        await asyncio.gather(
            changing(), *(shopping(fan, show, responses) for fan in early), *map(joining, late)
        )

    codes = Counter(answer.json().get("code", "yes") for _, answer in responses)
    # Busy: a change that holds the sale's lock for longer than a buyer waits, on a slow machine.
    assert codes.keys() <= {"yes", "seats_taken", "sold_out", "price_changed", "unknown_seat", "busy"}, codes
    assert codes["yes"] > codes["busy"], codes
    gone = await withdrawn(app, show)
    layout = (await app.catalogue.show_on_sale(show)).layout
    for fan in people:
        for page in (await fan.get("/bookings", size=100)).json()["bookings"]:
            first = next(a.json() for _, a in responses if a.json().get("booking_id") == page["booking_id"])
            if page["state"] == "held":
                assert page["seats"] == first["seats"]
                assert not gone & {layout.index_of[seat["label"]] for seat in page["seats"]}
    for body, answer in responses:
        if answer.status_code == 201 and "seats" in body:
            assert sorted(seat["label"] for seat in answer.json()["seats"]) == sorted(body["seats"])
    assert await settled(app, show) == []


async def test_a_hold_that_is_being_opened_is_waited_for(app: App) -> None:
    """Its row is written and not yet committed when the layout is looked at: it must not be overlooked."""
    till = Till(app, await a_sale(app))
    names = [str(n) for n in range(1, ROW)] + ["last"]
    layout = Layout.build(hall(names, "1-5"))
    await store_layout(app.postgres, layout)
    changer = app.layout_change(ADMIN)
    opening = replace(till.opening(ROW - 1, price_minor=3000), claimed_at_s=time.monotonic())

    left_ms = remaining_ms([opening], time.monotonic())
    async with app.postgres.transaction() as tx:
        row = require_row(await tx.fetchrow(LEDGER.open_holds, *encode_openings([opening], left_ms)))
        changing = asyncio.create_task(changer.apply(till.show, LayoutChange(layout_hash=layout.hash)))
        await until(lambda: a_statement_waits(app.postgres))

    assert row["outcomes"] == ["held"]
    with pytest.raises(LayoutUnsafe) as refused:
        await changing
    assert refused.value.details["in_use"] == [f"A-{ROW}"]


async def withdrawn(app: App, show: int) -> set[int]:
    rows = await app.postgres.fetch(
        "SELECT unnest(seats) AS seat FROM booking JOIN seat_block USING (show_id, number)"
        " WHERE show_id = $1 AND withdrawn",
        show,
    )
    return {row["seat"] for row in rows}
