"""One run over home and every pod: the audit, the doctor, the gauges of workers (R36)."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.app import App, open_app
from holdfast.audit import HouseReport
from holdfast.background import worker_jobs
from holdfast.cli.audit import exit_code, run_audit
from holdfast.cli.doctor import findings
from holdfast.config import Config
from holdfast.engines.metrics import metrics
from holdfast.pods import PodStore
from holdfast.runtime.check_settings import Finding
from tests.support import shows as cast
from tests.support.cli_process import run_holdfast
from tests.support.own_engines import hold
from tests.support.pod_house import (
    PODS,
    PodHouse,
    a_sold_show,
    environment,
    move,
    other_than,
    sql,
    without_pod,
)
from tests.support.show_fixture import an_owner
from tests.support.wait import until


@pytest.fixture(scope="module")
def house(pod_house: PodHouse) -> PodHouse:
    return pod_house


@pytest.fixture(scope="module")
async def app(house: PodHouse) -> AsyncIterator[App]:
    async with open_app(house.config) as opened:
        yield opened


async def all_receive(app: App) -> bool:
    links = await PodStore(app.postgres).links()
    return all(name in links and links[name].is_active for name in PODS)


async def run(app: App) -> HouseReport:
    return await run_audit(app, with_map=False, with_gateway=False, ends=None)


def found(report: HouseReport) -> set[tuple[str, int | None]]:
    return {(one.check, one.show_id) for _, some in report.reports for one in some.violations}


# As a person with psql: past the guard, which would refuse it.
PLANT_BOOKING = (
    "SELECT set_config('holdfast.copies_show', 'on', false)",
    "INSERT INTO booking (show_id, number, owner_id, fence, state, request_id, body_hash, claim_id, seats,"
    " prices_minor, amount_minor, currency, opened_at, expires_at)"
    " VALUES ($1, 77, 1, 1, 'cancelled', 'planted', 0, 'c', '{1}', '{0}', 0, 'EUR', now(), now())",
    "INSERT INTO booking_move (show_id, number, move, state, fence, at)"
    " VALUES ($1, 77, 'hold', 'cancelled', 1, now() - interval '1 hour')",
    "INSERT INTO outbox (show_id, number, kind, at)"
    " VALUES ($1, 77, 'booking.cancelled', now() - interval '1 hour')",
)


async def look(config: Config, *lines: str) -> dict[str, Finding]:
    return {
        one.what: one for one in [one async for one in findings(config)] if one.what in lines or not lines
    }


class TestAudit:
    """One command counts violations of every database, and those that no single database can see."""

    async def test_a_house_whose_shows_moved_is_clean(self, app: App) -> None:
        """Facts stay in the database where they happened: a moved show has moves and no facts here."""
        show, pod = await a_sold_show(app)
        await a_sold_show(app)
        await move(app, show, other_than(pod))
        await hold(app.router.for_show(show), show, an_owner(), 3)
        await move(app, show, "")

        report = await run(app)

        assert found(report) == set()
        assert report.unseen == {}
        assert set(report.databases) == {"", *PODS}
        assert exit_code(report) == 0

    async def test_a_violation_names_its_pod_and_counts_in_the_sum(self, app: App, house: PodHouse) -> None:
        show, pod = await a_sold_show(app)
        take = "UPDATE owner_count SET seats = seats {} 1 WHERE show_id = $1"
        await sql(house, pod, take.format("+"), show=show)

        report = await run(app)
        await sql(house, pod, take.format("-"), show=show)

        assert [report.databases[name].total for name in (pod, other_than(pod), "")] == [2, 0, 0]
        assert report.checks["no_owner_over_the_limit"] == report.total == 2

    async def test_a_show_of_two_ledgers_and_one_of_none(self, app: App, house: PodHouse) -> None:
        show, pod = await a_sold_show(app)
        other = other_than(pod)
        claim = "UPDATE show_pod SET pod = '{}' WHERE show_id = $1"
        await sql(house, other, claim.format(other), show=show)
        twice = await run(app)
        await sql(house, other, claim.format(pod), show=show)

        await sql(house, pod, "SELECT fence_show($1, 1)", show=show)
        fenced = await run(app)
        await sql(house, pod, "DELETE FROM show_copy WHERE show_id = $1", show=show)

        assert ("one_owner_per_show", show) in found(twice)
        assert found(twice) >= {("epochs_as_in_the_directory", show), ("copies_equal_home", None)}
        assert found(fenced) == {("one_owner_per_show", show)}
        assert exit_code(fenced) == 1

    async def test_rows_of_a_show_in_a_database_that_does_not_sell_it(
        self, app: App, house: PodHouse
    ) -> None:
        show, pod = await a_sold_show(app)
        other = other_than(pod)
        await sql(house, other, *PLANT_BOOKING, show=show)

        report = await run(app)
        await move(app, show, pod)  # removes what is left elsewhere
        await sql(house, other, "DELETE FROM outbox WHERE show_id = $1", show=show)

        assert found(report) == {("rows_where_the_show_is_sold", show)}
        assert found(await run(app)) == set()

    async def test_a_copy_that_differs_although_everything_has_arrived(
        self, app: App, house: PodHouse
    ) -> None:
        show, pod = await a_sold_show(app)
        change = "UPDATE price SET price_minor = price_minor {} 5 WHERE show_id = $1"
        await sql(house, pod, change.format("+"), show=show)

        report = await run(app)
        await sql(house, pod, change.format("-"), show=show)

        (violation,) = report.between.violations
        assert violation.check == "copies_equal_home"
        assert f"{pod}: price" in violation.what

    async def test_copies_that_cannot_be_judged_are_not_called_clean(self, app: App, house: PodHouse) -> None:
        await sql(house, "west", "ALTER SUBSCRIPTION holdfast_home DISABLE")
        await cast.a_show(app, 10, price_minor=0)

        report = await run(app)
        await sql(house, "west", "ALTER SUBSCRIPTION holdfast_home ENABLE")

        assert "copies of west" in report.unseen
        assert exit_code(report) != 0
        await until(lambda: is_clean(app))

    async def test_a_pod_that_is_down_is_named_and_the_exit_code_is_not_clean(
        self, house: PodHouse, tmp_path: Path
    ) -> None:
        ended = await run_holdfast("audit", "--json", **environment(without_pod(house.config, "east")))
        printed = await run_holdfast("audit", **environment(without_pod(house.config, "east")))

        assert ended.code == printed.code == 2, ended.words
        assert ended.page["total"] == 0
        assert ended.page["not_audited"] == {"east": "cannot be reached"}
        assert set(ended.page["pods"]) == {"home", "west", "house"}
        assert "east: not audited: cannot be reached" in printed.output


async def is_clean(app: App) -> bool:
    return exit_code(await run(app)) == 0


class TestDoctor:
    """Every pod has the lines of an installation, and the links between databases have their own."""

    async def test_a_house_is_looked_at_with_all_its_databases(self, house: PodHouse) -> None:
        found = await look(house.config)

        for line in ("ledger", "holds", "standbys", "clock of ledger", "migrations", "workers", "backup"):
            assert {f"east: {line}", f"west: {line}", line} <= found.keys()
        fit = ("ledger", "holds", "migrations", "replication", "subscription")
        assert {found[f"{pod}: {line}"].health for pod in PODS for line in fit} == {"ok"}
        assert found["log for pods"].health == "warn"
        assert "max_slot_wal_keep_size" in found["log for pods"].fix
        assert [one for one in found.values() if one.health != "ok" and not one.fix] == []

    async def test_a_pod_that_is_down_and_one_that_is_not_named(self, house: PodHouse) -> None:
        down = await look(
            without_pod(house.config, "east"), "east: ledger", "west: ledger", "east: replication"
        )
        pods = " ".join(one for one in house.config.pods.split() if not one.startswith("west="))
        unnamed = await look(replace(house.config, pods=pods), "west: pod")

        assert [one.health for one in down.values()] == ["fail", "ok", "ok"]
        assert "HOLDFAST_PODS" in down["east: ledger"].fix
        assert unnamed["west: pod"].health == "fail"

    async def test_a_pod_that_does_not_receive_and_a_show_that_a_dead_mover_left(
        self, app: App, house: PodHouse
    ) -> None:
        show, pod = await a_sold_show(app)
        await sql(
            house,
            pod,
            "SELECT fence_show($1, 1)",
            "UPDATE show_copy SET changed_at = now() - interval '1 hour' WHERE show_id = $1",
            "ALTER SUBSCRIPTION holdfast_home DISABLE",
            show=show,
        )
        lines = tuple(f"{pod}: {line}" for line in ("replication", "subscription", "fenced shows"))

        async def is_reported() -> bool:
            found = await look(house.config, *lines)
            return [one.health for one in found.values()] == ["fail"] * 3

        await until(is_reported)
        await sql(house, pod, "ALTER SUBSCRIPTION holdfast_home ENABLE")
        await move(app, show, pod)  # to where it is: the fence is taken away

        async def is_mended() -> bool:
            found = await look(house.config, *lines)
            return [one.health for one in found.values()] == ["ok"] * 2

        await until(is_mended)
        await hold(app.router.for_show(show), show, an_owner(), 5)


class TestGauges:
    async def test_each_pod_has_a_series_of_its_own(self, app: App, house: PodHouse) -> None:
        """Without a label, the ledgers of a worker would take turns in one series."""
        await until(lambda: all_receive(app))  # also pods that another test has cut off a moment ago
        # A worker of other files may have the turn, and have measured while a pod was cut off.
        await app.postgres.execute("UPDATE job_turn SET due_at = now() WHERE name = 'PodGauge.look'")
        by_name = {job.__qualname__: job for _, job in worker_jobs(app)}
        assert "PodGauge.look" in by_name
        for _, job in worker_jobs(app):
            if job.__qualname__ in (
                "StandbyGauge.look",
                "BackupGauge.look",
                "PodGauge.look",
                "OversoldGauge.count",
            ):
                await job()

        lines = metrics.text().decode().splitlines()

        for series in ("oversold_seats", "ledger_standbys", "backup_age_max_seconds"):
            for pod in ("home", *PODS):
                assert any(line.startswith(f'holdfast_{series}{{pod="{pod}"}}') for line in lines), series
        for pod in PODS:
            assert f'holdfast_pod_cut_off{{pod="{pod}"}} 0.0' in lines
            assert f'holdfast_fenced_shows{{pod="{pod}"}} 0.0' in lines
