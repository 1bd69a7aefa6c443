"""Payments under way cost the gateway little: webhooks come first, polls back off and share a budget."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import msgspec
import pytest

from holdfast.app import App
from holdfast.payments.gateway import Charge, GatewayAnswer
from holdfast.payments.jobs import ReconciliationJobs
from holdfast.payments.payment import Payment
from holdfast.payments.saga import DeadlineStatus, PaymentStep
from holdfast.payments.saga_runner import pause_ms
from tests.support.gateway_webhooks import charged
from tests.support.ledger_payments import paying, step_of, waiting

Show = Callable[..., Awaitable[int]]
PAGE = Charge(answer=GatewayAnswer.UNKNOWN, reference="pay_1", action_url="https://pay.example/1")
SILENT = Charge(answer=GatewayAnswer.UNKNOWN)
DUE = "UPDATE payment SET due_at = now() - interval '1 s' WHERE show_id = $1"
EMPTY = "UPDATE gateway_budget SET full_at = now() + interval '1 hour' WHERE gateway = 'sandbox'"
FULL = "DELETE FROM gateway_budget WHERE gateway = 'sandbox'"


@asynccontextmanager
async def an_empty_budget(app: App) -> AsyncIterator[None]:
    await app.payments.take_looks(1)
    await app.postgres.execute(EMPTY)
    try:
        yield
    finally:
        await app.postgres.execute(FULL)


async def taken_of(app: App, show_id: int) -> list[Payment]:
    return [payment for payment in await app.payments.take_due(1000) if payment.show_id == show_id]


def pauses_s(payment: Payment, charge: Charge, life_s: int) -> list[float]:
    """The pauses between the look-ups of a payment, until its deadline."""
    found: list[float] = []
    left_ms = life_s * 1000
    while left_ms > 0:
        now = msgspec.structs.replace(payment, tries=len(found), left_ms=left_ms)
        pause = pause_ms(PaymentStep.LOOK_UP, now, charge, DeadlineStatus.LEFT)
        found.append(pause / 1000)
        left_ms -= pause
    return found


async def test_a_payment_that_waits_for_its_payer_is_looked_up_eight_times(app: App, a_show: Show) -> None:
    payment = await paying(app, await a_show(), 1)

    pauses = pauses_s(payment, PAGE, 720)

    assert pauses[:5] == [15, 30, 60, 120, 240]
    assert sum(pauses[:-1]) == 715  # once shortly before the deadline, then the deadline itself
    assert len(pauses) == 8


async def test_a_charge_without_an_answer_is_looked_up_soon(app: App, a_show: Show) -> None:
    payment = await paying(app, await a_show(), 1)

    pauses = pauses_s(payment, SILENT, 720)

    assert pauses[:3] == [0.5, 1, 2]
    assert len(pauses) < 16


async def test_polls_stop_at_the_budget_and_deadlines_do_not(app: App, a_show: Show) -> None:
    show_id = await a_show()
    for seat in range(1, 4):
        await waiting(app, show_id, seat)
    late = await waiting(app, show_id, 4)
    await app.postgres.execute(DUE, show_id)
    await app.postgres.execute(
        "UPDATE payment SET deadline_at = now() - interval '1 s' WHERE show_id = $1 AND number = $2",
        show_id,
        late.number,
    )

    async with an_empty_budget(app):
        during = await taken_of(app, show_id)
    after = await taken_of(app, show_id)

    assert [payment.number for payment in during] == [late.number]
    assert len(after) == 3


async def test_the_budget_gives_a_second_of_look_ups_at_once_and_no_more(app: App) -> None:
    await app.postgres.execute(FULL)
    async with app.postgres.transaction() as tx:  # its time stands still
        sql = "SELECT take_gateway_looks('sandbox', $1, 10)"
        granted = [await tx.fetchval(sql, wanted) for wanted in (4, 4, 4, 4)]
    await app.postgres.execute(FULL)

    assert granted == [4, 4, 2, 0]


async def test_processes_share_the_budget(app: App) -> None:
    await app.postgres.execute(FULL)
    sql = "SELECT take_gateway_looks('sandbox', 1, 1)"  # one per second

    granted = await asyncio.gather(*(app.postgres.fetchval(sql) for _ in range(8)))
    spent = await app.postgres.fetchval(
        "SELECT full_at - now() FROM gateway_budget WHERE gateway = 'sandbox'"
    )
    await app.postgres.execute(FULL)

    assert 1 <= sum(granted) < 8
    assert spent <= timedelta(seconds=1)


@pytest.mark.parametrize("why", ["the budget is used up", "the payer has just looked"])
async def test_a_payer_who_looks_again_costs_no_more_than_the_budget(
    app: App, a_show: Show, why: str
) -> None:
    payment = await waiting(app, await a_show(), 1)
    await charged(app, payment)
    if "budget" in why:
        async with an_empty_budget(app):
            during = await app.saga_runner.refresh_for_payer(payment)
    else:
        await app.postgres.execute(
            "UPDATE payment SET looked_at = now() + interval '1 hour' WHERE show_id = $1", payment.show_id
        )
        during = await app.saga_runner.refresh_for_payer(payment)
    before = await step_of(app, payment)
    await app.postgres.execute("UPDATE payment SET looked_at = NULL WHERE show_id = $1", payment.show_id)

    after = await app.saga_runner.refresh_for_payer(payment)

    assert during.step is before is PaymentStep.LOOK_UP
    assert after.step is PaymentStep.PAID


class TestReconciliation:
    async def test_it_reads_only_what_is_new_and_once_an_hour_what_was_under_way(self, app: App) -> None:
        books, zero = app.reconciliation, timedelta(0)
        await app.postgres.execute("DELETE FROM reconciliation_run")
        await ReconciliationJobs(books, app.config).compare()
        began = await app.postgres.fetchval("SELECT began_at FROM reconciliation_run")

        new = await books.since(zero)
        await app.postgres.execute("UPDATE reconciliation_run SET deep_at = deep_at - interval '61 min'")
        deep = await books.since(zero)

        assert new is not None
        assert deep is not None
        assert began - new.at == timedelta(minutes=2)
        assert began - deep.at >= timedelta(hours=2)
        assert (new.is_deep, deep.is_deep) == (False, True)

    async def test_a_process_that_dies_while_it_compares_does_not_stop_the_others(self, app: App) -> None:
        lock = app.reconciliation.lock()
        assert await lock.__aenter__() is True  # and never ends it
        async with app.reconciliation.lock() as second:
            assert second is False
        await app.postgres.execute("UPDATE job_turn SET due_at = now() WHERE name = 'reconcile sandbox'")

        async with app.reconciliation.lock() as third:
            assert third is True

    async def test_no_connection_is_held_while_the_gateway_is_read(self, app: App) -> None:
        """An advisory lock of a session would go back to the pool with its connection."""
        async with app.reconciliation.lock() as is_ours:
            held = await app.postgres.fetchval("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")

        assert (is_ours, held) == (True, 0)
