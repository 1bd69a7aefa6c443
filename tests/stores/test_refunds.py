"""Money is refunded once, with or without its seats, and the books record it (R24, R33)."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import msgspec
import pytest

from holdfast.app import App
from holdfast.bookings import BookingState
from holdfast.config import Config
from holdfast.pricing import Terms
from holdfast.refunds.refund import RefundScope, RefundState, pause_ms
from tests.support.opened import open_app
from tests.support.own_engines import hold, shown
from tests.support.paid_bookings import (
    a_refund,
    account,
    bought,
    now_of,
    refund_jobs,
    refunds_of,
    violations,
)
from tests.support.show_fixture import Till, an_owner

Show = Callable[..., Awaitable[int]]
TERMS = Terms(fee_minor=100, tax_bp=1900)


@pytest.fixture(scope="module")
async def hasty(config: Config) -> AsyncIterator[App]:
    """A box office that does not wait long for its gateway."""
    async with open_app(replace(config, gateway_timeout_ms=250)) as opened:
        yield opened


async def test_a_booking_is_refunded_in_full_and_its_seats_are_on_sale_again(app: App, a_show: Show) -> None:
    show_id = await a_show(seats=4, sold_on=TERMS)
    booking = await bought(app, show_id, 1, 2)
    till = Till(app, show_id, booking.owner_id)

    decision = await app.refunds.decide(a_refund(booking))

    after = await now_of(app, booking)
    assert (decision.outcome, after.state) == ("decided", BookingState.REFUNDED)
    assert decision.refund is not None
    assert (decision.refund.state, decision.refund.amount_minor) == (RefundState.DONE, 3000)
    assert (await till.moves(booking.number))[-1] == ("refund", "refunded")
    assert await till.facts(booking.number) == [
        "booking.held",
        "booking.paying",
        "booking.confirmed",
        "refund.requested",
        "booking.refunded",
        "refund.done",
    ]
    assert await till.counted() == 0
    accounts = ("gateway:sandbox", "organiser", "fee", "tax", "owed")
    assert [await account(app, show_id, name) for name in accounts] == [0, 0, 0, 0, 0]
    assert await shown(app, show_id) == "AAAA"
    await hold(app, show_id, an_owner(), 1, 2)
    assert await violations(app, show_id) == []


async def test_a_seat_is_given_back_and_the_booking_keeps_the_others(app: App, a_show: Show) -> None:
    show_id = await a_show(seats=4, sold_on=TERMS)
    booking = await bought(app, show_id, 1, 2, 3)
    till = Till(app, show_id, booking.owner_id)

    decision = await app.refunds.decide(a_refund(booking, what=RefundScope.SEATS, seats=(2,)))

    after = await now_of(app, booking)
    assert (after.state, after.seats, after.amount_minor) == (BookingState.CONFIRMED, (1, 3), 3000)
    assert decision.refund is not None
    assert (decision.refund.seats, decision.refund.amount_minor) == ((2,), 1500)
    assert await till.counted() == 2
    assert (await till.facts(booking.number))[-2:] == ["booking.reduced", "refund.done"]
    assert await shown(app, show_id) == "ABAB"
    assert await violations(app, show_id) == []

    await hold(app, show_id, an_owner(), 2)
    await app.refunds.decide(a_refund(after))
    assert await shown(app, show_id) == "AAHA"
    assert await violations(app, show_id) == []


async def test_facts_from_before_speak_of_the_booking_as_it_was(app: App, a_show: Show) -> None:
    booking = await bought(app, await a_show(seats=4), 1, 2)

    await app.refunds.decide(a_refund(booking, what=RefundScope.SEATS, seats=(2,)))

    rows = await app.postgres.fetch(
        "SELECT kind, (body -> 'seats')::text AS seats FROM outbox"
        " WHERE show_id = $1 AND kind LIKE 'booking.%' ORDER BY id",
        booking.show_id,
    )
    assert [(row["kind"], row["seats"]) for row in rows][-2:] == [
        ("booking.confirmed", "[1, 2]"),
        ("booking.reduced", "[1]"),
    ]


async def test_money_alone_is_refunded_until_none_is_left(app: App, a_show: Show) -> None:
    booking = await bought(app, await a_show(seats=4, sold_on=TERMS), 1, 2)

    async def give(amount: int) -> str:
        decision = await app.refunds.decide(a_refund(booking, what=RefundScope.MONEY, amount_minor=amount))
        return decision.outcome

    assert [await give(amount) for amount in (1000, 2001, 1999, 2, 1, 1)] == [
        "decided",
        "much",
        "decided",
        "much",
        "decided",
        "much",
    ]
    assert (await now_of(app, booking)).state is BookingState.CONFIRMED
    assert await account(app, booking.show_id, "gateway:sandbox") == 0
    assert await violations(app, booking.show_id) == []


async def test_money_refunded_alone_is_not_refunded_again_with_the_seats(app: App, a_show: Show) -> None:
    booking = await bought(app, await a_show(seats=4), 1, 2)
    await app.refunds.decide(a_refund(booking, what=RefundScope.MONEY, amount_minor=500))

    decision = await app.refunds.decide(a_refund(booking))

    assert decision.refund is not None
    assert decision.refund.amount_minor == 2500
    assert await violations(app, booking.show_id) == []


async def test_a_fee_retained_for_other_seats_does_not_offset_the_refund(app: App, a_show: Show) -> None:
    booking = await bought(app, await a_show(seats=4), 1, 2)
    await app.refunds.decide(a_refund(booking, what=RefundScope.SEATS, seats=(1,), amount_minor=750))
    await app.refunds.decide(a_refund(booking, what=RefundScope.MONEY, amount_minor=500))

    decision = await app.refunds.decide(a_refund(await now_of(app, booking)))

    assert decision.refund is not None
    assert (decision.refund.amount_minor, decision.left_minor) == (1000, 750)
    assert await violations(app, booking.show_id) == []


async def test_a_reason_has_one_refund(app: App, a_show: Show) -> None:
    booking = await bought(app, await a_show(seats=4), 1, 2)
    ask = a_refund(booking, what=RefundScope.MONEY, amount_minor=500)

    first, twin = await app.refund_store.decide_many([ask, ask])
    again = await app.refunds.decide(ask)

    assert [one.outcome for one in (first, twin, again)] == ["decided", "same", "same"]
    assert {one.refund.id for one in (first, twin, again) if one.refund} == {1}


async def test_a_booking_that_has_changed_since_is_looked_at_again(app: App, a_show: Show) -> None:
    booking = await bought(app, await a_show(seats=4), 1, 2)
    await app.refunds.decide(a_refund(booking, what=RefundScope.SEATS, seats=(1,)))

    assert (await app.refunds.decide(a_refund(booking))).outcome == "changed"
    assert (await app.refunds.decide(a_refund(booking, what=RefundScope.SEATS, seats=(1,)))).outcome == "gone"
    assert (await now_of(app, booking)).seats == (2,)


@pytest.mark.parametrize("how", ["whole", "seats"])
async def test_a_used_ticket_is_not_given_back_but_money_may_be(app: App, a_show: Show, how: str) -> None:
    booking = await bought(app, await a_show(seats=4), 1, 2)
    await use(app, booking.show_id, booking.number, 2)
    what = RefundScope(how)

    refused = await app.refunds.decide(
        a_refund(booking, what=what, seats=(2,) if what is RefundScope.SEATS else ())
    )
    alone = await app.refunds.decide(a_refund(booking, what=RefundScope.MONEY, amount_minor=100))
    other = await app.refunds.decide(a_refund(booking, what=RefundScope.SEATS, seats=(1,)))

    assert (refused.outcome, refused.seats) == ("used", (2,))
    assert (alone.outcome, other.outcome) == ("decided", "decided")
    assert await violations(app, booking.show_id) == []


async def test_an_owner_does_not_give_back_a_ticket_that_is_anothers(app: App, a_show: Show) -> None:
    booking = await bought(app, await a_show(seats=4), 1, 2)
    await app.postgres.execute(
        "UPDATE ticket SET owner_id = 1 WHERE show_id = $1 AND number = $2 AND seat = 1",
        booking.show_id,
        booking.number,
    )

    by_owner = await app.refunds.decide(a_refund(booking, why="owner"))
    by_organiser = await app.refunds.decide(a_refund(booking))

    assert (by_owner.outcome, by_owner.seats) == ("given", (1,))
    assert by_organiser.outcome == "decided"


async def test_a_refund_without_an_answer_is_retried_under_the_same_key(hasty: App, a_show: Show) -> None:
    """A part of what was paid: under another key the gateway would give it twice."""
    booking = await bought(hasty, await a_show(seats=4), 1, method="tok_refund_timeout")

    first = await hasty.refunds.decide(a_refund(booking, what=RefundScope.MONEY, amount_minor=500))
    before = await account(hasty, booking.show_id, "owed")
    await due_now(hasty, booking.show_id)
    jobs = refund_jobs(hasty)
    await jobs.carry_out()
    await jobs.wait_until_idle()

    (refund,) = await refunds_of(hasty, booking)
    assert first.refund is not None
    assert (first.refund.state, before) == (RefundState.REQUESTED, -500)
    assert (refund.state, refund.tries) == (RefundState.DONE, 1)
    assert await account(hasty, booking.show_id, "owed") == 0
    assert await violations(hasty, booking.show_id) == []


async def test_a_gateway_that_refuses_leaves_it_to_a_person(app: App, a_show: Show) -> None:
    booking = await bought(app, await a_show(seats=4), 1, method="tok_refund_refused")
    till = Till(app, booking.show_id)

    decision = await app.refunds.decide(a_refund(booking))

    refund = decision.refund
    assert refund is not None
    assert (refund.state, (await now_of(app, booking)).state) == (RefundState.BY_HAND, BookingState.REFUNDED)
    assert (await till.facts(booking.number))[-1] == "refund.by_hand"
    assert await account(app, booking.show_id, "owed") == -1500
    assert await violations(app, booking.show_id) == []

    second = await app.refund_store.retry(refund)
    assert second is not None
    assert second.gateway_key != refund.gateway_key
    assert (await app.refunds.carry_out(second)).state is RefundState.BY_HAND

    paid = await app.refund_store.settle_by_hand(second, "transfer 4711")
    again = await app.refund_store.settle_by_hand(second, "transfer 4712")

    assert (paid.state, again.settled_note) == (RefundState.DONE, "transfer 4711")
    assert await account(app, booking.show_id, "by_hand") == -1500
    assert await account(app, booking.show_id, "owed") == 0
    assert await violations(app, booking.show_id) == []


async def test_a_job_carries_out_the_refund_of_a_dead_process_once(app: App, a_show: Show) -> None:
    booking = await bought(app, await a_show(seats=4), 1)
    await app.refund_store.decide_many([a_refund(booking)])
    jobs = refund_jobs(app)

    early = [refund for refund in await app.refund_store.take_due(100) if refund.show_id == booking.show_id]
    await due_now(app, booking.show_id)
    await jobs.carry_out()
    await jobs.wait_until_idle()

    (refund,) = await refunds_of(app, booking)
    assert early == []  # the process that decided it works on it first
    assert refund.state is RefundState.DONE
    await app.bookings.mark_map_stale(booking.show_id)
    await app.seatmap.rebuild(booking.show_id, "test")
    assert await violations(app, booking.show_id) == []


async def test_fee_and_tax_go_back_by_their_parts_and_never_more_than_there_was(
    app: App, a_show: Show
) -> None:
    show_id = await a_show(seats=4, price_minor=1001, sold_on=TERMS)
    booking = await bought(app, show_id, 1, 2)
    paid = [-await account(app, show_id, name) for name in ("organiser", "fee", "tax")]

    for amount in (333, 1, 777, 2, 889):
        await app.refunds.decide(a_refund(booking, what=RefundScope.MONEY, amount_minor=amount))
        left = [-await account(app, show_id, name) for name in ("organiser", "fee", "tax")]
        assert all(0 <= now <= before for now, before in zip(left, paid, strict=True))

    assert sum(left) == 0
    assert await violations(app, show_id) == []


async def use(app: App, show_id: int, number: int, seat: int) -> None:
    await app.postgres.execute(
        "UPDATE ticket SET used_at = now() WHERE show_id = $1 AND number = $2 AND seat = $3",
        show_id,
        number,
        seat,
    )


async def due_now(app: App, show_id: int) -> None:
    """The lease of the previous process has ended."""
    await app.postgres.execute(
        "UPDATE refund SET due_at = now() WHERE show_id = $1 AND state = 'requested'", show_id
    )


async def test_a_refund_that_is_taken_again_and_again_waits_longer_each_time(app: App, a_show: Show) -> None:
    booking = await bought(app, await a_show(seats=4), 1)
    await app.refund_store.decide_many([a_refund(booking)])

    tries = []
    for _ in range(3):
        await due_now(app, booking.show_id)
        tries += [one.tries for one in await app.refund_store.take_due(100) if one.show_id == booking.show_id]

    (refund,) = await refunds_of(app, booking)
    assert tries == [1, 2, 3]
    assert [pause_ms(msgspec.structs.replace(refund, tries=n)) for n in (0, 1, 5, 99)] == [
        1000,
        2000,
        300_000,
        300_000,
    ]
    await app.refunds.carry_out(refund)
