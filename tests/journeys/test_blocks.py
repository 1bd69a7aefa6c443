"""R33 and rule 10 of the seam: blocked seats use the same key as bookings."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2

from holdfast.app import App
from holdfast.organisers.blocks_store import BlockStore
from holdfast.organisers.jobs import BlockJobs
from holdfast.seatmap.feed import read_step
from holdfast.seatmap.live import changes_key
from holdfast.web.caller import Role
from tests.support.shows import API, Fan, fans, problem


async def test_a_blocked_seat_cannot_be_held_until_it_is_given_back(
    app: App, api: httpx2.AsyncClient, alice: Fan, a_show: Callable[..., Any]
) -> None:
    show, (admin,) = await a_show(50), await fans(app, api, 1, Role.ADMIN)

    blocked = await admin.post(f"/admin/shows/{show}/blocks", {"seats": ["A-1", "A-2"], "name": "press"})
    refused = await alice.holds(show, "A-2", "A-3")
    seats = await alice.get(f"/shows/{show}/seats")
    freed = await admin.delete(f"/admin/shows/{show}/blocks/{blocked.json()['block_id']}")
    held = await alice.holds(show, "A-2", "A-3")

    assert blocked.status_code == 201, blocked.text
    assert problem(refused)["taken"] == ["A-2"]
    assert seats.json()["states"].startswith("XXA")
    assert freed.json()["seats"] == ["A-1", "A-2"]
    assert held.status_code == 201


async def test_a_held_seat_is_not_taken_away_by_a_block(
    app: App, api: httpx2.AsyncClient, alice: Fan, a_show: Callable[..., Any]
) -> None:
    show, (admin,) = await a_show(50), await fans(app, api, 1, Role.ADMIN)
    await alice.holds(show, "B-1")

    refused = await admin.post(f"/admin/shows/{show}/blocks", {"seats": ["B-1", "B-2"], "name": "press"})

    assert refused.status_code == 409
    assert problem(refused)["taken"] == ["B-1"]
    assert (await admin.get(f"/admin/shows/{show}/blocks")).json()["blocks"] == []


async def test_another_organisers_show_is_not_there(
    app: App, api: httpx2.AsyncClient, alice: Fan, a_show: Callable[..., Any]
) -> None:
    show, (stranger,) = await a_show(50), await fans(app, api, 1, Role.ORGANISER)

    assert (await stranger.get(f"/admin/shows/{show}/blocks")).status_code == 404
    assert (await alice.get(f"/admin/shows/{show}/blocks")).status_code == 403


async def blocked(admin: Fan, show: int, *seats: str, **more: Any) -> dict[str, Any]:
    answer = await admin.post(
        f"/admin/shows/{show}/blocks", {"seats": list(seats), "name": "sponsor", **more}
    )
    assert answer.status_code == 201, answer.text
    block: dict[str, Any] = answer.json()
    return block


async def states(fan: Fan, show: int) -> str:
    await asyncio.sleep(0.11)  # a map may be a tenth of a second old
    text: str = (await fan.get(f"/shows/{show}/seats")).json()["states"]
    return text


async def job(app: App) -> int:
    return await BlockJobs(BlockStore(app.postgres, app.holds)).release()


def in_hours(hours: float) -> str:
    return (datetime.now(UTC) + timedelta(hours=hours)).isoformat()


async def test_some_seats_of_a_block_are_given_to_the_sale_and_the_others_stay(
    app: App, api: httpx2.AsyncClient, alice: Fan, a_show: Callable[..., Any]
) -> None:
    show, (admin,) = await a_show(20), await fans(app, api, 1, Role.ADMIN)
    block = await blocked(admin, show, "A-1", "A-2", "A-3", "A-4")
    path = f"/admin/shows/{show}/blocks/{block['block_id']}/release"

    part = await admin.post(path, {"seats": ["A-2", "A-3"]})
    seen = await states(alice, show)
    held = await alice.holds(show, "A-2", "A-3")
    refused = await alice.holds(show, "A-4")
    strange = await admin.post(path, {"seats": ["A-2"]})
    rest = await admin.post(path)

    assert (part.status_code, part.json()["seats"]) == (200, ["A-1", "A-4"])
    assert seen.startswith("XAAXA")
    assert held.status_code == 201
    assert problem(refused)["taken"] == ["A-4"]
    assert problem(strange)["code"] == "unknown_seat"
    assert rest.json()["seats"] == []
    assert (await states(alice, show)).startswith("AHHAA")
    assert (await admin.get(f"/admin/shows/{show}/blocks")).json()["blocks"] == []
    assert (await admin.post(path)).status_code == 404
    rows = await app.postgres.fetch(
        "SELECT move, actor_id FROM booking_move WHERE show_id = $1 AND number ="
        " (SELECT number FROM booking WHERE show_id = $1 AND note = 'sponsor') ORDER BY id",
        show,
    )
    assert [(row["move"], row["actor_id"]) for row in rows] == [
        (move, admin.account_id) for move in ("block", "reduce", "unblock")
    ]


async def test_seats_go_to_the_sale_by_themselves_when_their_time_has_come(
    app: App, api: httpx2.AsyncClient, alice: Fan, a_show: Callable[..., Any]
) -> None:
    show, (admin,) = await a_show(20), await fans(app, api, 1, Role.ADMIN)
    block = await blocked(admin, show, "A-1", "A-2", release_hours_before=24)  # it starts in two days
    await blocked(admin, show, "A-3")
    await job(app)
    before = await states(alice, show)

    await app.postgres.execute(
        "UPDATE seat_block SET release_at = now() WHERE show_id = $1 AND release_at IS NOT NULL", show
    )
    await job(app)

    assert block["release_hours_before"] == 24
    due = datetime.fromisoformat(block["release_at"]) - datetime.now(UTC)
    assert timedelta(hours=23.9) < due < timedelta(hours=24.1)
    assert before.startswith("XXXA")
    assert (await states(alice, show)).startswith("AAXA")
    (block,) = (await admin.get(f"/admin/shows/{show}/blocks")).json()["blocks"]
    assert block["seats"] == ["A-3"]
    actor = await app.postgres.fetchrow(
        "SELECT actor_id FROM booking_move WHERE show_id = $1 AND move = 'unblock'", show
    )
    assert actor is not None
    assert actor["actor_id"] is None  # time did it


async def test_a_release_in_hours_moves_with_its_show(
    app: App, api: httpx2.AsyncClient, a_show: Callable[..., Any]
) -> None:
    show, (admin,) = await a_show(20), await fans(app, api, 1, Role.ADMIN)
    by_hours = await blocked(admin, show, "A-1", release_hours_before=24)
    by_date = await blocked(admin, show, "A-2", release_at=in_hours(5))
    starts, ends = datetime.now(UTC) + timedelta(days=4), datetime.now(UTC) + timedelta(days=4, hours=2)

    await admin.api.patch(
        f"{API}/admin/shows/{show}",
        headers=admin.headers,
        json={"starts_at": starts.isoformat(), "ends_at": ends.isoformat()},
    )

    first, second = (await admin.get(f"/admin/shows/{show}/blocks")).json()["blocks"]
    assert datetime.fromisoformat(first["release_at"]) == starts - timedelta(hours=24)
    assert first["block_id"] == by_hours["block_id"]
    assert second["release_at"] == by_date["release_at"]


async def test_a_block_gets_another_name_and_another_time(
    app: App, api: httpx2.AsyncClient, a_show: Callable[..., Any]
) -> None:
    show, (admin,) = await a_show(20), await fans(app, api, 1, Role.ADMIN)
    block = await blocked(admin, show, "A-1", release_hours_before=24)
    path = f"{API}/admin/shows/{show}/blocks/{block['block_id']}"

    async def change(**body: Any) -> httpx2.Response:
        return await admin.api.patch(path, headers=admin.headers, json=body)

    renamed = (await change(name="house seats")).json()
    never = (await change(release_at=None)).json()
    both = await change(release_at=in_hours(1), release_hours_before=1)
    past = await change(release_at=in_hours(-1))

    assert (renamed["name"], renamed["release_hours_before"]) == ("house seats", 24)
    assert (never["name"], never["release_at"], never["release_hours_before"]) == ("house seats", None, None)
    assert (both.status_code, problem(both)["field"]) == (422, "release_at")
    assert (past.status_code, problem(past)["field"]) == (422, "release_at")


async def test_fans_see_that_seats_are_blocked_and_not_for_whom(
    app: App, api: httpx2.AsyncClient, alice: Fan, a_show: Callable[..., Any]
) -> None:
    show, (admin,) = await a_show(20), await fans(app, api, 1, Role.ADMIN)
    block = await blocked(admin, show, "A-1", name="the minister")
    path = f"/shows/{show}"

    answers = [
        await alice.get(path),
        await alice.get(f"{path}/seats"),
        await alice.get(f"{path}/layout"),
        await alice.holds(show, "A-1"),
        await alice.get(f"/bookings/{block['block_id']}"),
        await admin.get("/bookings"),
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 409, 404, 200]
    assert not any("minister" in answer.text for answer in answers)


async def test_viewers_of_the_map_see_released_seats(
    app: App, api: httpx2.AsyncClient, a_show: Callable[..., Any]
) -> None:
    """Partly: seats that stay blocked are never shown as free."""
    show, (admin,) = await a_show(20), await fans(app, api, 1, Role.ADMIN)
    block = await blocked(admin, show, "A-1", "A-2")
    before = (await app.seatmap.newest(show)).version

    await admin.post(f"/admin/shows/{show}/blocks/{block['block_id']}/release", {"seats": ["A-2"]})

    entries = await app.redis.call("XRANGE", changes_key(show), f"({before}-0", "+")
    steps = [read_step(entry_id, fields[1]) for entry_id, fields in entries]
    assert [step.changes for step in steps] == [{0: "X", 1: "A"}]


async def test_two_workers_release_a_block_once(
    app: App, api: httpx2.AsyncClient, a_show: Callable[..., Any]
) -> None:
    show, (admin,) = await a_show(20), await fans(app, api, 1, Role.ADMIN)
    await blocked(admin, show, "A-1", release_at=in_hours(1))
    await app.postgres.execute("UPDATE seat_block SET release_at = now() WHERE show_id = $1", show)

    await asyncio.gather(*(job(app) for _ in range(4)))

    moves = await app.postgres.fetch(
        "SELECT 1 FROM booking_move WHERE show_id = $1 AND move = 'unblock'", show
    )
    assert len(moves) == 1
