"""A sampled purchase at a real collector: one connected picture, and nothing about the buyer in it."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace

import httpx2
import pytest
import uvicorn
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from holdfast.app import App
from holdfast.background import build_mail_sender
from holdfast.config import Config
from holdfast.engines.tracing import KEYS
from holdfast.notifications.jobs import GROUP
from holdfast.notifications.jobs import consumer as notice_consumer
from holdfast.outbox.relay import ConsumerWorker, Relay
from holdfast.web.asgi import Application
from holdfast.web.connections import limited_http
from tests.conftest import started
from tests.fakes.otlp_receiver import OtlpReceiver, ReceivedSpan, otlp_receiver
from tests.support.fact_recorder import turns_are_free
from tests.support.opened import asgi_app, open_app
from tests.support.paying_fans import hold_seats, pay
from tests.support.shows import Fan, a_show, fans
from tests.support.uvicorn_server import EmbeddedServer
from tests.support.wait import until
from tests.support.webhook_receivers import a_house, a_receiver

CITIES = "/api/v1/cities"
PROXY_SPAN = "b7" * 8  # of the proxy, in the traceparent that it sends
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
PICTURE = {
    "POST /api/v1/shows/{show:int}/holds",
    "batch hold_many",
    "redis hold",
    "batch open_many",
    "SQL bookings.open_holds",
    "POST /api/v1/bookings/{booking}/pay",
    "batch start_many",
    "SQL payments.start",
    "gateway charge",
    "batch confirm_many",
    "SQL payments.confirm",
    "consume notifications",
    "SQL notifications.add_many",
    "send mail",
}


@dataclass(frozen=True)
class TracedHouse:
    app: App
    application: Application
    collector: OtlpReceiver
    client: httpx2.AsyncClient  # comes through a trusted proxy

    @contextmanager
    def tracing(self) -> Iterator[str]:
        """Requests in the block are sampled, in one trace; its id."""
        trace_id = secrets.token_hex(16)
        self.client.headers["traceparent"] = f"00-{trace_id}-{PROXY_SPAN}-01"
        try:
            yield trace_id
        finally:
            del self.client.headers["traceparent"]

    async def fan(self) -> Fan:
        return (await fans(self.app, self.client, 1))[0]

    async def buy(self, fan: Fan) -> str:
        """Hold two seats and pay for them; the id of the trace."""
        show_id = await a_show(self.app)
        with self.tracing() as trace_id:
            assert (await pay(fan, await hold_seats(fan, show_id))).status_code == 200
        return trace_id

    async def receive(self, trace_id: str, *names: str) -> list[ReceivedSpan]:
        """The spans of a trace, once those with these names have come."""
        await self.collector.has(
            lambda spans: set(names) <= {span.name for span in spans if span.trace_id == trace_id}
        )
        return self.collector.of_trace(trace_id)

    async def send_mails(self) -> None:
        """What `holdfast work` does with the facts so far, of every database."""
        await self.app.outbox.settle(1_000_000)
        for app in self.app.router.by_name.values():
            await turns_are_free(app)
            await Relay(app.outbox, app.config).relay()
            consumer = notice_consumer(app.notifications, app.waiting_rooms)
            worker = ConsumerWorker(app.outbox, consumer, app.config, wait_s=0.05)
            while await worker.consume():
                pass
            while await build_mail_sender(app).send():
                pass


@asynccontextmanager
async def listening(application: Application, config: Config) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of the application on a port of its own, as `holdfast serve` opens one."""
    settings = uvicorn.Config(
        application, port=0, http=limited_http(config), lifespan="off", log_config=None, ws="none"
    )
    server = EmbeddedServer(settings)
    async with (
        running_server(server) as port,
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        yield client


@asynccontextmanager
async def running_server(server: EmbeddedServer) -> AsyncIterator[int]:
    serving = asyncio.create_task(server.serve())
    await until(lambda: asyncio.sleep(0, server.started))
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await serving


@pytest.fixture(scope="module")
async def house(config: Config) -> AsyncIterator[TracedHouse]:
    """No request is sampled unless a trusted proxy asks for it."""
    async with otlp_receiver() as collector:
        traced = replace(
            config, traces_url=collector.url, traces_ratio=0.0, traces_parents=1, mail_page=1, hook_lenient=1
        )
        application = asgi_app(traced)
        async with (
            open_app(traced) as app,
            started(application),
            listening(application, traced) as client,
        ):
            for each in app.router.by_name.values():
                await each.outbox.add_group(GROUP, from_oldest=True)
            yield TracedHouse(app, application, collector, client)


@dataclass(frozen=True)
class Purchase:
    fan: Fan
    spans: list[ReceivedSpan]


@pytest.fixture(scope="module")
async def purchase(house: TracedHouse) -> Purchase:
    """One purchase, from the hold to the mail."""
    fan = await house.fan()
    trace_id = await house.buy(fan)
    await house.send_mails()
    return Purchase(fan, await house.receive(trace_id, "POST /api/v1/bookings/{booking}/pay", "send mail"))


async def test_a_sampled_purchase_is_one_connected_picture(purchase: Purchase) -> None:
    """Web, batch, script, SQL, gateway, fact, consumer and mail: no span hangs in the air."""
    spans = purchase.spans
    known = {span.span_id for span in spans} | {PROXY_SPAN}
    (hold,) = [span for span in spans if span.name.endswith("/holds")]
    (paid,) = [span for span in spans if span.name.endswith("/pay")]

    assert {span.name for span in spans} >= PICTURE
    assert [span.name for span in spans if span.parent_id not in known] == []
    assert {span.resource["service.name"] for span in spans} == {"holdfast"}
    assert not [span.name for span in spans if span.is_failed or span.took_ns < 0]
    assert hold.attributes["holdfast.booking_id"] == paid.attributes["holdfast.booking_id"]


async def test_a_batch_is_linked_to_its_requests(purchase: Purchase) -> None:
    by_name = {span.name: span for span in purchase.spans}

    batch, request = by_name["batch hold_many"], by_name["POST /api/v1/shows/{show:int}/holds"]

    assert batch.parent_id == request.span_id
    assert batch.links == (request.key,)
    assert by_name["redis hold"].parent_id == batch.span_id


async def test_spans_have_no_personal_data(house: TracedHouse, purchase: Purchase) -> None:
    """No address, token, name or card method in any value: spans leave the house."""
    account_id, spans = purchase.fan.account_id, purchase.spans
    row = await house.app.postgres.fetchrow("SELECT email, name FROM account WHERE id = $1", account_id)
    assert row is not None

    values = [f"{span.name} {key}={value};" for span in spans for key, value in span.attributes.items()]

    assert {key for span in spans for key in span.attributes} <= KEYS
    personal = ("@", purchase.fan.token, row["email"], row["name"], "tok_ok", "Bearer")
    assert not [text for text in values for part in personal if part in text]


async def test_an_outsider_cannot_have_requests_sampled(house: TracedHouse) -> None:
    """A traceparent is believed only from trusted proxies: others could have every request traced."""
    forced = secrets.token_hex(16)
    outsiders = replace(house.app.config, trusted_proxies="192.0.2.1")
    async with listening(house.application, outsiders) as outside:
        answers = [await outside.get(CITIES, headers={"traceparent": f"00-{forced}-{PROXY_SPAN}-01"})]
    for flags in ("00", "01"):
        header = {"traceparent": f"00-{'e5' * 16}-{PROXY_SPAN}-{flags}"}
        answers.append(await house.client.get(CITIES, headers=header))
    answers.append(await house.client.get(CITIES, headers={"traceparent": "00-not-a-trace-01"}))
    sampled = await house.receive("e5" * 16, "GET /api/v1/cities")

    assert {answer.status_code for answer in answers} == {200}
    assert not house.collector.of_trace(forced)
    assert len([span for span in sampled if span.parent_id == PROXY_SPAN]) == 1


async def test_a_time_has_the_trace_of_a_sampled_request_beside_it(
    house: TracedHouse, purchase: Purchase
) -> None:
    """Exemplars: from the graph of slow holds to one of them."""
    response = await house.client.get("/metrics", headers={"accept": OPENMETRICS})
    plain = await house.client.get("/metrics")

    assert response.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert plain.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "trace_id" not in plain.text
    parsed = text_string_to_metric_families(response.text)  # type: ignore[no-untyped-call]
    families = {family.name: family for family in parsed}
    for name in ("http", "hold_batch", "open_batch", "gateway"):
        samples = families[f"holdfast_{name}_seconds"].samples
        seen = {sample.exemplar.labels["trace_id"] for sample in samples if sample.exemplar is not None}
        assert seen & {span.trace_id for span in house.collector.spans}, name


async def test_a_webhook_continues_the_trace_of_its_fact(house: TracedHouse) -> None:
    async with a_receiver() as organisers_server, a_house(house.app) as sold:
        await sold.listens_at(organisers_server.url, "booking.confirmed")
        fan = await house.fan()
        with house.tracing() as trace_id:
            await hold_seats(fan, sold.show)  # nothing to pay: confirmed at once
        await sold.hears()
        await sold.sends()

        assert organisers_server.kinds == ["booking.confirmed"]
        assert trace_id.encode() not in organisers_server.got[0][1]  # it is of no use to them
    await house.receive(trace_id, "consume webhooks", "send webhook")


async def test_a_collector_that_refuses_costs_spans_and_nothing_else(house: TracedHouse) -> None:
    house.collector.status = 400  # not repeated, unlike 503
    lost = await house.buy(await house.fan())

    async def is_counted() -> bool:
        numbers = (await house.client.get("/metrics")).text
        return 'holdfast_spans_dropped_total{why="not_received"}' in numbers

    await until(is_counted)
    house.collector.status = 200
    sent = await house.buy(await house.fan())

    await house.receive(sent, "gateway charge")
    assert not house.collector.of_trace(lost)
