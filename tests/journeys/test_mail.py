"""From a purchase to the mail that the buyer reads, in a demo; the organisers' mail admin (R29)."""

import html
import re
import time
from base64 import b64decode
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from typing import Any

import httpx2
import pypdfium2  # type: ignore[import-untyped]
import pytest
import zxingcpp
from icalendar import Calendar
from PIL import Image

from holdfast.app import App
from holdfast.background import build_mail_sender, consumers
from holdfast.config import Config
from holdfast.engines.due_look import with_look
from holdfast.engines.loop import Job, Pause, running
from holdfast.engines.turns import Turns
from holdfast.notifications import NoticeKind
from holdfast.notifications.jobs import jobs as notice_jobs
from holdfast.notifications.message_data import load_templates
from holdfast.notifications.notice import PERSON_KINDS
from holdfast.outbox.relay import jobs as fact_jobs
from holdfast.web.caller import Role
from tests.conftest import started
from tests.support import shows as cast
from tests.support.fact_recorder import skip_older_facts
from tests.support.opened import asgi_app, open_app
from tests.support.shows import API, Fan, problem
from tests.support.wait import until

PATIENCE_S = 10.0


@dataclass
class Demo:
    app: App
    api: httpx2.AsyncClient

    async def fan(self, role: Role = Role.FAN) -> Fan:
        (fan,) = await cast.fans(self.app, self.api, 1, role)
        return fan

    async def mails_to(self, address: str) -> list[tuple[str, str]]:
        """(address of its page, subject), newest first."""
        page = (await self.api.get("/demo/mail")).text
        found = re.findall(
            r'<a href="(/demo/mail/[a-z0-9-]+)">([^<]*)</a>\s*<span>to [^<]*&lt;([^<]*)&gt;', page
        )
        return [(url, html.unescape(subject)) for url, subject, to in found if html.unescape(to) == address]


@pytest.fixture(scope="module")
async def demo(config: Config) -> AsyncIterator[Demo]:
    """A box office as `holdfast demo` has it, with the relay, consumers and senders of each database."""
    config = replace(config, mail_page=1)
    application = asgi_app(config)
    transport = httpx2.ASGITransport(application)
    async with open_app(config) as app, started(application):
        async with httpx2.AsyncClient(transport=transport, base_url="http://box.office") as api:
            jobs = [job for each in app.router.by_name.values() for job in await at_work(each)]
            async with running(jobs):
                yield Demo(app, api)


async def at_work(app: App) -> Sequence[tuple[Pause, Job]]:
    """Of one database."""
    for consumer in consumers(app):
        await skip_older_facts(app, consumer.group)
    post = build_mail_sender(app)
    await post.send()  # a worker that has been up for a while: it has its fonts
    turns = Turns(app.postgres)
    jobs = [*fact_jobs(app.outbox, consumers(app), app.config, turns), *notice_jobs(post, turns)]
    return with_look(app.postgres, jobs)


async def address_of(fan: Fan) -> str:
    return str((await fan.get("/me")).json()["email"])


@dataclass
class Purchase:
    """A purchase, and how long it took until its mail could be read."""

    fan: Fan
    booking: str
    url: str
    subject: str
    took_s: float


async def a_purchase(demo: Demo) -> Purchase:
    fan = await demo.fan()
    address = await address_of(fan)
    show = await cast.a_show(demo.app, 20)
    booking = (await fan.holds(show, "A-4", "A-5")).json()["booking_id"]
    paid = await fan.post(f"/bookings/{booking}/pay", {"method": "tok_ok"})
    assert paid.json()["state"] == "confirmed"
    confirmed_at = time.monotonic()
    await until(lambda: _has_mail(demo, address), within_s=PATIENCE_S)
    took_s = time.monotonic() - confirmed_at
    ((url, subject),) = await demo.mails_to(address)
    return Purchase(fan, booking, url, subject, took_s)


