"""Organisers' servers: real ones, on ports of their own, that record their requests."""

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.app import App
from holdfast.outbox.relay import ConsumerWorker
from holdfast.web.pod_pages import format_key
from holdfast.webhooks_out.endpoint import EndpointPage, NewEndpoint
from holdfast.webhooks_out.jobs import DeliveryJobs, consumer
from holdfast.webhooks_out.store import GROUP, OutgoingWebhooks
from tests.conftest import served
from tests.support.fact_recorder import turns_are_free
from tests.support.shows import a_show

_organisers = count(8_800_000)


@dataclass
class Receiver:
    """Gives the answers in `answers` in order; the last one repeats."""

    answers: list[Response] = field(default_factory=lambda: [Response(status_code=204)])
    url: str = ""
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    wait_s: float = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        self.got.append((dict(request.headers), await request.body()))
        await asyncio.sleep(self.wait_s)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        await answer(scope, receive, send)

    @property
    def kinds(self) -> list[str]:
        return sorted(msgspec.json.decode(body)["type"] for _, body in self.got)

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for headers, _ in self.got]


@asynccontextmanager
async def a_receiver(*answers: Response, wait_s: float = 0.0) -> AsyncIterator[Receiver]:
    receiver = Receiver(wait_s=wait_s)
    receiver.answers = list(answers) or receiver.answers
    async with served(receiver) as url:
        receiver.url = f"{url}/hooks"
        yield receiver


def says(status: int, body: bytes = b"", **headers: str) -> Response:
    return Response(body, status, headers)


def a_bomb() -> Response:
    """A hundred megabytes, packed."""
    return Response(gzip.compress(b"0" * 100_000_000, 1), 200, {"content-encoding": "gzip"})


@dataclass
class Names(AbstractResolver):
    """A resolver that returns another address at each lookup; the last one repeats."""

    answers: list[Sequence[str]]
    lookups: int = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = self.answers[min(self.lookups, len(self.answers) - 1)]
        self.lookups += 1
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in found
        ]

    async def close(self) -> None:
        """Nothing is open."""


@dataclass
class House:
    """An organiser with a show, and the jobs that deliver its facts."""

    app: App
    hooks: OutgoingWebhooks
    jobs: DeliveryJobs
    show: int
    organiser: int

    @property
    def sold_by(self) -> App:
        """The application of the database that sells the show, and delivers its facts."""
        return self.app.router.for_show(self.show)

    def webhook_id(self, fact_id: int) -> str:
        """As its receiver gets it."""
        return format_key(self.sold_by.pod, fact_id)

    async def why_off(self, endpoint: EndpointPage) -> str | None:
        """In the database that delivers; None: the endpoint is not off."""
        return (await self.hooks.switched_off([endpoint.endpoint_id])).get(endpoint.endpoint_id)

    async def listens_at(self, url: str, *kinds: str) -> tuple[EndpointPage, str]:
        return await self.hooks.add(self.organiser, NewEndpoint(url=url, kinds=list(kinds)))

    async def hears(self) -> None:
        """Queue deliveries of all facts so far for the subscribed endpoints."""
        await turns_are_free(self.app)
        await self.app.outbox.settle(1_000_000)
        consumer_worker = ConsumerWorker(self.app.outbox, consumer(self.hooks), self.app.config, wait_s=0.01)
        while await consumer_worker.consume():
            pass

    async def sends(self) -> None:
        while await self.jobs.send():
            pass

    async def sends_again(self) -> None:
        """End the pause after the last try, for every delivery."""
        await self.app.postgres.execute("UPDATE webhook_delivery SET due_at = now() WHERE due_at IS NOT NULL")
        while await self.jobs.send_again():
            pass

    async def state(self, endpoint: EndpointPage) -> list[str]:
        sql = "SELECT state::text FROM webhook_delivery WHERE endpoint_id = $1 ORDER BY fact_id"
        return [row["state"] for row in await self.app.postgres.fetch(sql, endpoint.endpoint_id)]

    async def log(self, endpoint: EndpointPage) -> list[Any]:
        sql = "SELECT * FROM webhook_try WHERE endpoint_id = $1 ORDER BY fact_id, turn"
        return list(await self.app.postgres.fetch(sql, endpoint.endpoint_id))


async def another_house(app: App) -> House:
    show, organiser = await a_show(app, price_minor=0), next(_organisers)
    await app.postgres.execute(
        "UPDATE event SET organiser_id = $2 WHERE id = (SELECT event_id FROM show WHERE id = $1)",
        show,
        organiser,
    )
    return House(app, app.webhooks_out, DeliveryJobs(app.webhooks_out, app.config), show, organiser)


@asynccontextmanager
async def a_house(app: App) -> AsyncIterator[House]:
    """From now on: facts and deliveries of tests before this one are of no interest."""
    await app.webhooks_out.forget(1_000_000)
    await app.outbox.settle(1_000_000)
    await app.outbox.add_group(GROUP, from_oldest=False)
    try:
        house = await another_house(app)
        await house.hears()
        yield house
    finally:
        await app.postgres.execute("DELETE FROM webhook_endpoint")
