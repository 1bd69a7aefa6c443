"""The layout of a show on sale is changed: seen first, then whole or not at all (R33)."""

from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.layouts import UnknownSeat
from tests.support.organiser import Organiser, Stage, a_body, show_of, sign_in_organiser
from tests.support.own_engines import a_request
from tests.support.shows import API, Fan, fans, problem


@pytest.fixture
async def show(organiser: Organiser, stage: Stage) -> dict[str, Any]:
    return await organiser.create("/shows", show_of(stage))


def drawing(gold: Any = "1-10", silver: Any = "1-10", **other: Any) -> dict[str, Any]:
    """The hall of the tests (rows A, B are Gold, Y, Z Silver) with its rows one by one."""
    body = a_body(**other)
    (section,) = body["sections"]
    section["rows"] = [
        {"label": "A", "seats": gold, "category": "Gold"},
        {"label": "B", "seats": "1-10", "at": [0, 0.95], "category": "Gold"},
        {"label": "Y", "seats": "1-10", "at": [0, 9], "category": "Silver"},
        {"label": "Z", "seats": silver, "at": [0, 9.95], "category": "Silver"},
    ]
    return body


async def upload(organiser: Organiser, body: dict[str, Any], **more: Any) -> str:
    layout: str = (await organiser.create("/layouts", body, **more))["hash"]
    return layout


async def compare(organiser: Organiser, show: dict[str, Any], **change: Any) -> dict[str, Any]:
    answer = await organiser.send("POST", f"/shows/{show['id']}/layout/diff", change)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


async def changed(organiser: Organiser, show: dict[str, Any], **change: Any) -> httpx2.Response:
    return await organiser.send("PUT", f"/shows/{show['id']}/layout", change)


RENAMED = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "9a"]


async def test_a_comparison_lists_changes_by_seat_and_changes_nothing(
    organiser: Organiser, show: dict[str, Any], alice: Fan
) -> None:
    await alice.holds(show["id"], "A-10")
    layout = await upload(organiser, drawing(gold=RENAMED))

    page = await compare(organiser, show, layout_hash=layout, withdraw=["Z-5"])

    assert page["renamed"] == [{"was": "A-10", "label": "A-9a"}]
    assert (page["removed"], page["added"], page["recategorised"]) == (["Z-5"], [], [])
    assert page["in_use"] == [{"label": "A-10", "state": "held"}]
    assert (page["is_safe"], page["unsafe_reasons"]) == (False, ["seats_in_use"])
    after = (await organiser.send("GET", f"/shows/{show['id']}")).json()
    assert (after["layout_hash"], after["revision"]) == (show["layout_hash"], 1)


async def test_a_free_seat_is_renamed_and_sold_under_its_new_name(
    organiser: Organiser, show: dict[str, Any], alice: Fan, bob: Fan
) -> None:
    mine = (await alice.holds(show["id"], "A-1")).json()
    layout = await upload(organiser, drawing(gold=RENAMED))

    done = await changed(organiser, show, layout_hash=layout)
    old, new = await bob.holds(show["id"], "A-10"), await bob.holds(show["id"], "A-9a")

    assert (done.status_code, done.json()["revision"]) == (200, 2)
    assert (old.status_code, problem(old)["code"]) == (422, "unknown_seat")
    assert (new.status_code, new.json()["seats"][0]["label"]) == (201, "A-9a")
    still = (await alice.get(f"/bookings/{mine['booking_id']}")).json()
    assert [seat["label"] for seat in still["seats"]] == ["A-1"]
    seats = (await alice.get(f"/shows/{show['id']}/seats")).json()
    assert seats["layout"] == layout


async def test_a_taken_seat_is_not_changed(organiser: Organiser, show: dict[str, Any], alice: Fan) -> None:
    await alice.holds(show["id"], "A-10")
    layout = await upload(organiser, drawing(gold=RENAMED))

    refused = await changed(organiser, show, layout_hash=layout)
    gone = await changed(organiser, show, withdraw=["A-10"])

    for answer in (refused, gone):
        fields = problem(answer)
        assert (answer.status_code, fields["code"], fields["in_use"]) == (409, "layout_unsafe", ["A-10"])
    assert (await organiser.send("GET", f"/shows/{show['id']}")).json()["revision"] == 1


