"""Past shows in Parquet files: whole, verified before anything is deleted, and audited like the ledger."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import asyncpg
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.app import App
from holdfast.archive import Archived, Archiver, audit_archive, files
from holdfast.archive.contents import TABLES
from holdfast.archive.store import load_manifest
from holdfast.audit import Report
from holdfast.bookings.errors import SaleArchived
from holdfast.cli.audit import run_audit
from holdfast.engines.errors import OperatorError
from holdfast.organisers.show_forms import ShowChange
from holdfast.web.caller import Scope
from tests.support import shows as cast
from tests.support.cli_process import run_holdfast, start_holdfast
from tests.support.opened import open_app
from tests.support.paid_bookings import a_refund, bought, refund_jobs
from tests.support.pod_house import PODS, PodHouse, environment, fetch, sql, wait_for_show
from tests.support.wait import until

AFTER_D = 800
# The show ended three years ago, retention has reduced it, and every consumer has read its facts.
PASS_YEARS = (
    "UPDATE show SET opens_at = opens_at - interval '3 years', closes_at = closes_at - interval '3 years',"
    " starts_at = starts_at - interval '3 years', ends_at = ends_at - interval '3 years' WHERE id = $1",
    "UPDATE sale SET opens_at = opens_at - interval '3 years', closes_at = closes_at - interval '3 years'"
    " WHERE show_id = $1",
)
REDUCE = (
    "SELECT archive_past_sales(400, 100000)",
    "DELETE FROM outbox",
    "UPDATE fact_log SET purged_until = clock_timestamp()",
)
PERSONAL = ("fan@", "a-private-note", "fingerprint")


@pytest.fixture
async def ledger(app: App) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(app.config.database_url)
    yield connection
    await connection.execute(
        "UPDATE sale SET filed_at = NULL, filed_as = NULL"
    )  # each test has its own folder
    await connection.close()


async def sell(app: App, show: int) -> None:
    """Two bookings; one is given back."""
    await bought(app, show, 1, 2)
    returned = await bought(app, show, 3, 4)
    await app.refunds.decide(a_refund(returned, note="a-private-note"))
    await refund_jobs(app).carry_out()
    for statement in (
        "UPDATE payment SET card = 'fingerprint' WHERE show_id = $1",
        "UPDATE ticket SET owner_email = 'fan@example.com' WHERE show_id = $1 AND voided_at IS NULL",
    ):
        await app.postgres.execute(statement, show)


async def a_past_show(app: App) -> int:
    show = await cast.a_show(app, 20)
    await sell(app, show)
    for statement in PASS_YEARS:
        await app.postgres.execute(statement, show)
    for statement in REDUCE:
        await app.postgres.execute(statement)
    return show


async def count_rows(app: App, show: int) -> dict[str, int]:
    counts = {}
    for table in TABLES:
        query = f"SELECT count(*) FROM {table} WHERE show_id = $1"  # noqa: S608  # a table of our schema
        counts[table] = await app.postgres.fetchval(query, show)
    return counts


async def archive(connection: asyncpg.Connection, folder: Path, *, deletes: bool = True) -> list[Archived]:
    done: list[Archived] = []
    await Archiver({"": connection}, folder, "test").run(AFTER_D, 100, deletes=deletes, note=done.append)
    return done


def place_of(folder: Path, show: int) -> Path:
    (place,) = folder.glob(f"*/show-{show}")
    return place


def violations(report: Report) -> set[str]:
    return {one.check for one in report.violations}


class TestArchive:
    async def test_rows_are_in_files_and_no_longer_in_the_ledger(
        self, app: App, ledger: asyncpg.Connection, tmp_path: Path
    ) -> None:
        show, open_show = await a_past_show(app), await cast.a_show(app, 10)
        await bought(app, open_show, 1)
        before = await count_rows(app, show)

        (done,) = await archive(ledger, tmp_path)

        place = place_of(tmp_path, show)
        rows = {table: pq.read_metadata(place / f"{table}.parquet").num_rows for table in TABLES}
        assert (done.show_id, done.rows, rows) == (show, sum(before.values()), before)
        assert before["ticket"] == 4
        assert set((await count_rows(app, show)).values()) == {0}
        assert (await count_rows(app, open_show))["booking"] == 1
        assert violations(await audit_archive({"": ledger}, tmp_path)) == set()
        house = await run_audit(app, with_map=False, with_gateway=False, ends=None)
        assert house.first() == []
        assert await archive(ledger, tmp_path) == []

    async def test_the_files_have_no_personal_data(
        self, app: App, ledger: asyncpg.Connection, tmp_path: Path
    ) -> None:
        show = await a_past_show(app)
        await archive(ledger, tmp_path)

        place = place_of(tmp_path, show)
        text = "".join(str(pq.read_table(file).to_pylist()) for file in place.glob("*.parquet"))
        assert "confirmed" in text
        assert [word for word in PERSONAL if word in text] == []

    async def test_a_show_that_changed_after_its_files_were_written_stays(
        self, app: App, ledger: asyncpg.Connection, tmp_path: Path
    ) -> None:
        show = await a_past_show(app)
        await archive(ledger, tmp_path, deletes=False)
        await ledger.execute("UPDATE ticket SET used_at = now() WHERE show_id = $1 AND seat = 1", show)

        await archive(ledger, tmp_path)  # writes them again

        tickets = pq.read_table(place_of(tmp_path, show) / "ticket.parquet").to_pylist()
        assert [row["seat"] for row in tickets if row["used_at"]] == [1]
        assert set((await count_rows(app, show)).values()) == {0}

    async def test_what_is_under_way_is_not_archived(
        self, app: App, ledger: asyncpg.Connection, tmp_path: Path
    ) -> None:
        show = await a_past_show(app)
        await ledger.execute(
            "UPDATE refund SET state = 'requested', due_at = now(), done_at = NULL WHERE show_id = $1", show
        )
        assert await archive(ledger, tmp_path) == []
        await ledger.execute("UPDATE refund SET state = 'done', due_at = NULL WHERE show_id = $1", show)
        assert len(await archive(ledger, tmp_path)) == 1

    async def test_a_file_that_is_not_what_was_written_deletes_nothing(
        self, app: App, ledger: asyncpg.Connection, tmp_path: Path
    ) -> None:
        show = await a_past_show(app)
        await archive(ledger, tmp_path, deletes=False)
        file = place_of(tmp_path, show) / "journal.parquet"
        whole = file.read_bytes()
        file.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])

        with pytest.raises(OperatorError, match=r"journal\.parquet"):
            await archive(ledger, tmp_path)
        assert (await count_rows(app, show))["booking"] == 2
        assert violations(await audit_archive({"": ledger}, tmp_path)) == {"archive_files_are_whole"}
        file.write_bytes(whole)
        await archive(ledger, tmp_path)

    async def test_its_sale_cannot_be_opened_again(
        self, app: App, ledger: asyncpg.Connection, tmp_path: Path
    ) -> None:
        show = await a_past_show(app)
        await archive(ledger, tmp_path)
        now = datetime.now(UTC)
        change = ShowChange(
            starts_at=now + timedelta(days=1),
            ends_at=now + timedelta(days=2),
            closes_at=now + timedelta(hours=9),
        )

        with pytest.raises(SaleArchived):
            await app.show_editor(Scope(1, True)).change_show(show, change)

    async def test_an_archive_without_shows_can_be_audited(self, app: App, tmp_path: Path) -> None:
        """Of a young house: the nightly jobs of both must not fail until the first show is old enough."""
        env = {**environment(app.config), "HOLDFAST_ARCHIVE_AFTER_D": "100000"}
        folder = str(tmp_path / "srv" / "files")

        ended = await run_holdfast("archive", folder, "--json", **env)
        audited = await run_holdfast("audit", "--archive", folder, **env)

        assert (ended.code, ended.page) == (0, {"shows": []})
        assert audited.code == 0, audited.output

    async def test_killed_at_any_step_it_goes_on(self, app: App, tmp_path: Path) -> None:
        """The next run completes what a killed one has begun, and nothing is lost in between."""
        shows = [await a_past_show(app) for _ in range(3)]
        before = sum([sum((await count_rows(app, show)).values()) for show in shows])
        config = replace(app.config, data_dir=str(tmp_path))
        words = ("archive", str(tmp_path / "files"), "--json")
        for pattern in ("*/show-*.draft", "*/show-*/manifest.json"):
            process = await start_holdfast(*words, **environment(config))
            await until(partial(asyncio.to_thread, has_any, tmp_path / "files", pattern))
            process.kill()
            await process.communicate()

        ended = await run_holdfast(*words, **environment(config))
        audited = await run_holdfast("audit", "--archive", str(tmp_path / "files"), **environment(config))

        assert ended.code == 0, ended.words
        rows = [
            pq.read_metadata(file).num_rows
            for file in (tmp_path / "files").glob("*/show-*/*.parquet")
            if file.stem != "sale"
        ]
        assert sum(rows) == before
        assert [sum((await count_rows(app, show)).values()) for show in shows] == [0, 0, 0]
        assert not list((tmp_path / "files").glob("*/*.draft"))
        assert audited.code == 0, audited.output
        assert "archive: 0 violations" in audited.output


def has_any(folder: Path, pattern: str) -> bool:
    return any(folder.glob(pattern))


# What a person with a tool could do to the rows of a file: (table, column, value).
PLANTS = {
    "amounts_add_up": ("booking", "amount_minor", 1),
    "one_ticket_per_seat": ("ticket", "seat", 9),
    "every_entry_balances": ("journal", "amount_minor", 5),
    "no_more_back_than_came": ("refund", "amount_minor", 7),
    "paid_what_it_costs": ("payment", "step", "declined"),
    "every_move_recorded": ("booking_move", "state", "held"),
}


class TestAuditOfFiles:
    """The files are wrong, and their sums are right: the invariants are counted in the rows themselves."""

    @pytest.mark.parametrize("check", PLANTS)
    async def test_what_must_never_be_is_found(
        self, check: str, app: App, ledger: asyncpg.Connection, tmp_path: Path
    ) -> None:
        show = await a_past_show(app)
        table, column, value = PLANTS[check]
        await archive(ledger, tmp_path, deletes=False)
        place = place_of(tmp_path, show)
        forge(place, table, column, value)

        report = await audit_archive({"": ledger}, tmp_path)

        assert check in violations(report)
        assert "archive_files_are_whole" not in violations(report)
        await ledger.execute("UPDATE sale SET purged_at = NULL WHERE show_id = $1", show)


def forge(place: Path, table: str, column: str, value: object) -> None:
    """Every row, and a manifest to match."""
    file = place / f"{table}.parquet"
    rows = pq.read_table(file)
    forged = pa.array([value] * rows.num_rows, rows.schema.field(column).type)
    pq.write_table(rows.set_column(rows.schema.get_field_index(column), column, forged), file)
    manifest = load_manifest(place)
    count, content = files.sum_content(file)
    changed = msgspec.structs.replace(
        manifest.tables[table], rows=count, sha256=files.sum_file(file), content=content
    )
    tables = manifest.tables | {table: changed}
    (place / "manifest.json").write_bytes(
        msgspec.json.encode(msgspec.structs.replace(manifest, tables=tables))
    )


class TestPods:
    @pytest.mark.parametrize("is_killed", [False, True])
    async def test_a_show_of_a_pod_is_marked_at_home_and_deleted_in_its_pod(
        self, is_killed: bool, pod_house: PodHouse, tmp_path: Path
    ) -> None:
        """Also if an earlier run was killed after the mark, and before the pod deleted anything."""
        house = pod_house
        async with open_app(house.config) as app:
            show = await cast.a_show(app, 20)
            pod = await wait_for_show(app, show)
            await sell(pod, show)
            name = app.router.directory.pod_of(show)
            await sql(house, "", *PASS_YEARS, show=show)
            await until(lambda: is_past(house, name, show))
            await sql(house, name, *REDUCE)

        if is_killed:
            await run_holdfast("archive", str(tmp_path), "--no-delete", **environment(house.config))
            manifest = files.sum_file(place_of(tmp_path, show) / "manifest.json")
            await sql(house, "", f"SELECT file_sale($1, '{manifest}')", show=show)
            await until(partial(is_filed, house, name, show))
        ended = await run_holdfast("archive", str(tmp_path), "--json", **environment(house.config))
        audited = await run_holdfast(
            "audit", "--archive", str(tmp_path), "--json", **environment(house.config)
        )

        assert ended.code == 0, ended.words
        assert [one["show_id"] for one in ended.page["shows"]] == ([] if is_killed else [show])
        assert name in PODS
        for database in ("", name):
            assert await is_filed(house, database, show)
        bookings = await fetch(house, name, "SELECT show_id FROM booking")
        assert show not in {row["show_id"] for row in bookings}
        assert (audited.code, audited.page["violations"]) == (0, [])
        await sql(house, "", "SELECT unfile_sale($1)", show=show)  # the next test has its own folder


async def is_filed(house: PodHouse, pod: str, show: int) -> bool:
    rows = await fetch(house, pod, "SELECT show_id FROM sale WHERE filed_at IS NOT NULL")
    return show in {row["show_id"] for row in rows}


async def is_past(house: PodHouse, pod: str, show: int) -> bool:
    rows = await fetch(house, pod, "SELECT show_id FROM sale WHERE closes_at < now()")
    return show in {row["show_id"] for row in rows}
