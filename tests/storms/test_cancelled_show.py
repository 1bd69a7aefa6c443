"""A sold-out show is cancelled: every buyer is refunded once, even when workers die."""

import asyncio
import json
import time
from collections.abc import Iterator

import httpx2

from holdfast.engines.postgres import require_row
from tests.support.box_office import Office, started
from tests.support.shows import API, Fan, a_layout
from tests.support.wait import until

BOOKINGS, BOOKINGS_FULL = 150, 5_000
AT_ONCE = 64
ROW = 100


async def test_every_buyer_is_refunded_once_whichever_process_dies(stage: Office, is_full: bool) -> None:
    bookings = BOOKINGS_FULL if is_full else BOOKINGS
    show = await stage.a_show(layout=a_layout(bookings, row=ROW), owner_seats_max=1000)
    fans = await stage.fans(AT_ONCE)
    labels = iter((await stage.app.catalogue.show_on_sale(show)).layout.labels)
    await asyncio.gather(*(buys(stage, fan, show, labels) for fan in fans))

    began = time.monotonic()
    first = await cancels(stage, show)
    await until(lambda: refunded(stage, show, at_least=bookings // 3), within_s=120)
    first.kill()
    killed = stage.kill("work-1")
    await first.wait()
    await stage.back("work-1", after=killed)
    second = await cancels(stage, show)
    output, _ = await asyncio.wait_for(second.communicate(), 300)

    assert second.returncode == 0, output
    summary = json.loads(output)
    assert (second.returncode, summary["bookings"], summary["refunded"]) == (0, bookings, bookings), summary
    await stage.settled()
    counts = require_row(
        await stage.app.postgres.fetchrow(
            "SELECT count(*) AS refunds, count(DISTINCT number) AS bookings FROM refund"
            " WHERE show_id = $1 AND state = 'done' AND why = 'show'",
            show,
        )
    )
    assert tuple(counts) == (bookings, bookings)
    print(
        f"\n{bookings} bookings refunded in {time.monotonic() - began:.1f} s, two processes killed meanwhile"
    )


async def buys(stage: Office, fan: Fan, show: int, labels: Iterator[str]) -> None:
    async with httpx2.AsyncClient(base_url=stage.url, headers=fan.headers, timeout=30) as client:
        for label in labels:
            held = await client.post(f"{API}/shows/{show}/holds", json={"seats": [label]})
            assert held.status_code == 201, held.text
            booking = held.json()["booking_id"]
            paid = await client.post(f"{API}/bookings/{booking}/pay", json={"method": "tok_ok"})
            assert paid.status_code == 200, paid.text


async def cancels(stage: Office, show: int) -> asyncio.subprocess.Process:
    words = ("show", "cancel", str(show), "--yes", "--json", "--data", str(stage.folder.path))
    return await started("-m", "holdfast", *words, stdout=asyncio.subprocess.PIPE)


async def refunded(stage: Office, show: int, at_least: int) -> bool:
    done = "SELECT count(*) FROM refund WHERE show_id = $1 AND state = 'done'"
    return bool(await stage.app.postgres.fetchval(done, show) >= at_least)
