"""R27: what web processes measure reaches the job of waiting rooms, and silence is not taken for calm."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from holdfast.app import App
from holdfast.engines.metrics import Meter
from holdfast.routes import ROUTES
from holdfast.waitingroom import Joiner, RoomState
from holdfast.waitingroom.admission import WebLoad
from holdfast.waitingroom.web_load import HOLD_ROUTES, LoadReporter, load_web_load
from tests.support.waiting_room import Room, a_room

ShowMaker = Callable[..., Any]
AGE = "UPDATE web_load SET at = at - $1 * interval '1 s'"


@pytest.fixture(autouse=True)
async def no_other_process(app: App) -> AsyncIterator[None]:
    """The engines are shared: rows of other tests would be added up."""
    await app.postgres.execute("DELETE FROM web_load")
    yield
    await app.postgres.execute("DELETE FROM web_load")


class WebProcess:
    """A web process as far as rooms know it: its meter, its viewers, its row."""

    def __init__(self, app: App) -> None:
        self.meter = Meter()
        self.viewers = 0
        self._reporter = LoadReporter(
            app.postgres, app.waiting_rooms.guard, lambda _: self.viewers, payments_max=64, meter=self.meter
        )

    def answer_hold(self, took_s: float = 0.02, status: int = 201, route: str = "hold_seats") -> None:
        """As web/asgi.py counts it."""
        self.meter.observe("http_seconds", took_s, route=route)
        self.meter.add("http_answers_total", 1, route=route, status=str(status))

    async def report(self) -> None:
        await self._reporter.report()


async def admitting(app: App, show_id: int, **settings: Any) -> Room:
    """A room that has called people once, at its full rate of 600 per minute."""
    room = await a_room(app, show_id, inside_max=1000, per_minute_max=600, **settings)
    await app.waiting_rooms.join(room.show_id, Joiner(1))
    await room.draw()
    await app.postgres.execute("UPDATE queue SET rate = 600 WHERE show_id = $1", show_id)
    return room


async def rate_of(room: Room) -> tuple[float, str]:
    row = await room.app.postgres.fetchrow(
        "SELECT rate, held_back_by FROM queue WHERE show_id = $1", room.show_id
    )
    assert row is not None
    return row["rate"], row["held_back_by"]


async def test_reports_of_all_processes_are_added_up(app: App, a_show: ShowMaker) -> None:
    await admitting(app, await a_show())
    first, second = WebProcess(app), WebProcess(app)
    for process in (first, second):
        await process.report()
        process.answer_hold()
        process.answer_hold(took_s=0.6, route="post_hold")
        process.answer_hold(took_s=0.5, status=503)
        process.meter.add("connections_refused_total", status="503")
        process.meter.set("gateway_calls", 5)
        await process.report()

    assert await load_web_load(app.postgres) == WebLoad(
        processes=2, holds=6, slow_holds=2, refused=4, payments=10, payments_max=128
    )


async def test_a_report_is_of_the_last_seconds_only(app: App, a_show: ShowMaker) -> None:
    await admitting(app, await a_show())
    process = WebProcess(app)
    await process.report()
    process.answer_hold(took_s=3)
    for _ in range(5):
        await process.report()
    assert (await load_web_load(app.postgres)).slow_holds == 1

    await process.report()

    assert (await load_web_load(app.postgres)).slow_holds == 0


async def test_no_room_no_report(app: App) -> None:
    """Shows without rooms do not pay for it. Rooms of other tests are closed first."""
    rooms = app.waiting_rooms.guard
    await rooms.refresh()
    for show_id in list(rooms.known_rooms()):
        await app.postgres.execute("UPDATE queue SET state = 'closed' WHERE show_id = $1", show_id)
    await rooms.refresh()

    await WebProcess(app).report()

    assert (await load_web_load(app.postgres)).processes == 0


@pytest.mark.parametrize(
    ("event", "reason"),
    [({"took_s": 0.9}, "holds"), ({"status": 503}, "refusals"), ({"status": 409}, "")],
    ids=["slow holds", "busy", "seats taken"],
)
async def test_the_rate_follows_what_the_processes_measure(
    app: App, a_show: ShowMaker, event: dict[str, Any], reason: str
) -> None:
    room = await admitting(app, await a_show())
    process = WebProcess(app)
    await process.report()
    for _ in range(3):
        process.answer_hold(**event)
    await process.report()

    await room.step()

    assert await rate_of(room) == (300 if reason else 600, reason)
    page = await room.editor.load(room.show_id)
    assert page.held_back_by == reason


async def test_a_flood_without_passes_does_not_hide_that_holds_are_slow(app: App, a_show: ShowMaker) -> None:
    room = await admitting(app, await a_show())
    process = WebProcess(app)
    await process.report()
    for _ in range(500):
        process.answer_hold(took_s=0.001, status=403)
    for _ in range(10):
        process.answer_hold(took_s=2)
    await process.report()

    await room.step()

    assert await rate_of(room) == (300, "holds")


async def test_payments_in_flight_hold_the_rate_back(app: App, a_show: ShowMaker) -> None:
    room = await admitting(app, await a_show())
    process = WebProcess(app)
    process.meter.set("gateway_calls", 60)
    await process.report()

    await room.step()

    assert await rate_of(room) == (300, "payments")


async def test_without_any_report_the_rate_falls_to_its_least(app: App, a_show: ShowMaker) -> None:
    room = await admitting(app, await a_show())

    for _ in range(6):
        await room.step()

    assert await rate_of(room) == (30, "unmeasured")


async def test_a_process_that_falls_silent_stops_the_growth_until_it_is_gone(
    app: App, a_show: ShowMaker
) -> None:
    room = await admitting(app, await a_show())
    await app.postgres.execute("UPDATE queue SET rate = 60 WHERE show_id = $1", room.show_id)
    stuck, well = WebProcess(app), WebProcess(app)
    await stuck.report()
    await app.postgres.execute(AGE, 8)
    await well.report()

    await room.step()
    assert await rate_of(room) == (60, "silence")
    await app.postgres.execute(AGE, 8)
    await well.report()
    await room.step()

    assert await rate_of(room) == (120, "")


class TestDemand:
    """A room opens by itself above a number for the whole house, not for one process."""

    async def test_holds_of_all_processes_together_open_it(self, app: App, a_show: ShowMaker) -> None:
        room = await a_room(app, await a_show(), is_open=False, opens_above_holds_per_second=10)
        await room.refresh()

        await self.report_holds(room, 5, 5)
        await room.step()
        assert await self.state(room) is RoomState.SCHEDULED
        await self.report_holds(room, 5, 6)
        await room.step()

        assert await self.state(room) is RoomState.ADMITTING

    async def test_viewers_of_all_processes_together_open_it(self, app: App, a_show: ShowMaker) -> None:
        room = await a_room(app, await a_show(), is_open=False, opens_above_viewers=100)
        await room.refresh()
        processes = [WebProcess(app), WebProcess(app)]

        for viewers in (50, 51):
            processes[0].viewers, processes[1].viewers = 50, viewers
            for process in processes:
                await process.report()
            await room.step()

            assert await self.state(room) is (RoomState.SCHEDULED if viewers == 50 else RoomState.ADMITTING)

    async def test_a_room_that_opens_by_viewers_is_not_opened_by_a_hold(
        self, app: App, a_show: ShowMaker
    ) -> None:
        room = await a_room(app, await a_show(), is_open=False, opens_above_viewers=100)
        await room.refresh()

        await app.waiting_rooms.guard.require(room.show_id, 1, "")

        assert await self.state(room) is RoomState.SCHEDULED
        assert app.waiting_rooms.guard.holds_seen[room.show_id] == 1

    async def test_old_reports_open_nothing(self, app: App, a_show: ShowMaker) -> None:
        room = await a_room(app, await a_show(), is_open=False, opens_above_holds_per_second=1)
        await self.report_holds(room, 50)
        await app.postgres.execute(AGE, 5)

        await room.step()

        assert await self.state(room) is RoomState.SCHEDULED

    async def report_holds(self, room: Room, *per_second: int) -> None:
        await room.app.postgres.execute("DELETE FROM web_load")
        for number, holds in enumerate(per_second):
            await room.app.postgres.execute(
                "INSERT INTO web_load (process, holds, slow_holds, refused, payments, payments_max, shows,"
                " show_holds, show_viewers) VALUES ($1, 0, 0, 0, 0, 64, $2, $3, '{0}')",
                *(str(number), [room.show_id], [holds]),
            )

    async def state(self, room: Room) -> RoomState:
        await room.refresh()
        status = await room.app.waiting_rooms.status(room.show_id)
        assert status is not None
        return status.state


def test_the_routes_that_hold_seats_have_these_names() -> None:
    assert set(HOLD_ROUTES) <= {route.name for route in ROUTES if route.method == "POST"}
