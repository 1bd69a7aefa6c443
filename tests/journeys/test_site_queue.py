"""The pages of a waiting room without scripts: every phase of a place, the pass, the proof of the draw."""

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.config import Config
from holdfast.waitingroom import Joiner
from holdfast.web.asgi import Application
from tests.support.browser_session import Forms, Visitor, a_site, a_visitor
from tests.support.desk import sit_down
from tests.support.puzzle_solver import solve
from tests.support.shows import fans
from tests.support.wait import until
from tests.support.waiting_room import Room, a_room

JSON = {"accept": "application/json"}
PLACE = re.compile(r'id="place">([\d,]+)<')
NUMBER = re.compile(r"Your number in the draw</dt><dd>([\d,]+)<")
REFRESH = re.compile(r'http-equiv="refresh" content="(\d+);')
ShowMaker = Callable[..., Any]
JoinQueue = Callable[..., Any]


@pytest.fixture(scope="module")
async def site(config: Config) -> AsyncIterator[Application]:
    """Puzzles are short."""
    async with a_site(replace(config, puzzle_bits=8, puzzle_wait_s=1)) as application:
        yield application


@pytest.fixture
async def room(app: App, a_show: ShowMaker) -> Room:
    return await a_room(app, await a_show(seats=20))


@pytest.fixture
async def fan(app: App, api: httpx2.AsyncClient, ann: Visitor) -> Visitor:
    """Signed in."""
    (account,) = await fans(app, api, 1)
    return await sit_down(app, ann, account.account_id)


# The heading: a page of people who wait has the words, too, for its script.
ITS_YOUR_TURN = ">It's your turn</h2>"


def path(room: Room) -> str:
    return f"/shows/{room.show_id}/queue"


async def sees(visitor: Visitor, at: str, sentence: str) -> None:
    """A page may be a second or two old."""

    async def is_shown() -> bool:
        await visitor.goes(at)
        return visitor.says(sentence)

    await until(is_shown)


async def joins(visitor: Visitor, room: Room) -> Visitor:
    await sees(visitor, path(room), "Join the draw")
    return await visitor.sends("/queue")


async def is_called(visitor: Visitor, room: Room) -> None:
    """The order is drawn, and the job calls everybody."""
    await room.draw()
    await room.admit()
    await sees(visitor, path(room), ITS_YOUR_TURN)


async def test_before_it_opens_the_page_says_when_and_how(app: App, ann: Visitor, a_show: ShowMaker) -> None:
    opens_at = datetime.now(UTC) + timedelta(minutes=30)
    room = await a_room(app, await a_show(seats=20), is_open=False, opens_at=opens_at)

    await sees(ann, path(room), "The waiting room isn't open yet")

    assert ann.says("Being first makes no difference")
    assert ann.says("How the draw works")
    assert REFRESH.search(ann.text)
    assert not [form for form in Forms(ann.text).found if form.action == path(room)]
    await sees(ann, f"/shows/{room.show_id}", "This show has a waiting room")


async def test_a_show_without_a_room_has_no_queue(ann: Visitor, a_show: ShowMaker) -> None:
    show = await a_show(seats=20)

    await ann.goes(f"/shows/{show}/queue")

    assert ann.at == f"/shows/{show}"


async def test_a_guest_without_scripts_waits_and_joins(ann: Visitor, room: Room) -> None:
    await joins(ann, room)
    assert ann.status == 429
    assert ann.says("One moment: wait 1 seconds")

    async def presses_the_button() -> bool:
        await ann.sends("/queue")
        return ann.says("You're in the draw")

    await until(presses_the_button)
    assert ann.says("Your place is saved in this browser")


async def test_a_script_solves_the_puzzle_of_a_guest(ann: Visitor, room: Room) -> None:
    await sees(ann, path(room), "Join the draw")
    refused = await ann.client.post(path(room), data={}, headers=JSON)
    proof = solve(refused.json()["puzzle"], refused.json()["bits"])

    joined = await ann.client.post(path(room), data={"proof": proof}, headers=JSON)

    assert (refused.status_code, refused.json()["code"]) == (429, "proof_needed")
    assert joined.json() == {"go": path(room)}


