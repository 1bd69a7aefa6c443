"""R34: HAProxy with deploy/haproxy.cfg in front of two web machines: health, addresses, live maps."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from holdfast.config import Config
from tests.conftest import started
from tests.support.haproxy_front import haproxy
from tests.support.nginx_front import Behind
from tests.support.opened import asgi_app
from tests.support.shows import API, Fan
from tests.support.wait import until

Machines = tuple[Behind, Behind]


@pytest.fixture(scope="module")
async def machines(config: Config) -> AsyncIterator[Machines]:
    first, second = asgi_app(config), asgi_app(config)
    async with started(first), started(second):
        both = Behind(first), Behind(second)
        async with both[0].serving(), both[1].serving():
            yield both


@pytest.fixture(scope="module")
async def proxy(
    machines: Machines, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[httpx2.AsyncClient]:
    folder = tmp_path_factory.mktemp("haproxy")
    async with haproxy(folder, (machines[0].address, machines[1].address)) as client:
        yield client


async def send(proxy: httpx2.AsyncClient, people: int, path: str = "/healthz") -> set[int]:
    """A request of each; health checks of the proxy go to another path."""
    cookies = [{"Cookie": f"holdfast=person-{number}"} for number in range(people)]
    return {(await proxy.get(path, headers=cookie)).status_code for cookie in cookies}


def take_counts(machines: Machines) -> list[int]:
    """Requests of people that each machine has had since the last call."""
    return [machine.requests.pop(("GET", "/healthz"), 0) for machine in machines]


async def test_requests_of_one_person_go_to_one_machine_and_those_of_many_to_both(
    proxy: httpx2.AsyncClient, machines: Machines
) -> None:
    take_counts(machines)
    for _ in range(6):
        await proxy.get("/healthz", headers={"Authorization": "Bearer ann"})
    of_one = take_counts(machines)
    assert await send(proxy, 40) == {200}

    assert sorted(of_one) == [0, 6]
    assert min(take_counts(machines)) >= 5


async def test_what_a_client_says_of_its_address_ends_at_the_proxy(
    proxy: httpx2.AsyncClient, machines: Machines
) -> None:
    lies = {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Host": "evil.example", "Forwarded": "for=192.0.2.1"}

    answer = await proxy.get("/healthz", headers={**lies, "X-Real-IP": "192.0.2.1", "Proxy": "x"})

    request_id = answer.headers["x-request-id"]
    (seen,) = [one for machine in machines for one in machine.seen if one.get("x-request-id") == request_id]
    assert seen["x-forwarded-for"] == "127.0.0.1"
    assert not {"x-forwarded-host", "forwarded", "x-real-ip", "proxy"} & seen.keys()


@pytest.mark.parametrize(("path", "host", "status"), [("/metrics", "", 404), ("/", "evil.example", 421)])
async def test_metrics_and_other_names_are_not_for_the_public(
    proxy: httpx2.AsyncClient, path: str, host: str, status: int
) -> None:
    answer = await proxy.get(path, headers={"Host": host} if host else {})

    assert answer.status_code == status


async def test_changes_of_a_map_come_through_one_by_one(
    proxy: httpx2.AsyncClient, a_show: Any, alice: Fan
) -> None:
    show_id, events = await a_show(), []

    async with proxy.stream("GET", f"{API}/shows/{show_id}/seats/stream") as stream:
        async for line in stream.aiter_lines():
            if line.startswith("event:"):
                events.append(line)
                if len(events) == 3:
                    break
                await alice.holds(show_id, f"A-{len(events)}")  # the next one comes only after this

    assert events == ["event: snapshot", "event: change", "event: change"]


async def test_a_machine_that_is_not_ready_gets_no_requests_until_it_is(
    proxy: httpx2.AsyncClient, machines: Machines
) -> None:
    async def only_reaches(*wanted: bool) -> bool:
        take_counts(machines)
        await send(proxy, 30)
        return wanted == tuple(count > 0 for count in take_counts(machines))

    machines[0].application.is_draining = True
    await until(lambda: only_reaches(False, True))
    assert await send(proxy, 30) == {200}
    machines[1].application.is_draining = True
    await until(lambda: only_reaches(False, False))
    refused = await proxy.get("/healthz")
    machines[0].application.is_draining = machines[1].application.is_draining = False
    await until(lambda: only_reaches(True, True))

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert refused.json()["code"] == "engine_down"
