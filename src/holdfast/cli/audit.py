"""What `holdfast audit` does: counts, compares the ends of the audit logs with earlier ones, and prints."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from holdfast.cli import print_json
from holdfast.engines.errors import OperatorError
from holdfast.runtime.exit_codes import EXPECTED

if TYPE_CHECKING:
    from holdfast.app import App
    from holdfast.audit import HouseReport, Report
    from holdfast.audit_log import AuditHead


async def run_audit(app: "App", *, with_map: bool, with_gateway: bool, ends: Path | None) -> "HouseReport":
    """Of the home database and of every pod."""
    from holdfast.audit import AuditedDatabase, audit_house

    databases = {
        name: AuditedDatabase(
            each.postgres,
            each.bookings,
            each.claims if with_map else None,
            each.saga_runner.gateway if with_gateway else None,
        )
        for name, each in app.router.by_name.items()
    }
    house = await audit_house(databases)
    if ends is not None:
        for name, report in house.databases.items():
            file = ends.with_name(f"{ends.name}.{name}") if name else ends
            await compare_ends(app.router.by_name[name], report, file)
    return house


async def add_archive(app: "App", house: "HouseReport", folder: Path) -> None:
    """Of the databases that could be audited."""
    from holdfast.archive import audit_archive
    from holdfast.backup import HouseUrls

    urls = {name: app.router.by_name[name].config.session_url for name in house.databases}
    async with HouseUrls(urls.pop(""), urls).connected() as databases:
        house.archive = await audit_archive(databases, folder)


async def compare_ends(app: "App", report: "Report", file: Path) -> None:
    """Every log still has the entry with which it ended before. If so, the file gets the present ends."""
    from holdfast.audit import Violation

    before = _read_ends(file)
    now = await app.audit_log.heads()
    lost = [
        Violation(
            "audit_log_continues", None, f"log {chain}: entry {head.number} of an earlier audit is gone"
        )
        for chain, head in before.items()
        if not await app.audit_log.has_entry(chain, head)
    ]
    report.note("audit_log_continues", lost)
    if not report.total:
        _write_ends(file, now)


def _read_ends(file: Path) -> "dict[int, AuditHead]":
    from holdfast.audit_log import AuditHead

    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[int, AuditHead]) if file.exists() else {}
    except (msgspec.MsgspecError, OSError) as problem:
        raise OperatorError(f"{file} cannot be read: {problem}; give the file of an earlier audit") from None


def _write_ends(file: Path, ends: "dict[int, AuditHead]") -> None:
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    draft.write_bytes(msgspec.json.encode(ends))
    draft.replace(file)


def exit_code(house: "HouseReport") -> int:
    """0: everything was audited, without violations. 2: no violations, but not everything was audited."""
    if house.total:
        return 1
    return EXPECTED if house.unseen else 0


def show_report(house: "HouseReport", as_json: bool) -> None:
    if as_json:
        print_json(_build_page(house))
        return
    for check, count in house.checks.items():
        print(f"{count:>6}  {check.replace('_', ' ')}")
    for name, report in house.reports:
        for found in report.first():
            where = f", show {found.show_id}" if found.show_id is not None else ""
            pod = f", {name}" if len(house.reports) > 1 else ""
            print(f"violation: {found.check}{pod}{where}: {found.what}")
    if len(house.reports) > 1:
        for name, report in house.reports:
            print(f"{name}: {report.total} violations")
    for name, why in house.unseen.items():
        print(f"{name}: not audited: {why}")
    print(f"{house.total} violations" + (", and not everything was audited" if house.unseen else ""))


def _build_page(house: "HouseReport") -> dict[str, object]:
    has_pods = len(house.reports) > 1
    page: dict[str, object] = {
        "total": house.total,
        "checks": house.checks,
        "violations": [
            asdict(found) | ({"pod": name} if has_pods else {})
            for name, report in house.reports
            for found in report.first()
        ],
    }
    if has_pods or house.unseen:
        page["pods"] = {name: report.checks for name, report in house.reports}
        page["not_audited"] = house.unseen
    return page
