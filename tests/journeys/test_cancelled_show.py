"""A cancelled show refunds every buyer in full and once, whichever process dies (R24, R33)."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.bookings import Booking, BookingState
from holdfast.config import Config
from holdfast.payments.jobs import PaymentJobs
from holdfast.pricing import RefundPolicy, Terms
from holdfast.refunds.refund import RefundScope, RefundState
from holdfast.web.caller import Role
from tests.support.cli_process import run_holdfast
from tests.support.opened import engines_of
from tests.support.organiser import Organiser, sign_in_organiser
from tests.support.own_engines import hold, shown
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
from tests.support.shows import problem
from tests.support.wait import until

Show = Callable[..., Awaitable[int]]
NOTHING = Terms(fee_minor=100, refund_policy=RefundPolicy(steps=(), keep_fee=True))
POINTS = [
    "refund.decide:during",
    "refund.decide:after",
    "gateway.refund:during",
    "gateway.refund:after",
    "refund.settle:during",
]


@pytest.fixture
async def admin(app: App, api: httpx2.AsyncClient) -> Organiser:
    return await sign_in_organiser(app, api, Role.ADMIN)


async def cancelled(organiser: Organiser, show_id: int) -> None:
    answer = await organiser.send("PATCH", f"/shows/{show_id}", {"cancelled": True})
    assert answer.status_code == 200, answer.text


async def carried_out(*boxes: App, show_id: int) -> None:
    """The jobs of as many workers, until nothing is left."""
    jobs = [
        job
        for app in boxes
        for job in (
            refund_jobs(app).refund_shows,
            refund_jobs(app).carry_out,
            PaymentJobs(app.payments, app.saga_runner).carry_on,
        )
    ]

    async def is_over() -> bool:
        await asyncio.gather(*(job() for job in jobs))
        return (await boxes[0].refund_store.cancellation(show_id)).is_over

    await until(is_over, within_s=30)


async def test_every_buyer_is_refunded_in_full_despite_the_policy(
    app: App, admin: Organiser, a_show: Show
) -> None:
    show_id = await a_show(seats=10, sold_on=NOTHING)
    plain = await bought(app, show_id, 0, 1)
    reduced = await bought(app, show_id, 2, 3)
    await app.refunds.decide(a_refund(reduced, what=RefundScope.SEATS, seats=(3,)))
    comforted = await bought(app, show_id, 4)
    await app.refunds.decide(a_refund(comforted, what=RefundScope.MONEY, amount_minor=500))
    inside = await bought(app, show_id, 5)
    await app.postgres.execute(
        "UPDATE ticket SET used_at = now() WHERE show_id = $1 AND number = $2", show_id, inside.number
    )
    held = await hold(app, show_id, an_owner(), 6)
    paying = await hold(app, show_id, an_owner(), 7)
    await app.saga_runner.pay(payment_request(paying, "tok_3ds"))

    await cancelled(admin, show_id)
    await cancelled(admin, show_id)
    begun = (await admin.send("GET", f"/shows/{show_id}/cancellation")).json()
    await carried_out(app, show_id=show_id)
    over = (await admin.send("GET", f"/shows/{show_id}/cancellation")).json()

    states = [(await now_of(app, one)).state for one in (plain, reduced, comforted, inside, held, paying)]
    assert states == [BookingState.REFUNDED] * 4 + [BookingState.CANCELLED] * 2
    amounts = [(await refunds_of(app, one))[-1].amount_minor for one in (plain, reduced, comforted, inside)]
    assert amounts == [3000, 1500, 1000, 1500]
    assert (begun["bookings"], begun["left"], begun["refunded"]) == (6, 6, 0)
    assert over == {"bookings": 4, "refunded": 4, "requested": 0, "by_hand": 0, "left": 0}
    facts = await app.postgres.fetch(
        "SELECT number FROM outbox WHERE show_id = $1 AND kind = 'show.cancelled'", show_id
    )
    assert [row["number"] for row in facts] == [None]
    assert await shown(app, show_id) == "A" * 10
    assert await violations(app, show_id) == []


async def test_many_workers_refund_each_booking_once(
    app: App, config: Config, admin: Organiser, a_show: Show
) -> None:
    show_id = await a_show(seats=40)
    bookings = [await bought(app, show_id, seat) for seat in range(40)]

    await cancelled(admin, show_id)
    await carried_out(app, app, app, show_id=show_id)

    for booking in bookings:
        (refund,) = await refunds_of(app, booking)
        assert (refund.why, refund.amount_minor, refund.state) == ("show", 1500, RefundState.DONE)
    assert await violations(app, show_id) == []


async def test_an_owner_that_cancels_before_the_job_is_refunded_in_full(
    app: App, admin: Organiser, a_show: Show
) -> None:
    show_id = await a_show(seats=4, sold_on=NOTHING)
    booking = await bought(app, show_id, 0)
    await cancelled(admin, show_id)

    async def is_known() -> bool:
        return (await app.catalogue.show_on_sale(show_id)).cancelled

    await until(is_known)
    after, _ = await app.refunds.cancel(booking, None)

    (refund,) = await refunds_of(app, booking)
    assert (after.state, refund.amount_minor) == (BookingState.REFUNDED, 1500)


async def test_a_show_that_takes_place_has_no_cancellation_report(admin: Organiser, a_show: Show) -> None:
    answer = await admin.send("GET", f"/shows/{await a_show()}/cancellation")

    assert (answer.status_code, problem(answer)["code"]) == (409, "wrong_move")


class TestAtTheTerminal:
    async def cancels(self, config: Config, show_id: int, **env: str) -> Any:
        return await run_holdfast(
            *("show", "cancel", str(show_id), "--yes", "--json"),
            **engines_of(config),
            HOLDFAST_GATEWAY_URL=config.gateway_url,
            HOLDFAST_GATEWAY_SECRET=config.gateway_secret,
            **env,
        )

    @pytest.mark.parametrize("point", POINTS)
    async def test_killed_anywhere_and_run_again_each_booking_is_refunded_once(
        self, app: App, config: Config, a_show: Show, tmp_path: Path, point: str
    ) -> None:
        show_id = await a_show(seats=6)
        bookings = [await bought(app, show_id, seat) for seat in range(6)]
        orders = tmp_path / "crash"
        orders.write_text(point)

        died = await self.cancels(config, show_id, HOLDFAST_CRASH_AT=str(orders))
        await self.turns_are_over(app, show_id)
        again = await self.cancels(config, show_id)

        assert (died.code, again.code) == (-9, 0), again
        assert again.page == {"bookings": 6, "refunded": 6, "requested": 0, "by_hand": 0, "left": 0}
        for booking in bookings:
            await self.is_refunded_once(app, booking)
        await app.bookings.mark_map_stale(show_id)  # a killed process may not have updated the map
        await app.seatmap.rebuild(show_id, "test")
        assert await violations(app, show_id) == []

    async def test_refunds_that_the_gateway_refuses_are_listed(
        self, app: App, config: Config, a_show: Show
    ) -> None:
        show_id = await a_show(seats=2)
        await bought(app, show_id, 0, method="tok_refund_refused")

        ended = await self.cancels(config, show_id)
        listed = await run_holdfast(
            *("refunds", "list", "--by-hand", "--json"),
            **engines_of(config),
            HOLDFAST_GATEWAY_URL=config.gateway_url,
            HOLDFAST_GATEWAY_SECRET=config.gateway_secret,
        )

        assert (ended.code, ended.page["by_hand"]) == (1, 1)
        (refund,) = [one for one in json.loads(listed.output) if one["show_id"] == show_id]
        assert (refund["state"], refund["amount_minor"]) == ("by_hand", 1500)
        assert refund["reason"]

    async def is_refunded_once(self, app: App, booking: Booking) -> None:
        (refund,) = await refunds_of(app, booking)
        assert (refund.why, refund.amount_minor, refund.state) == ("show", 1500, RefundState.DONE)

    async def turns_are_over(self, app: App, show_id: int) -> None:
        """The worker that had the refund is dead: its lease expires."""
        await app.postgres.execute(
            "UPDATE refund SET due_at = now() WHERE show_id = $1 AND state = 'requested'", show_id
        )
