"""The sandbox's notices: signed, sent until they are taken, and misbehaving where that was ordered (R22)."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.payments.gateway import GatewayAnswer
from holdfast.sandbox.api import render_native
from holdfast.sandbox.behaviour import SandboxSettings
from holdfast.sandbox.database import SandboxDatabase
from holdfast.sandbox.gateway import ApiCall, GatewayCore
from holdfast.sandbox.payment import NewCharge
from holdfast.sandbox.webhooks import WebhookSender
from tests.support.sandbox_server import QUICK, SECRET, Desk, Shop, a_sandbox, a_shop, an_order
from tests.support.wait import until


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    async with a_shop() as opened:
        yield opened


@pytest.fixture
async def desk(tmp_path: Path, shop: Shop) -> AsyncIterator[Desk]:
    async with a_sandbox(tmp_path, shop.url) as opened:
        yield opened


async def waiting(desk: Desk) -> int:
    _, page = await desk.ask("GET", "/v1/control")
    return int(page["webhooks"]["waiting"])


async def nothing_waits(desk: Desk) -> None:
    async def is_so() -> bool:
        return await waiting(desk) == 0

    await until(is_so)


async def test_the_result_of_a_payment_is_sent_once(desk: Desk, shop: Shop) -> None:
    order, refused, given_up = an_order(), an_order("tok_declined"), an_order("")
    charge = await desk.gateway.charge(order)
    await desk.gateway.charge(refused)
    await desk.gateway.charge(given_up)
    await desk.gateway.call_off(key=given_up.key, reference=None)
    assert charge.reference is not None
    await desk.gateway.refund(key="r-1", reference=charge.reference, amount_minor=500, currency="EUR")

    await shop.hears(order.key, "payment.captured", "refund.succeeded")
    await shop.hears(refused.key, "payment.declined")
    await shop.hears(given_up.key, "payment.cancelled")
    await nothing_waits(desk)
    assert {(notice.amount_minor, notice.currency) for notice in shop.taken} == {(4500, "EUR")}
    assert len({notice.event_id for notice in shop.taken}) == 4


async def test_twice_is_twice_the_same_notice(desk: Desk, shop: Shop) -> None:
    order = an_order("tok_twice")
    await desk.gateway.charge(order)

    await shop.hears(order.key, "payment.captured", "payment.captured")
    await nothing_waits(desk)
    assert len({notice.event_id for notice in shop.taken}) == 1


async def test_a_refused_refund_is_sent(desk: Desk, shop: Shop) -> None:
    order = an_order("tok_refund_refused")
    charge = await desk.gateway.charge(order)
    assert charge.reference is not None
    await desk.gateway.refund(key="r-1", reference=charge.reference, amount_minor=500, currency="EUR")

    await shop.hears(order.key, "payment.captured", "refund.failed")


async def test_the_notice_comes_before_the_reply(desk: Desk, shop: Shop) -> None:
    order = an_order("tok_webhook_first")

    charge = await desk.gateway.charge(order)

    assert charge.answer is GatewayAnswer.YES
    assert shop.about(order.key) == ["payment.captured"]


async def test_the_late_webhook_comes_after_the_late_money(desk: Desk, shop: Shop) -> None:
    late, late_webhook = an_order("tok_late"), an_order("tok_late_webhook")
    began = time.time()
    await desk.gateway.charge(late)
    await desk.gateway.charge(late_webhook)

    await shop.hears(late.key, "payment.captured")
    await shop.hears(late_webhook.key, "payment.captured")
    assert min(shop.at.values()) > began + QUICK["late_s"]


async def test_an_older_notice_after_a_newer_one(desk: Desk, shop: Shop) -> None:
    order = an_order("tok_out_of_order")
    await desk.gateway.charge(order)

    await shop.hears(order.key, "payment.captured", "payment.processing")


async def test_a_webhook_that_is_never_sent_is_still_listed(desk: Desk, shop: Shop) -> None:
    silent, pending, order = an_order("tok_no_webhook"), an_order("tok_never"), an_order()
    for one in (silent, pending, order):
        await desk.gateway.charge(one)

    await shop.hears(order.key, "payment.captured")
    await nothing_waits(desk)
    assert len(shop.taken) == 1
    _, page = await desk.ask("GET", "/v1/webhooks?limit=1")
    _, rest = await desk.ask("GET", f"/v1/webhooks?after={page['next']}")
    kinds = [(one["body"]["kind"], one["is_waiting"]) for one in page["webhooks"] + rest["webhooks"]]
    assert kinds == [("payment.captured", False)] * 2


async def test_a_notice_that_is_refused_is_sent_again_and_then_given_up(desk: Desk, shop: Shop) -> None:
    patient, unlucky = an_order(), an_order()
    shop.answers = [500, 503, 429]
    await desk.gateway.charge(patient)
    await shop.hears(patient.key, "payment.captured")

    shop.answers = [500] * 4  # one more than it is tried again
    await desk.gateway.charge(unlucky)
    await nothing_waits(desk)

    assert shop.about(unlucky.key) == []
    _, page = await desk.ask("GET", "/v1/control")
    assert page["webhooks"]["given_up"] == 1


async def test_while_the_shop_is_down_no_webhook_is_lost_and_no_request_waits(desk: Desk, shop: Shop) -> None:
    await shop.close()
    orders = [an_order() for _ in range(50)]

    charges = [await desk.gateway.charge(order) for order in orders]
    assert {charge.answer for charge in charges} == {GatewayAnswer.YES}
    assert await waiting(desk) == 50

    await shop.open()
    for order in orders:
        await shop.hears(order.key, "payment.captured")
    await nothing_waits(desk)


async def test_more_than_fits_in_memory_waits_in_the_books(tmp_path: Path, shop: Shop) -> None:
    books = SandboxDatabase(tmp_path, account="acct_sandbox", sends=True)
    till = GatewayCore(books)
    post = WebhookSender(books, till, shop.url, [SECRET], ready_max=16)
    books.on_new_webhooks = post.enqueue_new
    await till.set(SandboxSettings(late_s=0.1))
    async with post.open():
        # Found in the books when its time came: by then the post has nothing left to look for.
        await till.create(a_payment("late", "tok_late_webhook"), A_CALL)
        await shop.hears("late", "payment.captured")
        await shop.close()
        keys = [f"many-{number}" for number in range(200)]
        await asyncio.gather(*(till.create(a_payment(key), A_CALL) for key in keys))
        await shop.open()

        for key in keys:
            await shop.hears(key, "payment.captured")
        await until(lambda: asyncio.sleep(0, post.waiting == 0))
    assert len(shop.taken) == 201
    await books.close()


A_CALL = ApiCall(None, b"", lambda made: render_native(made, ""))


def a_payment(key: str, method: str = "tok_ok") -> NewCharge:
    return NewCharge(amount_minor=4500, currency="EUR", reference=key, description="", method=method)
