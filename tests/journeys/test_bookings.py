"""R15, R18: a booking is its owner's: read, extended, released; for other users it does not exist."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.config import Config
from tests.conftest import started
from tests.support import shows as cast
from tests.support.opened import asgi_app
from tests.support.shows import API, Fan, problem


@pytest.fixture
async def booking(alice: Fan, a_show: Callable[..., Any]) -> dict[str, Any]:
    held = await alice.holds(await a_show(20), "A-4", "A-5")
    assert held.status_code == 201, held.text
    return dict(held.json())


class TestOwnersOnly:
    async def test_the_owner_sees_it(self, alice: Fan, booking: dict[str, Any]) -> None:
        seen = (await alice.get(f"/bookings/{booking['booking_id']}")).json()

        for name in (
            "booking_id",
            "reference",
            "show_id",
            "state",
            "seats",
            "amount",
            "currency",
            "expires_at",
        ):
            assert seen[name] == booking[name]

    @pytest.mark.parametrize("step", ["see", "extend", "cancel"])
    async def test_other_accounts_cannot_find_the_booking(
        self, alice: Fan, bob: Fan, booking: dict[str, Any], step: str
    ) -> None:
        path = f"/bookings/{booking['booking_id']}"
        steps = {
            "see": lambda: bob.get(path),
            "extend": lambda: bob.post(f"{path}/extend"),
            "cancel": lambda: bob.delete(path),
        }

        refused = await steps[step]()

        assert (refused.status_code, problem(refused)["code"]) == (404, "no_such_booking")
        assert (await alice.get(path)).json()["state"] == "held"

    async def test_without_a_token_nothing_is_shown(self, alice: Fan, booking: dict[str, Any]) -> None:
        refused = await alice.api.get(f"{API}/bookings/{booking['booking_id']}")

        assert refused.status_code == 401

    async def test_my_seats_are_mine_alone(self, alice: Fan, bob: Fan, booking: dict[str, Any]) -> None:
        path = f"/shows/{booking['show_id']}/seats/mine"

        mine, yours = (await alice.get(path)).json(), (await bob.get(path)).json()

        assert [seat["label"] for seat in mine["seats"]] == ["A-4", "A-5"]
        assert yours["seats"] == []


class TestCancelling:
    async def test_frees_the_seats_at_once(self, alice: Fan, bob: Fan, booking: dict[str, Any]) -> None:
        cancelled = await alice.delete(f"/bookings/{booking['booking_id']}")
        held = await bob.holds(booking["show_id"], "A-4", "A-5")

        assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")
        assert held.status_code == 201

    async def test_twice_is_the_same_as_once(self, alice: Fan, bob: Fan, booking: dict[str, Any]) -> None:
        path = f"/bookings/{booking['booking_id']}"
        await alice.delete(path)
        await bob.holds(booking["show_id"], "A-4")

        again = await alice.delete(path)

        assert (again.status_code, again.json()["state"]) == (200, "cancelled")
        assert (await bob.holds(booking["show_id"], "A-4")).status_code == 409

    async def test_gives_the_limit_back(self, alice: Fan, a_show: Callable[..., Any]) -> None:
        show = await a_show(20, owner_seats_max=2)
        first = (await alice.holds(show, "A-4", "A-5")).json()
        refused = await alice.holds(show, "A-6")
        await alice.delete(f"/bookings/{first['booking_id']}")

        assert (refused.status_code, problem(refused)["code"]) == (409, "over_limit")
        assert (await alice.holds(show, "A-6", "A-7")).status_code == 201

    async def test_a_key_of_a_cancelled_hold_holds_nothing(
        self, alice: Fan, bob: Fan, a_show: Callable[..., Any]
    ) -> None:
        show = await a_show(20)
        first = (await alice.holds(show, "A-4", key="used")).json()
        await alice.delete(f"/bookings/{first['booking_id']}")

        again = await alice.holds(show, "A-4", key="used")

        assert (again.status_code, problem(again)["code"]) == (410, "hold_gone")
        assert (await bob.holds(show, "A-4")).status_code == 201


@pytest.mark.alone
class TestExtending:
    async def test_gives_the_whole_time_again(self, alice: Fan, a_show: Callable[..., Any]) -> None:
        held = (await alice.holds(await a_show(20, hold_ttl_s=60), "A-4")).json()
        await asyncio.sleep(0.3)

        extended = await alice.post(f"/bookings/{held['booking_id']}/extend")

        assert extended.status_code == 200
        assert 0.2 < (_at(extended.json()) - _at(held)).total_seconds() < 2

    async def test_keeps_the_seat_beyond_its_first_end(
        self, alice: Fan, bob: Fan, a_show: Callable[..., Any]
    ) -> None:
        show = await a_show(20, hold_ttl_s=1)
        held = (await alice.holds(show, "A-4")).json()
        for _ in range(2):
            await asyncio.sleep(0.7)
            assert (await alice.post(f"/bookings/{held['booking_id']}/extend")).status_code == 200

        assert (await bob.holds(show, "A-4")).status_code == 409

    async def test_ends_at_the_cap(self, short_lived: "Office", bob: Fan) -> None:
        """A hold of 1 s in a house where no hold lives longer than 2 s: the heartbeat cannot save it."""
        show = await cast.a_show(short_lived.app, 20, hold_ttl_s=1)
        fan = short_lived.fan
        held = (await fan.holds(show, "A-4")).json()
        path, answers = f"/bookings/{held['booking_id']}/extend", []
        for _ in range(5):
            await asyncio.sleep(0.4)
            answers.append(await fan.post(path))

        lives_s = [
            (_at(answer.json()) - _opened(held)).total_seconds() for answer in answers if answer.is_success
        ]
        refused = [problem(answer)["code"] for answer in answers if not answer.is_success]
        assert all(life <= 2.001 for life in lives_s), lives_s
        assert lives_s[-1] > 1.5
        assert set(refused) <= {"extension_cap", "hold_gone"}
        assert "extension_cap" in refused
        await asyncio.sleep(0.3)
        assert (await fan.post(path)).status_code == 410

    async def test_cannot_extend_a_cancelled_hold(self, alice: Fan, booking: dict[str, Any]) -> None:
        await alice.delete(f"/bookings/{booking['booking_id']}")

        refused = await alice.post(f"/bookings/{booking['booking_id']}/extend")

        assert (refused.status_code, problem(refused)["code"]) == (410, "hold_gone")


class TestTheList:
    async def test_is_the_askers_own_newest_first_in_pages(
        self, alice: Fan, bob: Fan, a_show: Callable[..., Any]
    ) -> None:
        show, other = await a_show(20), await a_show(20)
        made = [(await alice.holds(show, f"A-{seat}")).json()["booking_id"] for seat in range(1, 5)]
        made.append((await alice.holds(other, "A-1")).json()["booking_id"])
        await bob.holds(show, "B-1")

        pages, before = [], ""
        while True:
            page = (await alice.get("/bookings", size=2, before=before)).json()
            pages.append([booking["booking_id"] for booking in page["bookings"]])
            if page["next"] is None:
                break
            before = page["next"]

        assert [len(page) for page in pages] == [2, 2, 1]
        assert [one for page in pages for one in page] == list(reversed(made))

    async def test_is_empty_for_an_account_without_bookings(self, bob: Fan) -> None:
        assert (await bob.get("/bookings")).json() == {"bookings": [], "next": None, "complete": True}

    async def test_includes_past_bookings(self, alice: Fan, booking: dict[str, Any]) -> None:
        await alice.delete(f"/bookings/{booking['booking_id']}")

        (found,) = (await alice.get("/bookings")).json()["bookings"]

        assert (found["booking_id"], found["state"], found.get("expires_at")) == (
            booking["booking_id"],
            "cancelled",
            None,
        )


class Office:
    """A separate process, and an account that is signed in there."""

    def __init__(self, app: App, fan: Fan) -> None:
        self.app = app
        self.fan = fan


@pytest.fixture
async def short_lived(config: Config, app: App) -> AsyncIterator[Office]:
    application = asgi_app(replace(config, hold_ttl_s=1, hold_life_max_s=2))
    async with (
        started(application),
        httpx2.AsyncClient(
            transport=httpx2.ASGITransport(application), base_url="http://box.office"
        ) as client,
    ):
        (fan,) = await cast.fans(app, client, 1)
        yield Office(app, fan)


def _at(booking: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(booking["expires_at"])


def _opened(booking: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(booking["opened_at"])