async def test_a_place_survives_a_reload_and_another_device(
    app: App, fan: Visitor, eve: Visitor, room: Room
) -> None:
    await joins(fan, room)
    number = NUMBER.search(fan.text)
    await fan.sends("/leave")
    assert fan.says("You've left the queue.")
    await fan.sends("/queue")
    again = NUMBER.search(fan.text)
    for cookie in fan.client.cookies.jar:
        eve.client.cookies.set(cookie.name, cookie.value or "")

    await eve.goes(path(room))
    await room.draw()
    await sees(fan, path(room), 'id="place"')
    mine = PLACE.search(fan.text)
    await sees(eve, path(room), 'id="place"')

    assert mine
    assert number is not None
    assert again is not None
    assert number[1] != again[1], "who leaves gives the place up"
    assert [one[1] for one in PLACE.finditer(eve.text)] == [mine[1]]
    assert REFRESH.search(eve.text)


async def test_from_the_draw_to_a_held_seat(app: App, fan: Visitor, eve: Visitor, room: Room) -> None:
    await joins(fan, room)
    assert fan.says("You're in the draw")
    await is_called(fan, room)
    turn = (await fan.client.get(path(room), headers=JSON)).json()

    await fan.sends("/enter")

    assert turn["phase"] == "turn"
    assert fan.at == f"/shows/{room.show_id}"
    assert fan.headers["cache-control"] == "no-store"
    assert 'id="map"' in fan.text
    await fan.holds(room.show_id, "A-1")
    await sees(fan, path(room), "You're in")
    await fan.sends("/leave")
    refused = await fan.client.post(f"/shows/{room.show_id}/hold", data={"seats": ["A-5"]})
    assert refused.status_code == 403


async def test_without_a_turn_the_show_leads_to_the_queue(ann: Visitor, room: Room) -> None:
    await sees(ann, f"/shows/{room.show_id}", "You choose seats when it's your turn")
    assert 'id="map"' not in ann.text
    assert f'href="{path(room)}"' in ann.text

    async def is_refused() -> bool:  # all processes know of a new room within three seconds
        form = await ann.client.post(f"/shows/{room.show_id}/hold", data={"seats": ["A-1"]})
        return form.status_code == 403 and "Go to the queue" in form.text

    await until(is_refused)
    script = await ann.client.post(f"/shows/{room.show_id}/hold", data={"seats": ["A-1"]}, headers=JSON)

    assert (script.status_code, script.json()["code"]) == (403, "not_admitted")


async def test_who_does_not_respond_falls_back_once_and_then_leaves(
    app: App, fan: Visitor, room: Room
) -> None:
    await joins(fan, room)
    await room.draw()
    for other in range(5_000_000, 5_000_040):  # people behind them: they were not in the draw
        await app.waiting_rooms.join(room.show_id, Joiner(other))
    await room.admit()
    await sees(fan, path(room), ITS_YOUR_TURN)

    await room.admit(200)
    await sees(fan, path(room), "You missed your turn")

    async def is_called_again() -> bool:
        await room.admit(30)
        await fan.goes(path(room))
        return fan.says(ITS_YOUR_TURN)

    await until(is_called_again)
    await room.admit(200)
    await sees(fan, path(room), "Your place has expired")
    await fan.sends("/queue")
    await sees(fan, path(room), ITS_YOUR_TURN if await room.admit() else 'id="place"')


async def test_sold_out_leads_to_the_waitlist(app: App, fan: Visitor, a_show: ShowMaker) -> None:
    room = await a_room(app, await a_show(seats=2), per_minute_max=1)
    await joins(fan, room)
    await app.postgres.execute(
        "UPDATE queue SET state = 'drained', ended_at = now(), entrants = joined WHERE show_id = $1",
        room.show_id,
    )

    await sees(fan, path(room), "Sold out")

    assert fan.says("Your place, 1, counts")
    assert f"/shows/{room.show_id}/waitlist" in fan.text


