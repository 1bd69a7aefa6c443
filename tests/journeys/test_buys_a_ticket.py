"""A buyer pays: confirmed, declined and tried again, too late, twice, in two tabs."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from holdfast.app import App
from holdfast.payments.jobs import PaymentJobs
from holdfast.pricing.terms import Terms
from tests.support.paying_fans import hold_seats, load_state, pay
from tests.support.shows import Fan, problem
from tests.support.wait import until

Show = Callable[..., Awaitable[int]]


async def test_a_good_method_confirms_the_booking(a_show: Show, alice: Fan) -> None:
    show_id = await a_show()
    booking = await hold_seats(alice, show_id)

    response = await pay(alice, booking)

    assert response.status_code == 200, response.text
    page = response.json()
    assert (page["state"], page["amount"], page["currency"]) == ("confirmed", 3000, "EUR")
    assert await load_state(alice, booking) == "confirmed"
    states = (await alice.get(f"/shows/{show_id}/seats")).json()["states"]
    assert states[:3] == "BBA"


async def test_a_declined_method_leaves_the_hold_and_another_may_be_tried(a_show: Show, alice: Fan) -> None:
    booking = await hold_seats(alice, await a_show())

    declined = await pay(alice, booking, "tok_declined")
    between = await load_state(alice, booking)
    good = await pay(alice, booking)

    assert declined.status_code == 402
    assert problem(declined)["code"] == "declined"
    assert (between, good.status_code) == ("held", 200)


async def test_the_same_key_pays_once_and_gives_the_same_answer(a_show: Show, alice: Fan) -> None:
    booking = await hold_seats(alice, await a_show())

    first = await pay(alice, booking, key="k1")
    again = await pay(alice, booking, key="k1")
    other = await pay(alice, booking, "tok_slow", key="k1")

    assert (first.status_code, again.status_code) == (200, 200)
    assert first.content == again.content
    assert (other.status_code, problem(other)["code"]) == (422, "key_reused")


async def test_a_key_whose_payment_was_declined_may_be_used_again(a_show: Show, alice: Fan) -> None:
    booking = await hold_seats(alice, await a_show())

    declined = await pay(alice, booking, "tok_declined", key="k2")
    good = await pay(alice, booking, "tok_ok", key="k2")

    assert (declined.status_code, good.status_code) == (402, 200)


async def test_only_one_of_two_tabs_pays(a_show: Show, alice: Fan) -> None:
    booking = await hold_seats(alice, await a_show())

    answers = await asyncio.gather(*(pay(alice, booking) for _ in range(5)))

    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]
    codes = {problem(answer)["code"] for answer in answers if answer.status_code == 409}
    assert codes <= {"payment_under_way", "wrong_move"}


async def test_another_buyers_booking_cannot_be_paid_or_viewed(a_show: Show, alice: Fan, bob: Fan) -> None:
    booking = await hold_seats(alice, await a_show())
    await pay(alice, booking)

    assert (await pay(bob, booking)).status_code == 404
    assert (await bob.get(f"/bookings/{booking}/payment")).status_code == 404
    assert (await bob.delete(f"/bookings/{booking}/payment")).status_code == 404


async def test_a_gateway_that_wants_to_see_the_payer_says_where(a_show: Show, alice: Fan) -> None:
    booking = await hold_seats(alice, await a_show())

    response = await alice.post(f"/bookings/{booking}/pay", {"return_path": "/thanks"})

    page = response.json()
    assert (response.status_code, page["state"]) == (202, "paying")
    assert page["action_url"].startswith("http://127.0.0.1:")
    assert "expires_at" in page


async def test_a_cancelled_payment_restores_the_hold(a_show: Show, alice: Fan) -> None:
    booking = await hold_seats(alice, await a_show())
    await alice.post(f"/bookings/{booking}/pay", {})

    response = await alice.delete(f"/bookings/{booking}/payment")

    assert response.status_code == 200, response.text
    assert await load_state(alice, booking) == "held"
    assert (await pay(alice, booking)).status_code == 200


async def test_after_a_cancelled_payment_the_buyer_still_holds_the_seats(a_show: Show, alice: Fan) -> None:
    booking = await hold_seats(alice, await a_show())
    await alice.post(f"/bookings/{booking}/pay", {})
    await alice.delete(f"/bookings/{booking}/payment")

    response = await alice.post(f"/bookings/{booking}/payment")

    refusal = problem(response)
    assert (response.status_code, refusal["code"], refusal["decline_code"]) == (402, "declined", "called_off")
    assert await load_state(alice, booking) == "held"


@pytest.mark.parametrize("path", ["//evil.example", "https://evil.example", "/\\evil.example", "thanks"])
async def test_a_return_path_to_another_site_is_refused(a_show: Show, alice: Fan, path: str) -> None:
    booking = await hold_seats(alice, await a_show())

    response = await alice.post(f"/bookings/{booking}/pay", {"return_path": path})

    assert (response.status_code, await load_state(alice, booking)) == (422, "held")


async def test_a_lapsed_hold_cannot_be_paid_for(a_show: Show, alice: Fan, app: App) -> None:
    show_id = await a_show()
    booking = await hold_seats(alice, show_id)
    await app.postgres.execute("UPDATE booking SET expires_at = now() WHERE show_id = $1", show_id)

    response = await pay(alice, booking)

    assert (response.status_code, problem(response)["code"]) == (410, "hold_gone")


async def test_the_job_resumes_payments_after_a_silent_gateway(a_show: Show, alice: Fan, app: App) -> None:
    """The answer to a charge was lost, and the money was taken: the job finds out and confirms."""
    show_id = await a_show()
    booking = await hold_seats(alice, show_id)
    jobs = PaymentJobs(app.payments, app.saga_runner)

    response = await pay(alice, booking, "tok_3ds")
    assert response.status_code == 202
    await app.postgres.execute("UPDATE payment SET due_at = now() WHERE show_id = $1", show_id)
    assert await jobs.carry_on() >= 1

    await until(lambda: _is(alice, booking, "paying"))


async def test_an_overdue_payment_is_cancelled_and_its_seats_released(
    a_show: Show, alice: Fan, bob: Fan, app: App
) -> None:
    show_id = await a_show()
    booking = await hold_seats(alice, show_id)
    response = await alice.post(f"/bookings/{booking}/pay", {})
    assert response.status_code == 202
    past = "UPDATE payment SET due_at = now(), deadline_at = now() - interval '1 s' WHERE show_id = $1"
    await app.postgres.execute(past, show_id)

    await PaymentJobs(app.payments, app.saga_runner).carry_on()

    async def bob_has_them() -> bool:  # the map is updated a moment after the ledger
        return (await bob.holds(show_id, "A-1", "A-2")).status_code == 201

    await until(bob_has_them)
    assert await load_state(alice, booking) == "expired"


async def _is(fan: Fan, booking: str, state: str) -> bool:
    return bool(await load_state(fan, booking) == state)


async def test_a_card_buys_at_most_the_shows_limit_per_card(a_show: Show, alice: Fan, bob: Fan) -> None:
    show_id = await a_show(sold_on=Terms(card_seats_max=3))
    first, second = (
        await hold_seats(alice, show_id, "A-1", "A-2"),
        await hold_seats(bob, show_id, "A-3", "A-4"),
    )

    paid = await pay(alice, first, "tok_ok:shared")
    too_many = await pay(bob, second, "tok_ok:shared")
    another = await pay(bob, second, "tok_ok:his-own")

    assert (paid.status_code, another.status_code) == (200, 200)
    assert (too_many.status_code, problem(too_many)["code"]) == (409, "card_limit")
