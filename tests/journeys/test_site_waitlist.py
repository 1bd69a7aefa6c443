"""The pages of a waitlist without scripts: join, place and chance, an offer that is bought or declined."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from tests.support.browser_session import ANN, Visitor
from tests.support.desk import owned, sit_down
from tests.support.shows import Fan, fans
from tests.support.wait import until
from tests.support.waiting_room import a_room

PLACE = re.compile(r'class="figure">1</span>')
ALL = ("A-1", "A-2", "A-3", "A-4")


@dataclass(frozen=True)
class FullShow:
    """Four seats, and the buyer who holds all of them."""

    app: App
    show: int
    buyer: Fan
    booking: str

    @property
    def path(self) -> str:
        return f"/shows/{self.show}/waitlist"

    async def comes_free(self) -> None:
        await self.buyer.delete(f"/bookings/{self.booking}")
        await self.app.waitlists.steps.run(self.show)


@pytest.fixture
async def full(app: App, api: httpx2.AsyncClient, a_show: Callable[..., Any]) -> FullShow:
    show, (buyer,) = await a_show(4), await fans(app, api, 1)
    held = await buyer.holds(show, *ALL)
    return FullShow(app, show, buyer, held.json()["booking_id"])


@pytest.fixture
async def fan(app: App, api: httpx2.AsyncClient, ann: Visitor) -> Visitor:
    """Signed in, with a confirmed address."""
    (account,) = await fans(app, api, 1)
    return await sit_down(app, ann, account.account_id)


async def is_full(visitor: Visitor, full: FullShow) -> None:
    async def is_shown() -> bool:  # the map may be a second old
        return await visitor.sees_states(full.show, "H" * 4)

    await until(is_shown)


async def joins(visitor: Visitor, full: FullShow, **wish: Any) -> Visitor:
    await is_full(visitor, full)
    await visitor.goes(full.path)
    return await visitor.sends("/waitlist", **{"seats": "2", **wish})


async def test_a_sold_out_show_leads_to_its_waitlist(ann: Visitor, full: FullShow) -> None:
    async def is_offered() -> bool:
        await ann.goes(f"/shows/{full.show}")
        return ann.says("Join the waitlist")

    await until(is_offered)
    await ann.goes(full.path)

    assert ann.says("You have 5 minutes to accept an offer.")
    assert ann.says("Sign in to join")
    assert f"/sign-in?back={full.path}" in ann.text.replace("%2F", "/")


async def test_a_party_waits_and_leaves(app: App, fan: Visitor, full: FullShow) -> None:
    day = (datetime.now(UTC) + timedelta(days=3)).date().isoformat()

    await joins(fan, full, seats="3", together="true", until=day)

    assert fan.says("You're on the waitlist for 3 tickets")
    assert PLACE.search(fan.text)
    assert fan.says("seats next to each other")
    assert fan.says("not known yet")
    await fan.goes("/my")
    assert fan.says("Place 1")
    assert full.path in fan.text
    await fan.goes(full.path)
    await fan.sends("/leave")
    assert fan.says("You've left the waitlist.")
    assert (await app.waitlists.page(full.show, 0)).parties == 0


async def test_an_offer_is_bought(app: App, fan: Visitor, full: FullShow) -> None:
    await joins(fan, full)
    await full.comes_free()

    await fan.goes(full.path)
    assert fan.says("These seats are offered to you")
    entry = await app.waitlists.page(full.show, await account(app, fan))
    assert entry.entry is not None
    assert entry.entry.offer is not None
    await fan.goes(f"/bookings/{entry.entry.offer.booking_id}")

    assert fan.says("Offered to you from the waitlist until")
    assert not fan.says("Release seats")
    await fan.pays()
    assert fan.at.startswith("/bookings/")
    await app.waitlists.steps.run(full.show)
    await fan.goes(full.path)
    assert fan.says("You accepted an offer from the waitlist.")


async def test_a_declined_offer_goes_on(app: App, fan: Visitor, full: FullShow) -> None:
    await joins(fan, full)
    await full.comes_free()
    await fan.goes("/my")
    page = await app.waitlists.page(full.show, await account(app, fan))
    assert page.entry is not None
    assert page.entry.offer is not None
    await fan.goes(f"/bookings/{page.entry.offer.booking_id}")

    await fan.sends("/decline")

    assert fan.at == full.path
    assert fan.says("You declined an offer.")


async def test_tickets_are_sold_back_or_stay(app: App, ann: Visitor, a_show: Callable[..., Any]) -> None:
    show = await a_show(4)
    await ann.holds(show, "A-1")
    await ann.pays(**ANN)

    await ann.sends("/sell-back")
    assert ann.says("Your tickets are offered to the waitlist.")
    await ann.sends("/keep")

    assert ann.says("You keep your tickets.")
    good = "SELECT count(*) FROM ticket WHERE show_id = $1 AND voided_at IS NULL"
    assert await app.postgres.fetchval(good, show) == 1


async def test_seats_on_sale_are_no_reason_to_wait(fan: Visitor, full: FullShow) -> None:
    await is_full(fan, full)
    await fan.goes(full.path)
    await full.comes_free()

    async def is_free() -> bool:
        return await fan.sees_states(full.show, "A" * 4)

    await until(is_free)
    await fan.sends("/waitlist", seats="2")

    assert fan.status == 409
    assert fan.says("Seats that fit are on sale right now")


@pytest.mark.parametrize(
    "wish", [{"until": "2020-01-01"}, {"until": "soon"}, {"price_minor_max": "cheap"}, {"categories": "Moon"}]
)
async def test_wishes_that_make_no_sense_are_refused(
    fan: Visitor, full: FullShow, wish: dict[str, str]
) -> None:
    await joins(fan, full, **wish)

    assert fan.status in (409, 422)
    assert 'role="alert"' in fan.text


async def test_guests_sign_in_first(ann: Visitor, full: FullShow) -> None:
    await is_full(ann, full)

    answer = await ann.client.post(full.path, data={"seats": "2"})

    assert answer.headers["location"].startswith("/sign-in")


async def test_whom_the_queue_left_without_seats_comes_first(
    app: App, api: httpx2.AsyncClient, fan: Visitor, full: FullShow
) -> None:
    (other,) = await fans(app, api, 1)
    await other.post(f"/shows/{full.show}/waitlist", {"seats": 1})
    room = await a_room(app, full.show)

    async def is_open() -> bool:
        await fan.goes(f"/shows/{full.show}/queue")
        return fan.says("Join the draw")

    await until(is_open)
    await fan.sends("/queue")
    await app.postgres.execute(
        "UPDATE queue SET state = 'drained', ended_at = now(), entrants = joined WHERE show_id = $1",
        full.show,
    )

    async def is_over() -> bool:
        await fan.goes(full.path)
        return fan.says("so you come before everyone who wasn't")

    await until(is_over)
    await fan.sends("/waitlist", seats="1")

    assert room.show_id == full.show
    assert PLACE.search(fan.text)


@pytest.mark.parametrize("language", ["de", "hi"])
async def test_the_page_speaks_other_languages(fan: Visitor, full: FullShow, language: str) -> None:
    fan.client.headers["accept-language"] = language
    await is_full(fan, full)
    await fan.goes(full.path)
    before = fan.text

    await fan.sends("/waitlist", seats="2")

    for text in (before, fan.text):
        assert f'<html lang="{language}-' in text
    assert fan.status == 200


async def test_organisers_see_who_waits(
    app: App, api: httpx2.AsyncClient, ann: Visitor, full: FullShow
) -> None:
    (party,) = await fans(app, api, 1)
    path = await owned(app, api, full.show)
    clerk = await sit_down(app, ann, int(path.split("/")[2]))
    await clerk.goes(f"{path}/waitlist")
    assert clerk.says("No one has joined the waitlist yet.")

    joined = await party.post(f"/shows/{full.show}/waitlist", {"seats": 2})
    await clerk.goes(f"{path}/waitlist")

    assert joined.status_code == 201, joined.text
    assert clerk.says("2 tickets")
    assert clerk.says("Waiting")


async def account(app: App, visitor: Visitor) -> int:
    session = await app.sessions.load(visitor.client.cookies["holdfast"])
    assert session is not None
    return session.account_id
