"""A sandbox killed with -9 loses nothing that it answered (R20)."""

import asyncio
import os
import sqlite3
import stat
import time
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.payments.gateway import GatewayAnswer
from holdfast.sandbox import load_or_create_secret
from holdfast.sandbox.database import copy_as_of
from tests.support.sandbox_server import (
    QUICK,
    Desk,
    Ended,
    Process,
    Shop,
    a_desk,
    a_process,
    a_shop,
    an_order,
)
from tests.support.wait import until


async def answered(desk: Desk, keys: list[str], done: dict[str, tuple[int, object]]) -> None:
    for key in keys:
        status, page = await desk.charge(key=key)
        if status == 0:
            return  # it was killed before this request got an answer
        done[key] = status, page


async def test_every_answer_is_still_there_and_so_is_its_key(tmp_path: Path) -> None:
    async with a_process(tmp_path) as process, a_desk(process.url) as desk:
        done: dict[str, tuple[int, object]] = {}
        crowd = [
            asyncio.create_task(answered(desk, [f"{n}-{m}" for m in range(1000)], done)) for n in range(8)
        ]

        async def under_way() -> bool:
            return len(done) > 100

        await until(under_way)
        await process.kill()
        await asyncio.gather(*crowd)
        await process.start()

        before = dict(done)
        for key, answer in list(before.items())[-60:]:
            assert await desk.charge(key=key) == answer
        _, page = await desk.ask("GET", "/v1/control")
        [total] = page["totals"]
        assert total["count"] >= len(before)
        for key in before:
            found = await desk.gateway.look_up(key=key, reference=None)
            assert found.answer is GatewayAnswer.YES


async def test_payments_in_progress_finish_after_a_restart(tmp_path: Path) -> None:
    async with a_process(tmp_path) as process, a_desk(process.url) as desk:
        await desk.control(**{**QUICK, "slow_s": 1.0, "late_s": 1.5})
        slow, late = an_order("tok_slow"), an_order("tok_late")
        charging = asyncio.create_task(desk.gateway.charge(slow))

        async def is_begun() -> bool:
            return (await desk.gateway.look_up(key=slow.key, reference=None)).reference is not None

        await until(is_begun)
        pending = await desk.gateway.charge(late)
        await process.kill()
        assert (await charging).answer is GatewayAnswer.UNKNOWN
        await process.start()

        again = await desk.gateway.charge(slow)
        assert again.answer in (GatewayAnswer.UNKNOWN, GatewayAnswer.YES)
        assert again.reference is not None
        assert pending.reference is not None
        await desk.becomes(again.reference, "captured")
        await desk.becomes(pending.reference, "captured")
        assert len((await desk.ask("GET", "/v1/payments"))[1]["payments"]) == 2


async def notice_of_every_payment(shop: Shop, keys: list[str]) -> None:
    async def all_delivered() -> bool:
        return {notice.key for notice in shop.taken} == set(keys)

    await until(all_delivered, within_s=10)


async def test_notices_that_were_not_taken_are_sent_by_the_next_life(tmp_path: Path) -> None:
    async with a_shop() as shop, a_process(tmp_path, shop.url) as process, a_desk(process.url) as desk:
        await shop.close()
        orders = [an_order() for _ in range(10)]
        charges = await asyncio.gather(*(desk.gateway.charge(order) for order in orders))
        assert {charge.answer for charge in charges} == {GatewayAnswer.YES}
        await process.kill()
        await shop.open()

        await process.start()

        await notice_of_every_payment(shop, [order.key for order in orders])


async def test_a_storm_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with a_process(tmp_path) as process, a_desk(process.url) as desk:
        await desk.control(decline=1.0)
        await process.kill()
        await process.start()

        assert (await desk.gateway.charge(an_order())).answer is GatewayAnswer.NO


async def test_it_stops_on_request_and_two_cannot_share_a_folder(tmp_path: Path) -> None:
    async with a_process(tmp_path) as process:
        with pytest.raises(Ended) as second:
            await Process(tmp_path).start()

        assert second.value.code == 2
        assert await process.end() == 0


async def test_a_copy_of_the_books_has_nothing_that_was_begun_later(tmp_path: Path) -> None:
    """A ledger of that instant does not contain it: its key must be free, and no webhook may name it."""
    async with a_process(tmp_path) as process, a_desk(process.url) as desk:
        early, late = an_order(), an_order()
        await desk.gateway.charge(early)
        instant = time.time()
        await desk.gateway.charge(late)
        copy = tmp_path / "copy.db"
        copy.write_bytes(copy_as_of(tmp_path / "sandbox.db", instant))

    with closing(sqlite3.connect(copy)) as books:
        payments = books.execute("SELECT id, reference FROM payment").fetchall()
        answers = books.execute("SELECT made FROM answer").fetchall()
        notified = books.execute("SELECT DISTINCT payment_id FROM webhook").fetchall()
    assert [reference for _, reference in payments] == [early.key]
    assert answers == [(payments[0][0],)]
    assert notified in ([], answers)


def test_the_secret_is_drawn_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    first, again, other = (
        load_or_create_secret(tmp_path / "a"),
        load_or_create_secret(tmp_path / "a"),
        load_or_create_secret(tmp_path / "b"),
    )

    assert first == again != other
    assert len(first) > 40
    assert stat.S_IMODE(os.stat(tmp_path / "a" / "secret").st_mode) == 0o600
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["secret"]
