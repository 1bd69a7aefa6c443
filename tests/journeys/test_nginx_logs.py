"""Links to tickets and in mails are in no log of nginx: they open without a sign-in (R30)."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from holdfast.config import Config
from tests.conftest import started
from tests.support.nginx_front import Behind, fronted
from tests.support.opened import asgi_app
from tests.support.wait import until


def all_logs(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.glob("*.log"))


async def test_a_ticket_s_link_which_is_the_ticket_is_in_no_log(config: Config, tmp_path: Path) -> None:
    application = asgi_app(config)
    link, own = "AQ" * 24, Behind(application)

    async def is_logged() -> bool:
        return b"/tickets/files/ticket.js" in await asyncio.to_thread((tmp_path / "holdfast.log").read_bytes)

    async with AsyncExitStack() as stack:
        async with started(application), own.serving():
            rates = {"browse": 1}
            nginx = await stack.enter_async_context(fronted(tmp_path, own.address, rates=rates))
            answers = [await nginx.get(f"/tickets/{link}"), await nginx.post(f"/tickets/{link}/code")]
            mailed = [await nginx.get(f"/link/{link}"), await nginx.post(f"/link/{link}")]
            await nginx.get("/tickets/files/ticket.js")
            await until(is_logged)
        away = await nginx.get(f"/tickets/{link}")  # nginx logs as an error that the server is away,
        many = await asyncio.gather(*(nginx.get(f"/tickets/{link}") for _ in range(400)))  # and a limit

    logs = await asyncio.to_thread(all_logs, tmp_path)
    assert [answer.status_code for answer in (*answers, away)] == [404, 400, 503]
    assert [answer.status_code for answer in mailed] == [410, 410]
    assert 429 in {answer.status_code for answer in many}
    assert link.encode() not in logs
    assert b'"uri":"/tickets/-"' in logs
    assert b'"uri":"/tickets/-/code"' in logs
    assert b'"uri":"/link/-"' in logs
