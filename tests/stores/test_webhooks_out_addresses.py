"""A server that a stranger names is reached as little as can be: no detour, no second look-up, no feast."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from holdfast.webhooks_out.client import PublicResolver, WebhookClient
from holdfast.webhooks_out.delivery import RESPONSE_CHARS_MAX, DueDelivery
from tests.support.webhook_receivers import Names, a_bomb, a_receiver, says


def due_at(url: str) -> DueDelivery:
    return DueDelivery(endpoint_id=1, fact_id=7, url=url, secrets=[b"s" * 32], payload=b"{}", tries=1, turn=1)


@asynccontextmanager
async def a_messenger(**how: Any) -> AsyncIterator[WebhookClient]:
    messenger = WebhookClient(**{"timeout_s": 5.0, "links_max": 4, **how})
    try:
        yield messenger
    finally:
        await messenger.close()


@asynccontextmanager
async def a_port() -> AsyncIterator[tuple[int, list[str]]]:
    """A local server, and the requests that reached it."""
    came: list[str] = []

    async def note(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(str(writer.get_extra_info("peername")))
        writer.close()

    server = await asyncio.start_server(note, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], came


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "fd00::1"]
)
async def test_a_name_that_leads_into_our_network_is_not_followed(address: str) -> None:
    names = Names([[address]])
    async with a_port() as (port, came), a_messenger(names=names) as messenger:
        reply = await messenger.send(due_at(f"https://hall.example.org:{port}/"))

    assert not reply.is_yes
    assert "not a public address" in str(reply.reason)
    assert came == []


async def test_one_hidden_address_among_public_ones_is_one_too_many() -> None:
    names = Names([["8.8.8.8", "127.0.0.1"]])
    async with a_port() as (port, came), a_messenger(names=names) as messenger:
        reply = await messenger.send(due_at(f"https://hall.example.org:{port}/"))

    assert "not a public address" in str(reply.reason)
    assert came == []


async def test_a_name_that_led_elsewhere_a_moment_ago_is_looked_at_again() -> None:
    names = Names([["8.8.8.8"], ["127.0.0.1"]])
    assert await PublicResolver(names).resolve("hall.example.org", 443)
    async with a_port() as (port, came), a_messenger(names=names) as messenger:
        reply = await messenger.send(due_at(f"https://hall.example.org:{port}/"))

    assert "not a public address" in str(reply.reason)
    assert names.lookups == 2
    assert came == []


async def test_the_connection_uses_the_address_of_the_single_lookup() -> None:
    names = Names([["127.0.0.1"], ["127.0.0.2"]])
    async with a_receiver() as receiver, a_messenger(names=names, lenient=True) as messenger:
        port = receiver.url.split(":")[2].split("/")[0]
        reply = await messenger.send(due_at(f"http://hall.example.org:{port}/hooks"))

    assert reply.is_yes
    assert names.lookups == 1
    assert receiver.got[0][0]["host"] == f"hall.example.org:{port}"


@pytest.mark.parametrize("host", ["127.0.0.1", "0x7f000001", "2130706433", "[::ffff:127.0.0.1]", "localhost"])
async def test_an_ip_address_is_refused_without_a_dns_lookup(host: str) -> None:
    async with a_port() as (port, came), a_messenger() as messenger:
        reply = await messenger.send(due_at(f"https://{host}:{port}/"))

    assert not reply.is_yes
    assert came == []


async def test_a_redirect_is_not_followed() -> None:
    async with a_receiver() as inner, a_messenger(lenient=True) as messenger:
        async with a_receiver(says(307, location=inner.url)) as outer:
            reply = await messenger.send(due_at(outer.url))

    assert (reply.status, reply.reason) == (307, "HTTP 307: redirects are not followed")
    assert inner.got == []


async def test_of_a_long_answer_the_first_bytes_are_read() -> None:
    async with a_receiver(says(200, b"x" * 20_000_000)) as receiver, a_messenger(lenient=True) as messenger:
        reply = await messenger.send(due_at(receiver.url))

    assert reply.is_yes
    assert reply.response == "x" * RESPONSE_CHARS_MAX


async def test_a_packed_answer_is_not_unpacked() -> None:
    async with a_receiver(a_bomb()) as receiver, a_messenger(lenient=True) as messenger:
        reply = await messenger.send(due_at(receiver.url))

    assert reply.is_yes
    assert "0000" not in reply.response


@pytest.mark.alone
async def test_a_response_after_the_timeout_does_not_count() -> None:
    async with a_receiver(wait_s=1.0) as receiver, a_messenger(lenient=True, timeout_s=0.2) as messenger:
        reply = await messenger.send(due_at(receiver.url))

    assert (reply.status, reply.reason) == (None, "no answer within 0.2 s")
    assert reply.took_ms < 900


async def test_an_unreachable_server_gives_a_reply_with_a_reason() -> None:
    async with a_port() as (port, _), a_messenger(lenient=True) as messenger:
        pass
    async with a_messenger(lenient=True) as messenger:
        reply = await messenger.send(due_at(f"http://127.0.0.1:{port}/"))

    assert reply.status is None
    assert reply.reason