async def test_a_purchase_is_on_the_mail_page_with_code_paper_and_date(demo: Demo) -> None:
    for each in demo.app.router.by_name.values():
        await until(partial(_is_listening, each), within_s=PATIENCE_S)
    purchase = await a_purchase(demo)
    print(f"on the page {purchase.took_s:.2f} s after it was confirmed")

    page = await demo.api.get(purchase.url)
    letter = html.unescape(page.text.split('srcdoc="')[1].split('"></iframe>')[0])
    tickets = (await purchase.fan.get(f"/bookings/{purchase.booking}/tickets")).json()["tickets"]
    codes = [one["code"] for one in tickets]
    pictures = re.findall(r'src="data:image/png;base64,([^"]+)"', letter)
    assert f"<style>{load_templates().style}</style>" in letter.replace("\r\n", "\n"), (
        "as the policy allows it"
    )
    assert purchase.subject.startswith("Your 2 tickets for Test ")
    assert [_read(Image.open(BytesIO(b64decode(one)))) for one in pictures] == [{code} for code in codes]
    files = dict(re.findall(r'<a href="([^"]+/files/\d+)" download="([^"]+)">', page.text))
    by_name = {name: await demo.api.get(link) for link, name in files.items()}
    assert by_name["tickets.pdf"].headers["content-type"] == "application/pdf"
    sheet = pypdfium2.PdfDocument(by_name["tickets.pdf"].content)[0].render(scale=2).to_pil()
    assert _read(sheet) == set(codes)
    (entry,) = Calendar.from_ical(by_name["tickets.ics"].content).walk("VEVENT")
    assert entry["UID"] == f"{purchase.booking}@holdfast"
    assert "€30.00" in (await demo.api.get(f"{purchase.url}/text")).text
    (link, *_) = re.findall(r'href="(/tickets/[^"]+)"', letter)
    assert (await demo.api.get(link)).status_code == 200


async def test_the_page_can_do_nothing_and_loads_nothing(demo: Demo) -> None:
    name = "<script>alert(1)</script>\"'"
    hostile = await demo.fan()
    await demo.app.postgres.execute("UPDATE account SET name = $2 WHERE id = $1", hostile.account_id, name)
    address = await address_of(hostile)
    show = await cast.a_show(demo.app, 20, price_minor=0)
    await hostile.holds(show, "A-1")
    await until(lambda: _has_mail(demo, address), within_s=PATIENCE_S)

    ((url, _),) = await demo.mails_to(address)
    for answer in (await demo.api.get("/demo/mail"), await demo.api.get(url)):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "script-src" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert "<script" not in answer.text
        assert not re.search(r'(src|href)="https?:', answer.text)
    assert 'sandbox="allow-popups allow-popups-to-escape-sandbox"' in (await demo.api.get(url)).text


async def test_without_the_setting_the_page_does_not_exist(config: Config, api: httpx2.AsyncClient) -> None:
    paths = ("/demo/mail", "/demo/mail/1", "/demo/mail/1/text", "/demo/mail/1/files/3")
    assert [(await api.get(path)).status_code for path in paths] == [404] * 4
    assert not config.mail_page

    sends = replace(config, mail_page=1, mail_url="smtp://mail.example", mail_from="a@b.example")
    application = asgi_app(sends)
    transport = httpx2.ASGITransport(application)
    async with started(application):
        async with httpx2.AsyncClient(transport=transport, base_url="http://box.office") as client:
            assert [(await client.get(path)).status_code for path in paths] == [404] * 4


class TestLanguage:
    async def test_mail_uses_the_browsers_language_until_the_account_chooses_another(
        self, api: httpx2.AsyncClient
    ) -> None:
        body = {"email": f"l{time.time_ns()}@example.org", "password": "correct horse", "name": "Zoë"}
        signed_up = (
            await api.post(f"{API}/accounts", json=body, headers={"Accept-Language": "hi-IN, en;q=0.5"})
        ).json()
        headers = {"Authorization": f"Bearer {signed_up['access_token']}"}

        chosen = await api.put(f"{API}/me/locale", json={"locale": "de"}, headers=headers)
        refused = await api.put(f"{API}/me/locale", json={"locale": "xx"}, headers=headers)

        assert signed_up["account"]["locale"] == "hi"
        assert (
            chosen.json()["locale"] == (await api.get(f"{API}/me", headers=headers)).json()["locale"] == "de"
        )
        assert refused.status_code == 422


