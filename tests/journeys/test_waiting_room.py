"""The waiting room over HTTP (R27): join, wait, come in, hold seats; without a pass nothing is held."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import msgspec
import pytest

from holdfast.app import App
from holdfast.errors import Refusal
from holdfast.waitingroom import DrawRecord, Joiner, verify_draw
from holdfast.waitingroom.signed import read_claims, sign_claims
from holdfast.waitingroom.stream_api import stream_queue
from holdfast.web.caller import Role
from holdfast.web.puzzles import ProofNeeded
from tests.support.organiser import Organiser, sign_in_organiser
from tests.support.puzzle_solver import solve
from tests.support.shows import API, Fan, fans, problem
from tests.support.wait import until
from tests.support.waiting_room import Room, a_room

ShowMaker = Callable[..., Any]


async def hold(fan: Fan, show_id: int, seat: str = "A-1", admission: str | None = None) -> httpx2.Response:
    headers = fan.headers | ({"Admission": admission} if admission is not None else {})
    return await fan.api.post(f"{API}/shows/{show_id}/holds", json={"seats": [seat]}, headers=headers)


async def come_in(room: Room, fan: Fan) -> str:
    """Join and be called alone; the text of the pass."""
    joined = await fan.post(f"/shows/{room.show_id}/queue")
    assert joined.status_code == 201, joined.text
    status = await room.app.waiting_rooms.status(room.show_id)
    if status is not None and status.entrants is None:
        await room.draw()
    await room.admit()
    redeemed = await fan.post(f"/shows/{room.show_id}/queue/pass")
    assert redeemed.status_code == 200, redeemed.text
    return str(redeemed.json()["text"])


async def until_refused(fan: Fan, show_id: int, code: str, admission: str | None = None) -> None:
    """Another process learns of a change within seconds; until then it may hold a seat, which is released."""

    async def is_refused() -> bool:
        answer = await hold(fan, show_id, "A-9", admission)
        if answer.status_code == 201:
            await fan.delete(f"/bookings/{answer.json()['booking_id']}")
            return False
        return bool(problem(answer)["code"] == code)

    await until(is_refused, within_s=30)


@pytest.fixture
async def open_room(app: App, a_show: ShowMaker) -> Room:
    return await a_room(app, await a_show())


class TestJourney:
    async def test_from_the_draw_to_a_seat(
        self, app: App, open_room: Room, api: httpx2.AsyncClient, alice: Fan, bob: Fan
    ) -> None:
        show_id, queue = open_room.show_id, f"/shows/{open_room.show_id}/queue"

        first = await alice.post(queue)
        again = await alice.post(queue)
        await bob.post(queue)
        assert (first.status_code, again.status_code) == (201, 200)
        assert first.json() == again.json()
        assert first.json()["state"] == "in_draw"
        assert problem(await alice.post(f"{queue}/pass"))["code"] == "not_your_turn"

        await open_room.draw()
        await open_room.admit()
        passed = await alice.post(f"{queue}/pass", {"place": first.json()["token"]})
        assert passed.status_code == 200, passed.text
        assert (await hold(alice, show_id, admission=passed.json()["text"])).status_code == 201

        record = msgspec.json.decode((await api.get(API + queue + "/draw")).content, type=DrawRecord)
        position = verify_draw(record).position(first.json()["number"])
        assert (await alice.get(f"{queue}/place")).json()["position"] == position

    async def test_the_status_is_the_same_for_everyone_and_cacheable(
        self, open_room: Room, api: httpx2.AsyncClient
    ) -> None:
        answer = await api.get(f"{API}/shows/{open_room.show_id}/queue")

        assert answer.status_code == 200
        assert answer.headers["cache-control"].startswith("public")
        assert answer.json()["state"] == "open"
        assert len(answer.json()["commitment"]) == 64

    async def test_leaving_ends_the_pass(self, open_room: Room, alice: Fan) -> None:
        admission = await come_in(open_room, alice)
        assert (await hold(alice, open_room.show_id, "A-1", admission)).status_code == 201

        left = await alice.delete(f"/shows/{open_room.show_id}/queue/place")

        assert left.status_code == 204
        assert problem(await hold(alice, open_room.show_id, "A-2", admission))["code"] == "queue_token_used"
        again = await alice.delete(f"/shows/{open_room.show_id}/queue/place")
        assert problem(again)["code"] == "no_place"

    async def test_buying_ends_the_visit_and_makes_room(
        self, app: App, a_show: ShowMaker, alice: Fan, bob: Fan
    ) -> None:
        room = await a_room(app, await a_show(), inside_max=1)
        admission = await come_in(room, alice)
        await bob.post(f"/shows/{room.show_id}/queue")
        held = (await hold(alice, room.show_id, "A-1", admission)).json()
        paid = await alice.post(f"/bookings/{held['booking_id']}/pay", {"method": "tok_ok"})
        assert paid.is_success, paid.text

        assert (
            await room.admit(0.5) == 0
        )  # the place inside is not free before every process refuses the pass
        assert await room.admit(6) == 1

        assert problem(await alice.post(f"/shows/{room.show_id}/queue/pass"))["code"] == "turn_over"
        assert (await bob.post(f"/shows/{room.show_id}/queue/pass")).status_code == 200
        await until_refused(alice, room.show_id, "queue_token_used", admission)


class TestRefusedHolds:
    """Each with its own code, and nothing is held."""

    async def test_without_a_pass(self, open_room: Room, alice: Fan) -> None:
        await until_refused(alice, open_room.show_id, "not_admitted")
        refused = await hold(alice, open_room.show_id)

        assert refused.status_code == 403
        assert problem(refused)["code"] == "not_admitted"

    async def test_best_available_too(self, open_room: Room, alice: Fan) -> None:
        await until_refused(alice, open_room.show_id, "not_admitted")
        assert problem(await alice.holds(open_room.show_id, best={"count": 2}))["code"] == "not_admitted"

    async def test_another_account(self, open_room: Room, alice: Fan, bob: Fan) -> None:
        admission = await come_in(open_room, alice)

        await until_refused(bob, open_room.show_id, "queue_token_of_other_account", admission)

    async def test_another_show(self, app: App, a_show: ShowMaker, open_room: Room, alice: Fan) -> None:
        other = await a_room(app, await a_show())
        admission = await come_in(other, alice)
        await until_refused(alice, open_room.show_id, "queue_token_of_other_show", admission)

    async def test_expired(self, app: App, a_show: ShowMaker, alice: Fan) -> None:
        room = await a_room(app, await a_show(), window_s=60)
        await alice.post(f"/shows/{room.show_id}/queue")
        await room.draw()
        await room.admit()
        admission = await app.waiting_rooms.redeem(room.show_id, alice.account_id)
        _, claims = read_claims(admission.text, await app.tickets.public_keys())
        hour_ago = replace(claims, from_s=claims.from_s - 3600, until_s=claims.until_s - 3600)
        expired = sign_claims(await app.tickets.signing_key(), hour_ago)

        await until_refused(alice, room.show_id, "queue_token_expired", expired)

    async def test_of_an_earlier_opening(self, app: App, a_show: ShowMaker, alice: Fan) -> None:
        room = await a_room(app, await a_show())
        admission = await come_in(room, alice)
        await room.editor.close(room.show_id)
        await a_room(app, room.show_id)
        await until_refused(alice, room.show_id, "queue_token_expired", admission)

    async def test_tampered(self, open_room: Room, alice: Fan) -> None:
        admission = await come_in(open_room, alice)
        changed = ("B" if admission[20] != "B" else "C").join((admission[:20], admission[21:]))

        await until_refused(alice, open_room.show_id, "queue_token_invalid", changed)

    async def test_a_place_is_not_a_pass(self, open_room: Room, alice: Fan) -> None:
        place = (await alice.post(f"/shows/{open_room.show_id}/queue")).json()["token"]
        await until_refused(alice, open_room.show_id, "queue_token_invalid", place)

    async def test_of_a_revoked_key(self, app: App, open_room: Room, alice: Fan) -> None:
        admission = await come_in(open_room, alice)
        await app.tickets.revoke_keys(None)
        # Another process reads the keys again within half a minute; this one has done so.
        refused = await refused_here(app, open_room.show_id, alice, admission)

        assert refused == "queue_token_key_unknown"
        again = await app.waiting_rooms.redeem(open_room.show_id, alice.account_id)
        assert again.text != admission
        assert await refused_here(app, open_room.show_id, alice, again.text) == ""

    async def test_a_place_of_another_person_does_not_redeem(
        self, open_room: Room, alice: Fan, bob: Fan
    ) -> None:
        queue = f"/shows/{open_room.show_id}/queue"
        place = (await alice.post(queue)).json()["token"]
        await bob.post(queue)
        await open_room.draw()
        await open_room.admit()

        refused = await bob.post(f"{queue}/pass", {"place": place})

        assert problem(refused)["code"] == "queue_token_of_other_account"


async def refused_here(app: App, show_id: int, fan: Fan, admission: str) -> str:
    """The code with which this process refuses a hold; empty: it does not."""
    try:
        await app.waiting_rooms.guard.require(show_id, fan.account_id, admission)
    except Refusal as refusal:
        return refusal.code
    return ""


class TestOrganisers:
    @pytest.fixture
    async def admin(self, app: App, api: httpx2.AsyncClient) -> Organiser:
        return await sign_in_organiser(app, api, Role.ADMIN)

    async def test_a_room_from_its_settings_to_its_end(
        self, app: App, admin: Organiser, a_show: ShowMaker, alice: Fan
    ) -> None:
        show_id = await a_show()
        path = f"/shows/{show_id}/queue"
        assert problem(await admin.send("GET", path))["code"] == "no_queue"

        made = await admin.send("PUT", path, {"inside_max": 7, "draw_at": "2099-01-01T00:00:00Z"})
        opened = await admin.send("POST", f"{path}/open")
        twice = await admin.send("POST", f"{path}/open")

        assert made.json()["status"]["state"] == "scheduled"
        assert (opened.json()["status"]["state"], opened.json()["settings"]["inside_max"]) == ("open", 7)
        assert problem(twice)["code"] == "wrong_room_state"
        await until_refused(alice, show_id, "not_admitted")

        override = {"reason": "the network of the arena is down"}
        assert (await admin.send("POST", f"{path}/override", override)).json()["status"][
            "state"
        ] == "overridden"
        assert (await hold(alice, show_id)).status_code == 201
        ended = await admin.send("POST", f"{path}/override", {"reason": "back", "lets_everyone_in": False})
        assert ended.json()["status"]["state"] == "open"

        closed = await admin.send("POST", f"{path}/close")
        assert closed.json()["status"]["state"] == "closed"
        log = await app.postgres.fetch(
            "SELECT action, after FROM audit_entry WHERE subject_id = $1", str(show_id)
        )
        assert {row["action"] for row in log} == {
            "queue.changed",
            "queue.opened",
            "queue.overridden",
            "queue.closed",
        }
        assert any("the network of the arena is down" in row["after"] for row in log)

    async def test_it_opens_and_draws_by_schedule(self, app: App, a_show: ShowMaker) -> None:
        past = datetime.now(UTC) - timedelta(minutes=1)
        room = await a_room(app, await a_show(), is_open=False, opens_at=past, draw_at=past)

        seen = []
        for _ in range(3):
            seen.append((await room.editor.load(room.show_id)).status.state)
            await room.step()

        assert seen == ["scheduled", "open", "admitting"]

    async def test_it_opens_by_itself_when_many_people_hold_seats(
        self, app: App, api: httpx2.AsyncClient, a_show: ShowMaker
    ) -> None:
        room = await a_room(app, await a_show(), is_open=False, opens_above_holds_per_second=5)
        crowd = await fans(app, api, 30)

        async def are_refused() -> bool:
            """The process knows of the room after a second."""
            holds = (hold(fan, room.show_id, f"A-{n % 10 + 1}") for n, fan in enumerate(crowd))
            answers = await asyncio.gather(*holds)
            return "not_admitted" in {problem(one)["code"] for one in answers if one.status_code == 403}

        await until(are_refused)
        await room.refresh()
        status = await app.waiting_rooms.status(room.show_id)
        assert status is not None
        assert (status.state, status.entrants, status.commitment) == ("admitting", 0, "")
        assert (await crowd[0].post(f"/shows/{room.show_id}/queue")).status_code == 201

        await room.admit()
        await room.admit(121)
        await room.admit(121)
        await room.admit(121)  # called twice, and out: no person waits
        await room.admit(301)
        status = await app.waiting_rooms.status(room.show_id)
        assert status is not None
        assert (status.state, status.opening) == ("scheduled", 2)


class TestGuests:
    async def test_a_browser_works_for_its_place_and_keeps_it_after_signing_in(
        self, app: App, open_room: Room, alice: Fan
    ) -> None:
        rooms, show_id = app.waiting_rooms, open_room.show_id
        session = await app.sessions.load(await app.sessions.open_guest("en"))
        assert session is not None
        with pytest.raises(ProofNeeded) as needed:
            await rooms.join(show_id, Joiner(session.account_id, is_guest=True))
        proof = solve(str(needed.value.details["puzzle"]), int(str(needed.value.details["bits"])))
        joined = await rooms.join(show_id, Joiner(session.account_id, is_guest=True, proof=proof))

        await app.sessions.open_account(alice.account_id, session)

        assert (await alice.get(f"/shows/{show_id}/queue/place")).json()["number"] == joined.place.number
        assert (await alice.post(f"/shows/{show_id}/queue")).status_code == 200

    async def test_an_account_with_a_place_does_not_get_a_second_one(
        self, app: App, open_room: Room, alice: Fan
    ) -> None:
        show_id = open_room.show_id
        mine = (await alice.post(f"/shows/{show_id}/queue")).json()["number"]
        session = await app.sessions.load(await app.sessions.open_guest("en"))
        assert session is not None
        await app.postgres.execute(
            "SELECT * FROM join_queues(ARRAY[$1::bigint], ARRAY[$2::bigint])", show_id, session.account_id
        )

        await app.sessions.open_account(alice.account_id, session)

        assert (await alice.post(f"/shows/{show_id}/queue")).json()["number"] == mine


class TestStream:
    async def test_the_status_comes_first_and_again_when_it_changes(
        self, app: App, open_room: Room, alice: Fan
    ) -> None:
        sent: list[bytes] = []
        gone = asyncio.Event()

        async def receive() -> dict[str, Any]:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message.get("body", b""))

        state = {"app": app, "headers": {}}
        scope = {"type": "http", "path_params": {"show": open_room.show_id}, "state": state}
        following = asyncio.create_task(stream_queue(scope, receive, send))
        await until(lambda: asyncio.sleep(0, b'"joined":0' in b"".join(sent)), within_s=30)
        await app.waiting_rooms.join(open_room.show_id, Joiner(alice.account_id))
        await until(lambda: asyncio.sleep(0, b'"joined":1' in b"".join(sent)), within_s=30)
        gone.set()
        await following

        assert b"".join(sent).startswith(b"event: queue\ndata: {")
