"""The stream of NATS follows our settings, and an address may have several nodes."""

from dataclasses import replace
from pathlib import Path

import pytest
from nats.aio.client import Client

from holdfast.engines.bus import BusPlace
from holdfast.engines.buses.nats import replicas_in, servers_in
from tests.support.bus_servers import a_place, a_server, chain, messages_of, opened, positions


@pytest.mark.parametrize(
    ("url", "servers"),
    [
        ("nats://n1:4222", ["nats://n1:4222"]),
        ("nats://n1:4222,n2:4222?replicas=3", ["nats://n1:4222", "nats://n2:4222"]),
        ("tls://name:p%40ss@n1,n2:4223/", ["tls://name:p%40ss@n1", "tls://name:p%40ss@n2:4223"]),
    ],
)
def test_every_node_gets_name_and_password(url: str, servers: list[str]) -> None:
    assert servers_in(url) == servers


def test_replicas_are_a_setting_that_the_address_can_replace() -> None:
    place = BusPlace(url="nats://n1", name="log", messages_max=10, timeout_s=1, replicas=3)

    assert replicas_in(place) == 3
    assert replicas_in(replace(place, url="nats://n1?replicas=5")) == 5
    assert replicas_in(a_place("nats://n1")) == 1


async def test_a_stream_with_other_settings_is_changed_and_keeps_its_messages(tmp_path: Path) -> None:
    """It would be refused as another stream of that name, and the bus would stay away."""
    async with a_server("nats", tmp_path) as server:
        place = a_place(server.url, messages_max=1000)
        async with opened(place) as bus:
            await bus.append(chain(1, 2, 3), 0)

        async with opened(replace(place, messages_max=50)) as bus:
            await bus.append(chain(4, after=3), 3)
            found = positions(await messages_of(bus))
        client = Client()
        await client.connect(server.url)
        info = await client.jetstream().stream_info(place.name)
        await client.close()

    assert found == [1, 2, 3, 4]
    assert info.config.max_msgs == 50
