"""A buyer who goes back and holds again: one payment for both holds, or one of them, never two unnoticed."""

import asyncio
import secrets
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.app import App
from holdfast.engines.metrics import metrics
from holdfast.outbox.fact import BookingBody, BookingCancelled, BookingMerged, Fact
from tests.support.browser_session import ANN, Visitor, booking_key, state_of
from tests.support.paid_bookings import violations
from tests.support.wait import until

PASSWORD = "correct horse battery staple"
PAGES = 40  # at the same time
CHARGES = "SELECT sum(amount_minor) FROM payment WHERE show_id = $1"


@pytest.fixture
async def ann(ann: Visitor) -> Visitor:
    """With an account: a guest holds seats of a show once at a time."""
    await ann.goes("/sign-up")
    email = f"{secrets.token_hex(8)}@example.org"
    return await ann.sends("/sign-up", name="Ann Otter", email=email, password=PASSWORD)


async def test_a_guest_pays_or_releases_first(eve: Visitor, app: App, a_show: Callable[..., Any]) -> None:
    show = await a_show(seats=10)
    first = await eve.holds(show, "A-1")

    refused = await eve.client.post(f"/shows/{show}/hold", data={"seats": ["A-5"]})
    script = await eve.client.post(
        f"/shows/{show}/hold", data={"seats": ["A-5"]}, headers={"accept": "application/json"}
    )
    await eve.goes(first)
    await eve.sends("/release")

    assert refused.status_code == 409
    assert "You already have seats reserved for this show." in refused.text
    assert 'href="/my"' in refused.text
    assert (script.status_code, script.json()["code"]) == (409, "hold_open")
    assert await eve.holds(show, "A-5")


async def test_two_holds_of_a_show_are_paid_for_together(
    ann: Visitor, app: App, a_show: Callable[..., Any]
) -> None:
    show = await a_show(seats=10, price_minor=1500)
    first, second = await ann.holds(show, "A-1", "A-2"), await ann.holds(show, "A-5")
    assert ann.says("You also have A-1, A-2 reserved for this show.")

    await ann.sends("/merge")

    assert ann.at == first
    assert ann.says("Pay €45")
    assert not ann.says("You also have")
    assert await state_of(app, second) == "cancelled"
    await until(lambda: ann.sees_states(show, "HHAAHAAAAA"))
    assert await violations(app, show) == []
    await ann.pays(**ANN)
    assert ann.says("Your 3 tickets")
    assert await app.postgres.fetchval(CHARGES, show) == 4500
    await until(lambda: ann.sees_states(show, "BBAABAAAAA"))
    assert await violations(app, show) == []


async def test_the_facts_say_which_booking_has_the_seats(
    ann: Visitor, app: App, a_show: Callable[..., Any]
) -> None:
    show = await a_show(seats=10, price_minor=1500)
    first, second = await ann.holds(show, "A-1"), await ann.holds(show, "A-5")
    await ann.sends("/merge")
    numbers = [booking_key(path)[1] for path in (first, second)]

    facts: list[Fact] = []

    async def all_are_settled() -> bool:
        await app.outbox.settle(10_000)
        facts[:] = [one for one in await app.outbox.facts_after(0, 10_000) if one.number in numbers]
        return len(facts) == 4

    await until(all_are_settled)

    seats: dict[int, set[int]] = {}
    for fact in facts:
        assert isinstance(fact.body, BookingBody)
        is_over = isinstance(fact.body, BookingCancelled)
        seats[fact.number or 0] = set() if is_over else set(fact.body.seats)
    assert seats == {numbers[0]: {0, 4}, numbers[1]: set()}
    merged = facts[-1].body
    assert isinstance(merged, BookingMerged)
    assert (merged.added, merged.from_number, merged.amount_minor) == ((4,), numbers[1], 3000)


async def test_sent_twice_it_is_done_once(ann: Visitor, app: App, a_show: Callable[..., Any]) -> None:
    show = await a_show(seats=10, price_minor=1500)
    first, second = await ann.holds(show, "A-1"), await ann.holds(show, "A-5")
    form = {"other": first.rpartition("/")[2]}

    answers = [await ann.client.post(f"{second}/merge", data=form) for _ in range(2)]

    assert {answer.headers["location"] for answer in answers} == {f"{first}?notice=merged"}
    booking = await app.bookings.booking(*booking_key(first))
    assert booking is not None
    assert (booking.seats, booking.amount_minor) == ((0, 4), 3000)
    assert await violations(app, show) == []