async def test_a_withdrawn_seat_stays_blocked(
    app: App, organiser: Organiser, show: dict[str, Any], alice: Fan
) -> None:
    done = await changed(organiser, show, withdraw=["Z-5", "Z-6"])
    held = await alice.holds(show["id"], "Z-5")
    (block,) = (await organiser.send("GET", f"/shows/{show['id']}/blocks")).json()["blocks"]
    path = f"/shows/{show['id']}/blocks/{block['block_id']}"
    back = [
        await organiser.send("DELETE", path),
        await organiser.send("POST", f"{path}/release", {}),
        await organiser.send("PATCH", path, {"name": "x"}),
    ]

    assert (done.json()["removed"], done.json()["revision"]) == (["Z-5", "Z-6"], 2)
    assert problem(held)["taken"] == ["Z-5"]
    assert (block["withdrawn"], block["seats"]) == (True, ["Z-5", "Z-6"])
    assert [problem(answer)["code"] for answer in back] == ["seats_withdrawn"] * 3
    states = (await alice.get(f"/shows/{show['id']}/seats")).json()["states"]
    assert [seat for seat, letter in enumerate(states) if letter == "X"] == [34, 35]


async def test_a_new_category_changes_the_price_of_later_holds(
    organiser: Organiser, show: dict[str, Any], alice: Fan
) -> None:
    body = drawing(categories=[*a_body()["categories"], {"name": "Bronze", "colour": "#000000"}])
    body["sections"][0]["rows"][3]["categories"] = {"Bronze": "9-10"}
    layout = await upload(organiser, body)

    page = await compare(organiser, show, layout_hash=layout)
    unpriced = await changed(organiser, show, layout_hash=layout)
    done = await changed(organiser, show, layout_hash=layout, prices={"Bronze": 5_000})
    held = (await alice.holds(show["id"], "Z-9")).json()

    assert page["recategorised"][0] == {"label": "Z-9", "was": "Silver", "category": "Bronze"}
    assert page["new_categories"] == ["Bronze"]
    assert problem(unpriced)["code"] == "unpriced_category"
    assert done.status_code == 200, done.text
    assert (held["seats"][0]["category"], held["amount"]) == ("Bronze", 5_000)


async def test_removed_or_renumbered_seats_are_refused_with_a_suggestion(
    organiser: Organiser, show: dict[str, Any]
) -> None:
    short = await upload(organiser, drawing(gold="1-9"))
    last_gone = await upload(organiser, drawing(silver="1-9"))

    refused = await changed(organiser, show, layout_hash=short)
    also = await changed(organiser, show, layout_hash=last_gone)

    assert problem(refused)["unsafe_reasons"] == ["seats_gone", "renumbered"]
    assert problem(also)["unsafe_reasons"] == ["seats_gone"]


async def test_a_layout_can_grow_during_the_sale(
    organiser: Organiser, show: dict[str, Any], alice: Fan
) -> None:
    await alice.holds(show["id"], "A-1")
    old = show["layout_hash"]
    grown = await upload(organiser, drawing(gold="1-12"), params={"grows_from": old})

    page = await compare(organiser, show, layout_hash=grown)
    done = await changed(organiser, show, layout_hash=grown)
    held = await alice.holds(show["id"], "A-12")

    assert (page["added"], page["is_safe"]) == (["A-11", "A-12"], True)
    assert done.status_code == 200
    assert held.status_code == 201


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({}, "invalid"),
        ({"withdraw": ["Q-1"]}, "unknown_seat"),
        ({"layout_hash": "0" * 32}, "no_such_layout"),
        ({"withdraw": ["A-1"] * 1001}, "invalid"),
    ],
)
async def test_an_empty_change_is_refused(
    organiser: Organiser, show: dict[str, Any], change: dict[str, Any], code: str
) -> None:
    for answer in (
        await organiser.send("POST", f"/shows/{show['id']}/layout/diff", change),
        await changed(organiser, show, **change),
    ):
        assert problem(answer)["code"] == code


async def test_only_the_shows_organiser_can_change_it(
    app: App, api: httpx2.AsyncClient, show: dict[str, Any], alice: Fan
) -> None:
    stranger = await sign_in_organiser(app, api)

    assert (await changed(stranger, show, withdraw=["A-1"])).status_code == 404
    path = f"{API}/admin/shows/{show['id']}/layout"
    assert (await api.put(path, headers=alice.headers, json={"withdraw": ["A-1"]})).status_code == 403


async def test_a_hold_of_a_seat_that_is_renamed_meanwhile_gets_no_other_seat(
    app: App, organiser: Organiser, show: dict[str, Any], api: httpx2.AsyncClient
) -> None:
    """A worker that knows the old hall: `box`, while the change is made by the api's process."""
    (late,) = await fans(app, api, 1)
    order = await a_request(app, show["id"], late.account_id, 9)
    layout = await upload(organiser, drawing(gold=RENAMED))
    await changed(organiser, show, layout_hash=layout)

    with pytest.raises(UnknownSeat):
        await app.holds.hold(order)
    free = await late.holds(show["id"], "A-9a")
    assert free.status_code == 201, free.text
