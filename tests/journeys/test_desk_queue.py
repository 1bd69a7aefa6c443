"""The waiting room of a show at the desk, without scripts: settings, live state, and its switches."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.waitingroom import RoomState
from tests.support.browser_session import Visitor
from tests.support.desk import DeskHouse, a_desk_house, sit_down
from tests.support.waiting_room import Room


@pytest.fixture
async def house(app: App, api: httpx2.AsyncClient) -> DeskHouse:
    return await a_desk_house(app, api)


@pytest.fixture
async def clerk(app: App, ann: Visitor, house: DeskHouse) -> Visitor:
    """The owner, in a browser."""
    return await sit_down(app, ann, house.organisation_id)


def path(house: DeskHouse) -> str:
    return f"{house.path}/shows/{house.show_id}/queue"


async def state(app: App, house: DeskHouse) -> RoomState:
    app.waiting_rooms.forget(house.show_id)
    status = await app.waiting_rooms.status(house.show_id)
    assert status is not None
    return status.state


async def saves(clerk: Visitor, house: DeskHouse, **typed: str) -> None:
    await clerk.goes(path(house))
    await clerk.sends(f"/shows/{house.show_id}/queue", **typed)


async def test_a_show_gets_a_waiting_room(app: App, clerk: Visitor, house: DeskHouse) -> None:
    await clerk.goes(f"{house.path}/shows/{house.show_id}")
    assert f'href="{path(house)}"' in clerk.text
    await clerk.goes(path(house))
    assert clerk.says("This show has no waiting room yet.")
    opens_at = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")

    await saves(clerk, house, opens_at=opens_at, inside_max="70", beacon="drand quicknet, round 13500000")

    assert clerk.says("The settings are saved.")
    assert f'value="{opens_at}"' in clerk.text
    assert clerk.says("0 of 70")
    page = await Room(app, house.show_id).editor.load(house.show_id)
    assert (page.settings.inside_max, page.settings.turn_s) == (70, 120)
    assert page.settings.beacon == "drand quicknet, round 13500000"
    assert page.settings.opens_at is not None


@pytest.mark.parametrize(
    "typed", [{"inside_max": "0"}, {"inside_max": "many"}, {"opens_at": "tomorrow"}, {"window_s": "5"}]
)
async def test_settings_that_make_no_sense_are_refused(
    clerk: Visitor, house: DeskHouse, typed: dict[str, Any]
) -> None:
    await saves(clerk, house, **typed)

    assert clerk.status == 422
    assert 'role="alert"' in clerk.text


async def test_the_room_is_opened_overridden_and_closed(app: App, clerk: Visitor, house: DeskHouse) -> None:
    await saves(clerk, house)
    await clerk.sends("/queue/open")
    assert (clerk.status, await state(app, house)) == (422, RoomState.SCHEDULED), "not confirmed"

    await clerk.sends("/queue/open", confirmed="true")
    assert await state(app, house) is RoomState.OPEN
    assert clerk.says("Open, before the draw")
    await clerk.sends("/queue/override", confirmed="true")
    assert (clerk.status, await state(app, house)) == (422, RoomState.OPEN), "without a reason"
    await clerk.sends("/queue/override", confirmed="true", reason="The ledger is slow")
    assert await state(app, house) is RoomState.OVERRIDDEN
    await clerk.sends("/queue/resume", confirmed="true", reason="It is not any more")
    assert await state(app, house) is RoomState.OPEN
    await clerk.sends("/queue/close", confirmed="true")

    assert await state(app, house) is RoomState.CLOSED
    await clerk.goes(f"{house.path}/audit-log")
    assert clerk.text.count("queue.overridden") >= 2


async def test_the_public_value_is_entered_once(app: App, clerk: Visitor, house: DeskHouse) -> None:
    await saves(clerk, house, beacon="drand quicknet, round 13500000")
    await clerk.sends("/queue/open", confirmed="true")

    await clerk.sends("/queue/beacon", value="5b1e")

    page = await Room(app, house.show_id).editor.load(house.show_id)
    assert page.beacon_value == "5b1e"
    assert not [line for line in clerk.text.splitlines() if 'action="' in line and "/beacon" in line]


async def test_a_deadline_for_the_public_value_and_demand_are_settings(
    app: App, clerk: Visitor, house: DeskHouse
) -> None:
    until = (datetime.now(UTC) + timedelta(days=400)).strftime("%Y-%m-%dT%H:%M")

    await saves(
        clerk, house, beacon="drand quicknet, round 13500000", beacon_until=until, opens_above_viewers="900"
    )

    assert f'value="{until}"' in clerk.text
    page = await Room(app, house.show_id).editor.load(house.show_id)
    assert page.settings.beacon_until is not None
    assert page.settings.opens_above_viewers == 900
    await saves(clerk, house, beacon="", beacon_until=until)
    assert clerk.status == 422, "a deadline of nothing"


async def test_the_page_says_what_holds_admission_back(app: App, clerk: Visitor, house: DeskHouse) -> None:
    await saves(clerk, house)
    await clerk.sends("/queue/open", confirmed="true")
    await Room(app, house.show_id).draw()
    await app.postgres.execute("UPDATE queue SET held_back_by = 'payments' WHERE show_id = $1", house.show_id)

    await clerk.goes(path(house))

    assert clerk.says("many payments wait for the payment provider")


async def test_members_of_other_organisations_see_nothing(
    app: App, api: httpx2.AsyncClient, eve: Visitor, house: DeskHouse
) -> None:
    other = await a_desk_house(app, api)
    await sit_down(app, eve, other.organisation_id)

    await eve.goes(path(house))
    assert eve.status == 404
    await eve.goes(f"{other.path}/shows/{house.show_id}/queue")
    assert eve.status == 404
