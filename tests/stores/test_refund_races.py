"""Two things at once about the same money: one outcome, and the money follows it (R24, R33).

30 times each; 200 times with --full, an option of tests/storms: name that folder, too, to have it.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest

from holdfast.app import App
from holdfast.bookings import Booking, BookingState, HoldGone, WrongMove
from holdfast.config import Config
from holdfast.engines.loop import Job
from holdfast.errors import Refusal
from holdfast.payments.jobs import PaymentJobs
from holdfast.payments.saga import PaymentStep
from holdfast.refunds.refund import RefundScope, RefundState
from tests.support.opened import open_app
from tests.support.own_engines import hold
from tests.support.paid_bookings import (
    a_refund,
    bought,
    now_of,
    payment_request,
    refund_jobs,
    refunds_of,
    violations,
)
from tests.support.show_fixture import an_owner
from tests.support.wait import until

Show = Callable[..., Awaitable[int]]
AT_ONCE = 10
STAGGER_S = 0.03  # longer than any of them takes: each may be the first


@pytest.fixture(scope="module")
def rounds(pytestconfig: pytest.Config) -> int:
    return 200 if pytestconfig.getoption("--full", default=False) else 30


@pytest.fixture(scope="module")
async def other(config: Config) -> AsyncIterator[App]:
    """Another process of the same box office: connections and batches of its own."""
    async with open_app(config) as opened:
        yield opened


async def at_about_the_same_time(*acts: Awaitable[object]) -> list[object]:
    async def act(one: Awaitable[object]) -> object:
        await asyncio.sleep(random.uniform(0, STAGGER_S))
        return await one

    return await asyncio.gather(*(act(one) for one in acts), return_exceptions=True)


async def repeated(rounds: int, race: Callable[[int], Awaitable[str]]) -> Counter[str]:
    """How often each outcome was seen; several races run beside each other."""
    outcomes: Counter[str] = Counter()
    for start in range(0, rounds, AT_ONCE):
        outcomes.update(await asyncio.gather(*(race(n) for n in range(start, min(start + AT_ONCE, rounds)))))
    return outcomes


async def settled(app: App, show_id: int) -> None:
    """Whatever is under way in this show is carried on until nothing is."""
    payments, refunds = PaymentJobs(app.payments, app.saga_runner), refund_jobs(app)
    jobs: Sequence[Job] = (payments.carry_on, refunds.carry_out)

    async def nothing_is_under_way() -> bool:
        for job in jobs:
            await job()
        await app.bookings.sweep(500)
        return not await app.postgres.fetchval(
            "SELECT (SELECT count(*) FROM payment WHERE show_id = $1 AND due_at IS NOT NULL)"
            " + (SELECT count(*) FROM refund WHERE show_id = $1 AND state = 'requested')",
            show_id,
        )

    await until(nothing_is_under_way, within_s=60)
    await app.bookings.mark_map_stale(show_id)  # updates may reach the map in another order
    await app.seatmap.rebuild(show_id, "test")


async def retained_minor(app: App, booking: Booking) -> int:
    """The amount paid for a booking and not refunded."""
    return int(
        await app.postgres.fetchval(
            "SELECT coalesce(sum(amount_minor - refunds_minor), 0) FROM payment"
            " WHERE show_id = $1 AND number = $2 AND step IN ('paid', 'late', 'returned')",
            booking.show_id,
            booking.number,
        )
    )


async def test_of_refunds_at_once_one_is_made(app: App, other: App, a_show: Show, rounds: int) -> None:
    show_id = await a_show(seats=rounds)

    async def race(n: int) -> str:
        booking = await bought(app, show_id, n)
        decisions = await at_about_the_same_time(
            *(one.refunds.decide(a_refund(booking)) for one in (app, other, app, other))
        )
        return ", ".join(sorted(decision.outcome for decision in decisions))  # type: ignore[attr-defined]

    assert set(await repeated(rounds, race)) == {"decided, refunded, refunded, refunded"}
    assert await violations(app, show_id) == []


async def test_of_refunds_of_the_same_reason_one_is_made(
    app: App, other: App, a_show: Show, rounds: int
) -> None:
    show_id = await a_show(seats=rounds)

    async def race(n: int) -> str:
        ask = a_refund(await bought(app, show_id, n), what=RefundScope.MONEY, amount_minor=100)
        decisions = await at_about_the_same_time(
            *(one.refunds.decide(ask) for one in (app, other, app, other))
        )
        return ", ".join(sorted(decision.outcome for decision in decisions))  # type: ignore[attr-defined]

    assert set(await repeated(rounds, race)) == {"decided, same, same, same"}
    assert await violations(app, show_id) == []


async def test_an_owner_who_cancels_while_the_organiser_refunds_gets_it_once(
    app: App, other: App, a_show: Show, rounds: int
) -> None:
    show_id = await a_show(seats=rounds)

    async def race(n: int) -> str:
        booking = await bought(app, show_id, n)
        await at_about_the_same_time(
            app.refunds.cancel(booking, None),
            other.refunds.decide(a_refund(booking)),
            other.refunds.cancel(booking, None),
        )
        (refund,) = await refunds_of(app, booking)
        assert (refund.amount_minor, refund.state) == (1500, RefundState.DONE)
        return refund.rule

    assert set(await repeated(rounds, race)) <= {"owner", "admin"}
    assert await violations(app, show_id) == []


async def test_a_ticket_is_used_or_given_back_and_never_both(
    app: App, other: App, a_show: Show, rounds: int
) -> None:
    show_id = await a_show(seats=rounds)

    async def let_in(booking: Booking) -> bool:
        """As the door does it: the row of the ticket, locked."""
        async with other.postgres.transaction() as tx:
            key = (booking.show_id, booking.number)
            voided_at = await tx.fetchval(
                "SELECT voided_at FROM ticket WHERE show_id = $1 AND number = $2 FOR UPDATE", *key
            )
            if voided_at is None:
                await tx.execute("UPDATE ticket SET used_at = now() WHERE show_id = $1 AND number = $2", *key)
            return voided_at is None

    async def race(n: int) -> str:
        booking = await bought(app, show_id, n)
        _, was_let_in = await at_about_the_same_time(app.refunds.decide(a_refund(booking)), let_in(booking))
        is_refunded = (await now_of(app, booking)).state is BookingState.REFUNDED
        assert was_let_in is not is_refunded
        assert len(await refunds_of(app, booking)) == is_refunded
        return "refunded" if is_refunded else "used"

    outcomes = await repeated(rounds, race)
    assert set(outcomes) <= {"refunded", "used"}
    assert await violations(app, show_id) == []


@pytest.mark.parametrize("method", ["tok_ok", "tok_slow", "tok_late_open"])
async def test_paying_and_cancelling_at_once_leaves_seats_or_money(
    app: App, other: App, a_show: Show, rounds: int, method: str
) -> None:
    show_id = await a_show(seats=rounds)
    bookings = []

    async def race(n: int) -> str:
        booking = await hold(app, show_id, an_owner(), n)
        bookings.append(booking)
        _, cancelled = await at_about_the_same_time(
            app.saga_runner.pay(payment_request(booking, method)), cancel(other, booking)
        )
        return str(cancelled)

    outcomes = await repeated(rounds, race)
    await settled(app, show_id)

    assert set(outcomes) <= {"cancelled", "refunded", "paying", "too late", "gone"}
    for booking in bookings:
        state = (await now_of(app, booking)).state
        assert (state is BookingState.CONFIRMED) == (await retained_minor(app, booking) == 1500), state
        assert state in (
            BookingState.CONFIRMED,
            BookingState.REFUNDED,
            BookingState.CANCELLED,
            BookingState.HELD,
            BookingState.EXPIRED,
        )
    assert await violations(app, show_id) == []


async def cancel(app: App, booking: Booking) -> str:
    """The answer that the owner got."""
    try:
        after, _ = await app.refunds.cancel(
            await app.bookings.load_owned(booking.owner_id, booking.show_id, booking.number), None
        )
    except WrongMove:
        return "too late"
    except HoldGone:
        return "gone"
    return after.state


@pytest.mark.parametrize("method", ["tok_ok", "tok_late_open"])
async def test_a_payment_that_meets_the_end_of_its_time_has_the_seats_or_the_money_back(
    app: App, other: App, a_show: Show, rounds: int, method: str
) -> None:
    """The hold lapses while its owner starts to pay; or the deadline passes during the gateway request."""
    show_id = await a_show(seats=rounds)
    bookings = []

    async def time_is_up(booking: Booking) -> None:
        key = (booking.show_id, booking.number)
        await other.postgres.execute(
            "UPDATE booking SET expires_at = now() WHERE show_id = $1 AND number = $2"
            " AND state IN ('held', 'paying')",
            *key,
        )
        await other.postgres.execute(
            "UPDATE payment SET deadline_at = now() WHERE show_id = $1 AND number = $2", *key
        )
        await other.bookings.sweep(500)
        await PaymentJobs(other.payments, other.saga_runner).carry_on()

    async def race(n: int) -> str:
        booking = await hold(app, show_id, an_owner(), n)
        bookings.append(booking)
        await at_about_the_same_time(
            app.saga_runner.pay(payment_request(booking, method)), time_is_up(booking)
        )
        return (await now_of(app, booking)).state

    await repeated(rounds, race)
    await settled(app, show_id)

    for booking in bookings:
        state = (await now_of(app, booking)).state
        assert (state is BookingState.CONFIRMED) == (await retained_minor(app, booking) == 1500), state
        assert state in (BookingState.CONFIRMED, BookingState.EXPIRED, BookingState.FAILED, BookingState.HELD)
    assert await violations(app, show_id) == []


@pytest.mark.parametrize("method", ["tok_ok", "tok_slow", "tok_declined"])
async def test_two_tabs_that_pay_are_one_payment(
    app: App, other: App, a_show: Show, rounds: int, method: str
) -> None:
    show_id = await a_show(seats=rounds)

    async def race(n: int) -> str:
        booking = await hold(app, show_id, an_owner(), n)
        tabs = await at_about_the_same_time(
            app.saga_runner.pay(payment_request(booking, method)),
            other.saga_runner.pay(payment_request(booking, "tok_ok")),
        )
        assert not [tab for tab in tabs if isinstance(tab, Exception) and not isinstance(tab, Refusal)]
        steps = await app.postgres.fetch(
            "SELECT step::text AS step FROM payment WHERE show_id = $1 AND number = $2",
            show_id,
            booking.number,
        )
        return str([row["step"] for row in steps].count(PaymentStep.PAID))

    outcomes = await repeated(rounds, race)
    await settled(app, show_id)

    assert set(outcomes) <= {"0", "1"}
    assert await violations(app, show_id) == []
