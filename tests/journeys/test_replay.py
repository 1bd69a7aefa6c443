"""The replay of a sale for its organiser: who gets it, in which language, and what is not in it (R33)."""

import asyncio
import re
from html import unescape
from pathlib import Path

import httpx2
import msgspec
import pytest

from holdfast.app import App
from holdfast.config import Config
from holdfast.holds import SeatsTaken
from holdfast.replay.page import SCRIPTS, read_script
from tests.support.browser_session import Visitor
from tests.support.cli_process import run_holdfast
from tests.support.desk import DeskHouse, a_desk_house, sit_down
from tests.support.opened import engines_of
from tests.support.organiser import sign_in_organiser
from tests.support.own_engines import hold
from tests.support.replayed_sale import play
from tests.support.show_fixture import an_owner
from tests.support.shows import fans, problem

DATA = re.compile(r'<script type="application/json" id="replay-data">(.*?)</script>', re.DOTALL)


@pytest.fixture
async def house(app: App, api: httpx2.AsyncClient) -> DeskHouse:
    """Two seats sold, one held, one refused."""
    house = await a_desk_house(app, api)
    await house.buys(app, 0, 1)
    await hold(app, house.show_id, an_owner(), 2)
    with pytest.raises(SeatsTaken):
        await hold(app, house.show_id, an_owner(), 0)
    await app.demand.flush(all_of_them=True)
    return house


class TestTheFile:
    async def test_an_organiser_gets_one_file_with_everything_in_it(self, house: DeskHouse) -> None:
        answer = await house.owner.who.get(f"/admin/shows/{house.show_id}/replay.html")

        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/html")
        assert f'filename="replay-{house.show_id}.html"' in answer.headers["content-disposition"]
        assert answer.headers["cache-control"] == "no-store"
        text = answer.text
        assert "src=" not in text.replace("data-source=", "")
        assert not re.search(r"<link|@import|url\(|https?://", text)
        (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
        assert answer.headers["content-security-policy"].startswith(unescape(policy))
        assert "unsafe" not in policy

    async def test_its_events_end_in_the_map_of_the_ledger(self, app: App, house: DeskHouse) -> None:
        text = (await house.owner.who.get(f"/admin/shows/{house.show_id}/replay.html")).text
        document = msgspec.json.decode(DATA.findall(text)[0].encode())

        events = msgspec.convert(document["events"], bytes)
        states = play(events, document["seats"], 1e15)

        assert states == bytes([2, 2, 1]) + bytes(document["seats"] - 3)
        assert len(msgspec.convert(document["points"], bytes)) == 4 * document["seats"]

    async def test_no_person_is_in_it(self, app: App, house: DeskHouse) -> None:
        rows = await app.postgres.fetch(
            "SELECT owner_id, number, claim_id FROM booking WHERE show_id = $1", house.show_id
        )
        text = (await house.owner.who.get(f"/admin/shows/{house.show_id}/replay.html")).text

        assert "@" not in DATA.findall(text)[0]
        for row in rows:
            for secret in (row["owner_id"], row["number"], row["claim_id"]):
                assert str(secret) not in text, row

    @pytest.mark.parametrize(
        ("language", "words"), [("de", "Ausverkauft"), ("hi", "सारी बिक गईं"), ("fr", "Sold out")]
    )
    async def test_it_is_in_the_organisers_language(
        self, house: DeskHouse, language: str, words: str
    ) -> None:
        who = house.owner.who
        answer = await who.api.get(
            f"/api/v1/admin/shows/{house.show_id}/replay.html",
            headers=who.headers | {"accept-language": language},
        )

        assert words in answer.text

    async def test_others_do_not_get_it(self, app: App, api: httpx2.AsyncClient, house: DeskHouse) -> None:
        path = f"/admin/shows/{house.show_id}/replay.html"
        (fan,) = await fans(app, api, 1)
        rival = (await sign_in_organiser(app, api)).who

        assert problem(await fan.get(path))["code"] == "not_allowed"
        assert problem(await rival.get(path))["code"] == "no_such_show"
        assert (
            problem(await house.owner.who.get("/admin/shows/99999999/replay.html"))["code"] == "no_such_show"
        )
        assert problem(await house.owner.who.get("/admin/shows/x/replay.html"))["status"] == 404


class TestTheDesk:
    async def test_the_page_has_its_figures_without_scripts(
        self, app: App, ann: Visitor, house: DeskHouse
    ) -> None:
        clerk = await sit_down(app, ann, house.organisation_id)
        await clerk.goes(f"{house.path}/shows/{house.show_id}")
        assert f'href="{house.path}/shows/{house.show_id}/replay"' in clerk.text

        await clerk.goes(f"{house.path}/shows/{house.show_id}/replay")

        cells = dict(re.findall(r'<th scope="row">([^<]+)</th><td>([^<]+)</td>', clerk.text))
        assert cells["Seats sold"] == "2 of 40"
        assert cells["Holds"] == "2"
        assert cells["Refused holds"] == "1"
        assert cells["Sold out"] == "Not yet"
        assert cells["Most wanted seats"].startswith("A-1")

    async def test_a_show_that_has_sold_nothing_says_so(
        self, app: App, api: httpx2.AsyncClient, ann: Visitor
    ) -> None:
        empty = await a_desk_house(app, api)
        clerk = await sit_down(app, ann, empty.organisation_id)

        await clerk.goes(f"{empty.path}/shows/{empty.show_id}/replay")

        assert clerk.status == 200
        assert clerk.says("No seat has been held yet")

    async def test_the_data_and_the_file_are_for_those_who_see_the_page(
        self, app: App, ann: Visitor, api: httpx2.AsyncClient, house: DeskHouse
    ) -> None:
        (door,) = await fans(app, api, 1)
        await app.organisations.add_member(house.organisation_id, door.account_id, ["door"])
        visitor = await sit_down(app, ann, door.account_id)
        for name in ("replay", "replay.json", "replay.html"):
            await visitor.goes(f"{house.path}/shows/{house.show_id}/{name}")
            assert visitor.status == 403, name

        await sit_down(app, ann, house.organisation_id)
        for name in ("replay.json", "replay.html"):
            await visitor.goes(f"{house.path}/shows/{house.show_id}/{name}")
            assert visitor.status == 200, name


class TestTheCommand:
    async def test_it_writes_the_file(self, house: DeskHouse, config: Config, tmp_path: Path) -> None:
        file = tmp_path / "sale.html"
        env = engines_of(config)

        done = await run_holdfast(
            "replay", str(house.show_id), "--output", str(file), "--language", "de", "--json", **env
        )

        assert done.code == 0, done
        assert done.page == {"file": str(file), "bytes": file.stat().st_size}
        assert "Ausverkauft" in file.read_text()

        to = ("--output", str(file))
        for ended in await asyncio.gather(
            run_holdfast("replay", "99999999", *to, **env),
            run_holdfast("replay", str(house.show_id), "--output", "/nowhere/x.html", **env),
            run_holdfast("replay", str(house.show_id), *to, "--language", "xx", **env),
        ):
            assert ended.code == 2, ended
            assert len(ended.words.strip().splitlines()) == 1, ended.words


def test_the_script_of_the_file_is_one_module_without_imports() -> None:
    script = read_script()

    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    assert len(SCRIPTS) == 4
    assert "class Tape" in script
    assert "</script" not in script
