"""Buyers get their tickets by mail once, while the mail server is slow, refuses and drops (R29)."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fakes.mail_server_process import DROPPING, FINE, REFUSING, SLOW, PostOffice, post_office
from tests.support.box_office import Office, office
from tests.support.retrying_payer import Payer
from tests.support.wait import until

PEOPLE, PEOPLE_FULL = 6, 100
ARRIVED_WITHIN_S = 600.0  # refused often enough, a mail waits for a minute, then for five
MAIL_FROM = "Box office <tickets@hall.example>"


@dataclass(frozen=True)
class Scene:
    stage: Office
    mail: PostOffice


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with post_office(tmp_path) as mail:
        async with office(web=1, mail_url=mail.url, mail_from=MAIL_FROM) as stage:
            yield Scene(stage, mail)


async def buys(stage: Office, show: int, how_many: int) -> set[str]:
    """The addresses of buyers with one ticket each."""
    people = [Payer(fan) for fan in await stage.fans(how_many)]

    async def buy(payer: Payer) -> str:
        held = await payer.asks(lambda: payer.fan.holds(show, best={"count": 1}, key="mine"))
        paid = await payer.pays(held.json()["booking_id"])
        assert paid.json()["state"] == "confirmed", paid.text
        return str((await payer.fan.get("/me")).json()["email"])

    return set(await asyncio.gather(*map(buy, people)))


async def test_a_mail_server_in_every_mood_gets_each_mail_once(scene: Scene, is_full: bool) -> None:
    stage, mail, how_many = scene.stage, scene.mail, PEOPLE_FULL if is_full else PEOPLE
    show = await stage.a_show(seats=4 * how_many)
    buyers: set[str] = set()

    for mood in (FINE, SLOW, REFUSING, DROPPING):
        await mail.is_now(mood)
        buyers |= await buys(stage, show, how_many)
    await mail.is_now(FINE)

    async def all_sent() -> bool:
        query = "SELECT count(*) FROM notice WHERE kind = 'tickets' AND state = 'sent'"
        return int(await stage.app.postgres.fetchval(query)) >= 4 * how_many

    await until(all_sent, within_s=ARRIVED_WITHIN_S)
    got = Counter(page["to"] for page in mail.taken())
    print(f"{len(buyers)} bookings, {sum(got.values())} mails")
    assert set(got) == buyers
    assert set(got.values()) == {1}
    assert mail.twice() == []
    assert await stage.app.postgres.fetchval("SELECT count(*) FROM notice WHERE state = 'dead'") == 0
    await stage.settled()