async def test_the_other_hold_is_released_in_one_step(
    ann: Visitor, app: App, a_show: Callable[..., Any]
) -> None:
    show = await a_show(seats=10)
    first, second = await ann.holds(show, "A-1"), await ann.holds(show, "A-5")

    await ann.sends("/swap")

    assert ann.at == second
    assert ann.says("Released. You keep the seats below.")
    assert await state_of(app, first) == "cancelled"
    await until(lambda: ann.sees_states(show, "AAAAHAAAAA"))


async def test_a_hold_that_is_being_paid_for_is_not_added_to(
    ann: Visitor, app: App, a_show: Callable[..., Any]
) -> None:
    show = await a_show(seats=10)
    first = await ann.holds(show, "A-1")
    await ann.sends("/pay", **ANN)
    second = await ann.holds(show, "A-5")
    assert "/merge" not in ann.text

    answer = await ann.client.post(f"{second}/merge", data={"other": first.rpartition("/")[2]})

    assert answer.status_code == 409
    assert [await state_of(app, path) for path in (first, second)] == ["paying", "held"]
    assert await violations(app, show) == []


async def test_together_they_have_no_more_seats_than_one_order(
    ann: Visitor, a_show: Callable[..., Any]
) -> None:
    show = await a_show(seats=10, order_seats_max=3)
    first, second = await ann.holds(show, "A-1", "A-2"), await ann.holds(show, "A-5", "A-6")
    assert "/merge" not in ann.text, "four seats"

    answer = await ann.client.post(f"{second}/merge", data={"other": first.rpartition("/")[2]})

    assert answer.status_code == 409


async def test_a_tab_that_shows_the_smaller_total_does_not_pay_the_larger_one(
    ann: Visitor, app: App, a_show: Callable[..., Any]
) -> None:
    show = await a_show(seats=10, price_minor=1500)
    first = await ann.holds(show, "A-1")
    other = Visitor(ann.client)
    await other.goes(first)
    await ann.holds(show, "A-5")
    await ann.sends("/merge")

    await other.sends("/pay", **ANN)

    assert other.says("Please check the new total.")
    assert other.says("Pay €30")
    assert await state_of(app, first) == "held"


async def test_paying_and_merging_at_once_end_in_one_of_the_two(
    ann: Visitor, app: App, a_show: Callable[..., Any]
) -> None:
    """Whichever locks the first hold first wins; money is never taken for a part of what is booked."""
    for _ in range(3):
        show = await a_show(seats=10, price_minor=1500)
        first = await ann.holds(show, "A-1")
        second = await ann.holds(show, "A-5")
        pay = {**ANN, "amount_minor": "1500"}

        paid, _ = await asyncio.gather(
            ann.client.post(f"{first}/pay", data=pay),
            ann.client.post(f"{second}/merge", data={"other": first.rpartition("/")[2]}),
        )

        booking = await app.bookings.booking(*booking_key(first))
        assert booking is not None
        charged = await app.postgres.fetchval(CHARGES, show)
        assert charged in (None, booking.amount_minor)
        is_sent_to_pay = "/pay/" in paid.headers.get("location", "")
        assert is_sent_to_pay == (charged == 1500), "nothing but the total on the button leads to the gateway"
        assert await violations(app, show) == []


async def test_anothers_hold_is_out_of_reach(ann: Visitor, eve: Visitor, a_show: Callable[..., Any]) -> None:
    show = await a_show(seats=10)
    hers, own = await eve.holds(show, "A-1"), await ann.holds(show, "A-5")
    for what in ("merge", "swap"):
        answer = await ann.client.post(f"{own}/{what}", data={"other": hers.rpartition("/")[2]})
        assert answer.status_code == 404


async def test_many_pages_of_holds_share_their_statements(
    ann: Visitor, app: App, a_show: Callable[..., Any]
) -> None:
    """During an on-sale every winner reads this page: a statement per page would cost more than the hold."""
    show = await a_show(seats=10, price_minor=1500)
    await ann.holds(show, "A-1", "A-2")
    path = await ann.holds(show, "A-5")

    alone = [await _statements(ann, path, pages=1) for _ in range(4)]
    together = [await _statements(ann, path, pages=PAGES) for _ in range(4)]

    assert ann.says("You also have A-1, A-2 reserved for this show.")
    assert min(alone) <= 5, "the session, the booking, its payment, other holds, the terms"
    assert min(together) <= PAGES // 2, "pages at the same time are one batch"


async def _statements(visitor: Visitor, path: str, *, pages: int) -> float:
    """Uses of a connection by this process, while these pages are read at the same time; jobs' among them."""
    before = sum(metrics.slots("postgres_use_seconds"))
    found = await asyncio.gather(*(visitor.client.get(path) for _ in range(pages)))
    assert {page.status_code for page in found} == {200}
    return sum(metrics.slots("postgres_use_seconds")) - before
