"""What visitors see of shows in pods, and what follows an organiser's change there (R36)."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.web.caller import Role
from tests.support import shows as cast
from tests.support.pod_house import a_pod_show, holds, shows_in_pods
from tests.support.shows import API, Fan
from tests.support.wait import until


@pytest.fixture(scope="module")
def app(pod_app: App) -> App:
    return pod_app


@pytest.fixture(scope="module")
def api(pod_api: httpx2.AsyncClient) -> httpx2.AsyncClient:
    return pod_api


@pytest.fixture
async def admin(app: App, api: httpx2.AsyncClient) -> Fan:
    return (await cast.fans(app, api, 1, Role.ADMIN))[0]


async def changes(admin: Fan, show: int, **change: Any) -> None:
    changed = await admin.api.patch(f"{API}/admin/shows/{show}", json=change, headers=admin.headers)
    assert changed.status_code == 200, changed.text


async def equals(read: Callable[[], Awaitable[object]], wanted: object) -> bool:
    return await read() == wanted


async def test_a_changed_price_is_shown_as_soon_as_it_has_arrived(
    app: App, api: httpx2.AsyncClient, admin: Fan
) -> None:
    """The page was in the cache of this process; it is not served from there any more."""
    show = await a_pod_show(app)
    pod = app.router.for_show(show)

    async def shown() -> list[int]:
        page = (await api.get(f"{API}/shows/{show}")).json()
        return [one["price_minor"] for one in page["prices"]]

    await until(lambda: equals(shown, [1500]))
    await changes(admin, show, prices={"Standard": 1900})
    await until(lambda: pod.postgres.fetchval("SELECT revision = 2 FROM sale WHERE show_id = $1", show))

    assert await shown() == [1900]


async def test_prices_by_rules_leave_the_map_and_another_change_rebuilds_it(app: App, admin: Fan) -> None:
    """The map knows no prices: buyers of a busy show must not wait for a new one at each step."""
    show = await a_pod_show(app)
    pod = app.router.for_show(show)
    before = await pod.postgres.fetchval("SELECT epoch FROM sale WHERE show_id = $1", show)
    rule = {"category": "Standard", "base_minor": 2100, "floor_minor": 1000, "ceiling_minor": 9000}
    rules = {"currency": "EUR", "rules": [rule]}

    put = await admin.api.put(f"{API}/admin/shows/{show}/price-rules", json=rules, headers=admin.headers)
    assert put.status_code == 200, put.text
    await until(lambda: pod.postgres.fetchval("SELECT revision = 2 FROM sale WHERE show_id = $1", show))
    after_prices = await pod.postgres.fetchval("SELECT epoch FROM sale WHERE show_id = $1", show)
    await changes(admin, show, owner_seats_max=3)
    await until(lambda: pod.postgres.fetchval("SELECT revision = 3 FROM sale WHERE show_id = $1", show))

    assert after_prices == before
    assert await pod.postgres.fetchval("SELECT epoch FROM sale WHERE show_id = $1", show) > before


async def test_lists_of_home_have_the_free_seats_of_every_pod(
    app: App, api: httpx2.AsyncClient, alice: Fan
) -> None:
    for show in (await shows_in_pods(app, seats=10)).values():
        event = await app.postgres.fetchval("SELECT event_id FROM show WHERE id = $1", show)
        await holds(alice, show, "A-1", "A-2")

        page = (await api.get(f"{API}/events/{event}")).json()

        (listed,) = page["shows"]
        assert (listed["availability"]["available"], listed["availability"]["held"]) == (8, 2)


async def test_seats_that_are_released_hours_before_a_show_follow_its_new_start(app: App, admin: Fan) -> None:
    show = await a_pod_show(app)
    pod = app.router.for_show(show)
    body = {"seats": ["A-1"], "name": "sponsor", "release_hours_before": 24}

    async def is_blocked() -> bool:  # as soon as the router knows where the show is
        return (await admin.post(f"/admin/shows/{show}/blocks", body)).status_code == 201

    await until(is_blocked)
    starts = datetime.now(UTC) + timedelta(days=4)

    await changes(
        admin, show, starts_at=starts.isoformat(), ends_at=(starts + timedelta(hours=2)).isoformat()
    )

    async def release() -> object:
        return await pod.postgres.fetchval("SELECT release_at FROM seat_block WHERE show_id = $1", show)

    await until(lambda: equals(release, starts - timedelta(hours=24)))