async def test_an_organiser_lets_everyone_in(fan: Visitor, room: Room) -> None:
    await joins(fan, room)

    await room.editor.override(room.show_id, lets_everyone_in=True, reason="The queue is over")
    await sees(fan, path(room), "There's no queue right now")

    async def is_held() -> bool:
        answer = await fan.client.post(f"/shows/{room.show_id}/hold", data={"seats": ["A-1"]})
        return answer.status_code == 303

    await until(is_held)


async def test_the_proof_of_the_draw_recomputes_my_place(fan: Visitor, room: Room) -> None:
    await joins(fan, room)
    number = NUMBER.search(fan.text)
    await fan.goes(f"{path(room)}/draw")
    assert fan.says("The draw hasn't taken place yet.")
    commitment = re.search(r"<code>([0-9a-f]{64})</code>", fan.text)
    await room.draw()
    await sees(fan, path(room), 'id="place"')
    place = PLACE.search(fan.text)

    await fan.goes(f"{path(room)}/draw?number={number[1] if number else ''}")

    assert commitment
    assert commitment[1] in fan.text
    assert fan.says("The seed matches the commitment.")
    assert place
    assert number
    assert fan.says(f"Number {number[1]} has place {place[1]}.")
    for wrong in ("0", "2", "x", "9" * 12, "9" * 13):
        await fan.goes(f"{path(room)}/draw?number={wrong}")
        assert (fan.status, fan.says("Enter a whole number")) == (422, True), wrong


async def test_the_proof_names_the_deadline_of_a_public_value(
    app: App, ann: Visitor, a_show: ShowMaker
) -> None:
    draw_at = datetime.now(UTC) - timedelta(hours=2)
    late, waiting = [
        await a_room(
            app, await a_show(), draw_at=draw_at, beacon="drand quicknet, round 9", beacon_until=until
        )
        for until in (draw_at + timedelta(hours=1), draw_at + timedelta(hours=30))
    ]
    for room in (late, waiting):
        await room.step()

    await ann.goes(f"{path(late)}/draw")
    assert ann.says("so the order was drawn without it, as announced")
    assert 'class="notice good"' in ann.text
    await ann.goes(f"{path(waiting)}/draw")
    assert ann.says("the draw goes on without it")


async def test_a_show_without_a_draw_has_a_page_that_says_so(ann: Visitor, a_show: ShowMaker) -> None:
    await ann.goes(f"/shows/{await a_show()}/queue/draw")

    assert ann.says("Nothing has been committed yet.")


@pytest.mark.parametrize("language", ["de", "hi"])
async def test_the_page_speaks_other_languages(
    site: Application, fan: Visitor, room: Room, language: str
) -> None:
    await joins(fan, room)
    fan.client.headers["accept-language"] = language

    for at in (path(room), f"{path(room)}/draw", f"/shows/{room.show_id}"):
        await fan.goes(at)

        assert fan.status == 200
        assert f'<html lang="{language}-' in fan.text


async def test_forms_of_other_sites_change_nothing(fan: Visitor, room: Room) -> None:
    await joins(fan, room)
    fan.client.headers["sec-fetch-site"] = "cross-site"

    answers = [await fan.client.post(f"{path(room)}{end}") for end in ("", "/leave", "/enter")]

    assert [answer.status_code for answer in answers] == [403, 403, 403]
    await sees(fan, path(room), "You're in the draw")


async def test_another_visitor_sees_no_place(fan: Visitor, room: Room, site: Application) -> None:
    await joins(fan, room)

    async with a_visitor(site) as other:
        await sees(other, path(room), "Join the draw")
        left = await other.client.post(f"{path(room)}/leave")
        entered = await other.client.post(f"{path(room)}/enter")

    assert left.status_code == 303
    assert entered.headers["location"].startswith("/sign-in")
    await sees(fan, path(room), "You're in the draw")
