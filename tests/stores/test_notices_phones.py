"""Urgent notices as short texts, sent through an SMS provider (R29)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from holdfast.app import App
from holdfast.bookings import public_id
from holdfast.config import Config
from tests.support import shows as cast
from tests.support.mail_servers import MAIL_FROM, a_mail_server, a_reader, an_office
from tests.support.own_engines import hold

PUBLIC = "https://hall.example"
Posted = list[tuple[str, dict[str, Any]]]  # key and payload


@asynccontextmanager
async def phones(*replies: int) -> AsyncIterator[tuple[str, Posted]]:
    """An SMS provider: its address and the requests it got; after `replies` it always accepts."""
    posted: Posted = []
    left = list(replies)

    async def take(request: web.Request) -> web.Response:
        posted.append((request.headers["Idempotency-Key"], await request.json()))
        return web.Response(status=left.pop(0) if left else 200)

    application = web.Application()
    application.router.add_post("/sms", take)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/sms", posted
    finally:
        await runner.cleanup()


async def test_an_urgent_notice_is_posted_too_with_a_key_that_stays(config: Config, app: App) -> None:
    show = await cast.a_show(app, 20, price_minor=0)
    async with phones(503) as (url, posted), a_mail_server().up() as server:
        urls = {"mail_url": server.url, "sms_url": url}
        async with an_office(config, mail_from=MAIL_FROM, public_url=PUBLIC, **urls) as office:
            account_id, address = await a_reader(office.app)
            await hold(office.app, show, account_id, 1)
            await office.consume_and_send()
            await office.no_pause()
            await office.send()
            rows = await office.rows(address)

    assert {(row["channel"], row["state"]) for row in rows} == {("mail", "sent"), ("sms", "sent")}
    (first_key, first), (second_key, _) = posted
    assert first_key == second_key
    assert (first["account_id"], first["kind"]) == (account_id, "tickets")
    assert first["text"].startswith("Your ticket for")
    assert f"{PUBLIC}/tickets/" in first["text"]


async def test_a_text_message_is_sent_while_the_mail_server_hangs(config: Config, app: App) -> None:
    show = await cast.a_show(app, 20)
    silent = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    mail_url = f"smtp://127.0.0.1:{silent.sockets[0].getsockname()[1]}"
    async with phones() as (url, posted), silent:
        settings = {"mail_url": mail_url, "mail_timeout_s": 1, "push_url": url, "public_url": PUBLIC}
        async with an_office(config, mail_from=MAIL_FROM, **settings) as office:
            account_id, address = await a_reader(office.app)
            booking = await hold(office.app, show, account_id, 1)
            await app.postgres.execute(
                "UPDATE booking SET expires_at = now() + interval '2 min',"
                " opened_at = now() - interval '8 min' WHERE show_id = $1",
                show,
            )
            await office.post.warn()
            await office.post.send()
            rows = await office.rows(address)

    assert {(row["channel"], row["state"]) for row in rows} == {("mail", "queued"), ("push", "sent")}
    # Other holds are about to end as well, and their owners are notified.
    ours = f"{PUBLIC}/bookings/{public_id(show, booking.number)}"
    assert [sms["text"] for _, sms in posted if sms["text"].endswith(ours)]