class TestDesk:
    async def test_an_admin_can_list_and_resend_mail(self, demo: Demo) -> None:
        zoe, admin = await demo.fan(), await demo.fan(role=Role.ADMIN)
        address = await address_of(zoe)
        await zoe.holds(await cast.a_show(demo.app, 20, price_minor=0), "A-1")
        await until(lambda: _has_mail(demo, address), within_s=PATIENCE_S)
        found = (await admin.get("/admin/notices", state="all", size=200)).json()["notices"]
        (notice,) = [one for one in found if one["address"] == address]

        pod = notice["pod"] or "home"
        again = await admin.post(f"/admin/notices/{notice['notice_id']}/replay?pod={pod}")
        missing = await admin.post("/admin/notices/999999999/replay")

        assert (notice["kind"], notice["channel"]) == ("tickets", "mail")
        assert again.json()["state"] == "queued"
        assert (missing.status_code, problem(missing)["code"]) == (404, "no_such_notice")

    async def test_a_buyer_cannot_use_the_mail_admin(self, alice: Fan) -> None:
        for path in ("/admin/notices", "/admin/notices/preview/tickets", "/admin/notices/sender"):
            assert (await alice.get(path)).status_code == 403
        assert (await alice.post("/admin/notices/1/replay")).status_code == 403

    @pytest.mark.parametrize("kind", NoticeKind)
    async def test_an_organiser_can_preview_every_mail(self, demo: Demo, kind: NoticeKind) -> None:
        organiser = await demo.fan(role=Role.ORGANISER)

        page = await organiser.get(f"/admin/notices/preview/{kind}", locale="de")
        text = await organiser.get(f"/admin/notices/preview/{kind}", text="true")

        assert page.headers["content-type"].startswith("text/html")
        assert '<html lang="de">' in page.text
        assert ("zoe@example.org" if kind in PERSON_KINDS else "Crème Brûlée") in text.text
        assert "default-src 'none'" in page.headers["content-security-policy"]

    async def test_an_unknown_mail_kind_has_no_preview(self, demo: Demo) -> None:
        organiser = await demo.fan(role=Role.ORGANISER)

        refused = await organiser.get("/admin/notices/preview/spam")

        assert (refused.status_code, problem(refused)["code"]) == (404, "no_such_notice")
        assert (await organiser.get("/admin/notices/preview/tickets", locale="../x")).status_code == 422

    async def test_an_organiser_says_under_which_name_letters_go_out(self, demo: Demo) -> None:
        organiser = await demo.fan(role=Role.ORGANISER)

        before = await organiser.get("/admin/notices/sender")
        put = await _put(organiser, {"from_name": "Théâtre", "reply_to": "hello@theatre.example"})
        bad = [
            await _put(organiser, {"from_name": "A\r\nBcc: x@y.example"}),
            await _put(organiser, {"from_name": "A", "reply_to": "x@y.example\nBcc: z"}),
        ]

        assert before.status_code == 404
        assert put.status_code == 200
        assert (await organiser.get("/admin/notices/sender")).json() == put.json()
        assert [one.status_code for one in bad] == [422, 422]


async def _put(fan: Fan, body: dict[str, Any]) -> httpx2.Response:
    return await fan.api.put(f"{API}/admin/notices/sender", json=body, headers=fan.headers)


async def _has_mail(demo: Demo, address: str) -> bool:
    return bool(await demo.mails_to(address))


async def _is_listening(app: App) -> bool:
    query = "SELECT count(*) FROM consumer_group WHERE name IN ('notifications', 'relay')"
    return int(await app.postgres.fetchval(query)) == 2


def _read(image: Image.Image) -> set[str]:
    return {one.text for one in zxingcpp.read_barcodes(image)}
