"""Organisers receive facts of their own events at their own servers, however these behave (R33)."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from standardwebhooks import Webhook

from holdfast.app import App
from holdfast.bookings import from_public_id, reference
from holdfast.config import Config
from holdfast.outbox import Fact
from holdfast.web.pod_pages import parse_key
from holdfast.webhooks_out.delivery import PAUSES_S, DeliveryResult
from holdfast.webhooks_out.endpoint import EndpointChange
from holdfast.webhooks_out.errors import EndpointOff, NoSuchDelivery, NoSuchEndpoint
from tests.support.fact_recorder import FactRecorder
from tests.support.opened import open_app
from tests.support.own_engines import hold
from tests.support.show_fixture import an_owner
from tests.support.webhook_receivers import House, a_house, a_receiver, another_house, says

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
async def app(config: Config) -> AsyncIterator[App]:
    async with open_app(replace(config, hook_lenient=1)) as opened:
        yield opened


@pytest.fixture
async def house(app: App) -> AsyncIterator[House]:
    async with a_house(app) as opened:
        yield opened


async def something_happens(house: House, seat: int = 0) -> None:
    """A free show: booking.confirmed, and nothing else."""
    await hold(house.app, house.show, an_owner(), seat)
    await house.hears()


async def test_a_fact_arrives_and_its_signature_is_good(house: House) -> None:
    async with a_receiver() as receiver:
        _, secret = await house.listens_at(receiver.url, "booking.confirmed")
        await something_happens(house)
        await house.sends()

    ((headers, body),) = receiver.got
    payload = Webhook(secret).verify(body, headers)
    assert payload["type"] == "booking.confirmed"
    assert payload["data"]["show_id"] == house.show
    assert payload["data"]["seats"] == [0]
    assert payload["data"]["seat_labels"] == ["A-1"]
    assert payload["data"]["reference"] == reference(*from_public_id(payload["data"]["booking_id"]))
    assert headers["webhook-id"] == house.webhook_id(payload["data"]["fact_id"])


async def test_an_organiser_receives_no_facts_of_another_organisers_events(house: House) -> None:
    other = await another_house(house.app)
    async with a_receiver() as mine, a_receiver() as theirs:
        await house.listens_at(mine.url)
        await other.listens_at(theirs.url)
        await something_happens(other)
        await house.sends()

    assert mine.got == []
    assert "booking.confirmed" in theirs.kinds


async def test_only_the_subscribed_kinds_arrive(house: House) -> None:
    async with a_receiver() as receiver:
        await house.listens_at(receiver.url, "show.cancelled")
        await something_happens(house)
        await house.sends()

    assert receiver.got == []


async def test_a_fact_consumed_twice_is_delivered_once(house: House) -> None:
    reader = await FactRecorder(house.app, kinds=("booking.confirmed",)).open()
    async with a_receiver() as receiver:
        await house.listens_at(receiver.url, "booking.confirmed")
        await something_happens(house)
        await house.sends()
        await reader.consume()
        (fact,) = (fact for fact in reader.received if fact.show_id == house.show)
        await house.hooks.consume_facts([fact])
        await house.sends()

    assert receiver.ids == [house.webhook_id(fact.id)]


async def test_a_no_is_tried_again_later_and_the_log_knows_both(house: House) -> None:
    async with a_receiver(says(500, b"oh dear"), says(200, b"thanks")) as receiver:
        endpoint, _ = await house.listens_at(receiver.url, "booking.confirmed")
        await something_happens(house)
        await house.sends()
        await house.jobs.send_again()  # its pause is not over
        assert len(receiver.got) == 1
        await house.sends_again()

    first, second = await house.log(endpoint)
    assert (first["status"], first["response"], first["reason"]) == (500, "oh dear", "HTTP 500")
    assert (second["status"], second["response"], second["reason"]) == (200, "thanks", None)
    assert await house.state(endpoint) == ["done"]
    assert receiver.ids[0] == receiver.ids[1]
    failing = "SELECT failing_since FROM webhook_endpoint WHERE id = $1"
    assert await house.sold_by.postgres.fetchval(failing, endpoint.endpoint_id) is None


async def test_after_the_last_try_a_delivery_is_dead_and_a_replay_starts_over(house: House) -> None:
    async with a_receiver(*[says(503)] * (len(PAUSES_S) + 1), says(204)) as receiver:
        endpoint, _ = await house.listens_at(receiver.url, "booking.confirmed")
        await something_happens(house)
        await house.sends()
        for _ in PAUSES_S:
            await house.sends_again()
        assert await house.state(endpoint) == ["dead"]
        assert len(receiver.got) == len(PAUSES_S) + 1

        key = parse_key(receiver.ids[0])
        assert key is not None
        page = await house.hooks.replay(endpoint.endpoint_id, house.organiser, key[1])
        assert page.state == "queued"
        await house.sends_again()

    assert await house.state(endpoint) == ["done"]


async def test_failed_deliveries_since_a_time_are_replayed_and_delivered_ones_on_request(
    house: House,
) -> None:
    async with a_receiver() as receiver:
        endpoint, _ = await house.listens_at(receiver.url, "booking.confirmed")
        await something_happens(house, 0)
        await something_happens(house, 1)
        await house.sends()
        which = endpoint.endpoint_id, house.organiser

        assert await house.hooks.replay_since(*which, LONG_AGO, failed_only=True) == 0
        tomorrow = datetime.now(UTC) + timedelta(days=1)
        assert await house.hooks.replay_since(*which, tomorrow, failed_only=False) == 0
        assert await house.hooks.replay_since(*which, LONG_AGO, failed_only=False) == 2
        await house.sends()

    assert sorted(receiver.ids[:2]) == sorted(receiver.ids[2:])


async def test_during_rotation_both_secrets_sign_and_then_only_the_new_one(house: House) -> None:
    async with a_receiver() as receiver:
        endpoint, old = await house.listens_at(receiver.url, "booking.confirmed")
        _, new = await house.hooks.change_secret(endpoint.endpoint_id, house.organiser)
        await something_happens(house, 0)
        await house.sends()
        await house.app.postgres.execute("UPDATE webhook_endpoint SET old_until = now() - interval '1 s'")
        await something_happens(house, 1)
        await house.sends()

    (headers, body), (later, later_body) = receiver.got
    for secret in (old, new):
        Webhook(secret).verify(body, headers)
    Webhook(new).verify(later_body, later)
    assert len(later["webhook-signature"].split(" ")) == 1


async def test_an_endpoint_that_fails_for_long_is_disabled_and_its_organiser_notified(house: House) -> None:
    reader = await FactRecorder(house.app, kinds=("endpoint.switched_off",)).open()
    async with a_receiver(says(500)) as broken, a_receiver() as other:
        endpoint, _ = await house.listens_at(broken.url, "booking.confirmed")
        await house.listens_at(other.url, "endpoint.switched_off")
        await something_happens(house)
        await house.sends()
        await house.sold_by.postgres.execute(
            "UPDATE webhook_endpoint SET failing_since = now() - interval '40 h' WHERE id = $1",
            endpoint.endpoint_id,
        )
        await house.sends_again()
        await something_happens(house, 1)  # while it is off
        await house.sends()

    assert "HTTP 500" in (await house.why_off(endpoint) or "")
    assert await house.state(endpoint) == ["missed", "missed"]
    assert other.kinds == ["endpoint.switched_off"]
    await reader.consume()
    assert [msgspec.to_builtins(fact.body)["endpoint_id"] for fact in reader.received] == [
        endpoint.endpoint_id
    ]


async def test_deliveries_missed_while_disabled_are_sent_by_a_replay(house: House) -> None:
    async with a_receiver() as receiver:
        endpoint, _ = await house.listens_at(receiver.url, "booking.confirmed")
        which = endpoint.endpoint_id, house.organiser
        await house.hooks.change(*which, EndpointChange(active=False))
        await something_happens(house)
        await house.sends()
        with pytest.raises(EndpointOff):
            await house.hooks.replay_since(*which, LONG_AGO, failed_only=True)

        await house.hooks.change(*which, EndpointChange(active=True))
        assert await house.hooks.replay_since(*which, LONG_AGO, failed_only=True) == 1
        await house.sends()

    assert receiver.kinds == ["booking.confirmed"]


async def test_a_410_response_disables_the_endpoint_immediately(house: House) -> None:
    async with a_receiver(says(410)) as receiver:
        endpoint, _ = await house.listens_at(receiver.url, "booking.confirmed")
        await something_happens(house)
        await house.sends()

    assert "HTTP 410" in (await house.why_off(endpoint) or "")
    assert await house.state(endpoint) == ["missed"]


async def test_a_dead_workers_delivery_is_taken_over_and_its_late_result_ignored(house: House) -> None:
    async with a_receiver() as receiver:
        endpoint, _ = await house.listens_at(receiver.url, "booking.confirmed")
        await something_happens(house)
        (lost,) = await house.hooks.take_due(10, 10, is_failing=False)
        await house.sends()
        assert receiver.got == []  # its lease lasts

        await house.app.postgres.execute("UPDATE webhook_delivery SET due_at = now()")
        await house.sends()

    assert len(receiver.got) == 1
    assert await house.hooks.end(lost, DeliveryResult(status=500, took_ms=1, reason="HTTP 500")) is None
    assert await house.state(endpoint) == ["done"]


async def test_failing_endpoints_are_sent_to_separately(house: House) -> None:
    async with a_receiver(says(500)) as broken, a_receiver() as well:
        await house.listens_at(broken.url, "booking.confirmed")
        await house.listens_at(well.url, "booking.confirmed")
        await something_happens(house, 0)
        await house.sends()
        await something_happens(house, 1)
        await house.sends()

    assert len(well.got) == 2
    assert len(broken.got) == 1


async def test_another_organisers_endpoint_does_not_exist(house: House) -> None:
    endpoint, _ = await house.listens_at("http://127.0.0.1:9/", "booking.confirmed")
    which: tuple[int, int] = endpoint.endpoint_id, house.organiser + 1

    with pytest.raises(NoSuchEndpoint):
        await house.hooks.change(*which, EndpointChange(active=False))
    with pytest.raises(NoSuchEndpoint):
        await house.hooks.replay_since(*which, LONG_AGO, failed_only=True)
    with pytest.raises(NoSuchEndpoint):
        await house.hooks.remove(*which)
    with pytest.raises(NoSuchEndpoint):
        await house.hooks.change_secret(*which)
    with pytest.raises(NoSuchDelivery):
        await house.hooks.replay(endpoint.endpoint_id, house.organiser, 1)


async def test_old_deliveries_are_purged_and_queued_ones_stay(house: House) -> None:
    async with a_receiver(says(200), says(500)) as receiver:
        endpoint, _ = await house.listens_at(receiver.url, "booking.confirmed")
        await something_happens(house, 0)
        await house.sends()
        await something_happens(house, 1)
        await house.sends()
        await house.app.postgres.execute("UPDATE webhook_delivery SET written_at = now() - interval '1 year'")

        assert await house.jobs.forget() == 1

    assert await house.state(endpoint) == ["queued"]


def test_a_fact_of_an_unknown_kind_is_sent_unchanged() -> None:
    from holdfast.outbox import UnknownBody
    from holdfast.webhooks_out.delivery import build_payload

    fact = Fact(
        id=1,
        kind="seat.painted",
        version=1,
        at=LONG_AGO,
        show_id=7,
        body=UnknownBody(values={"colour": "red"}),
    )

    assert msgspec.json.decode(build_payload(fact))["data"]["colour"] == "red"
