"""What `holdfast audit` does: counts, compares the ends of the audit logs with earlier ones, and prints."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from holdfast.cli import print_json
from holdfast.engines.errors import OperatorError

if TYPE_CHECKING:
    from holdfast.app import App
    from holdfast.audit import Report
    from holdfast.audit_log import AuditHead


async def run_audit(app: "App", *, with_map: bool, with_gateway: bool, ends: Path | None) -> "Report":
    from holdfast.audit import audit

    claims, gateway = app.claims if with_map else None, app.saga_runner.gateway if with_gateway else None
    report = await audit(app.postgres, app.bookings, claims, gateway)
    if ends is not None:
        await compare_ends(app, report, ends)
    return report


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


def show_report(report: "Report", as_json: bool) -> None:
    violations = [asdict(violation) for violation in report.first()]
    if as_json:
        print_json({"total": report.total, "checks": report.checks, "violations": violations})
        return
    for check, count in report.checks.items():
        print(f"{count:>6}  {check.replace('_', ' ')}")
    for found in report.first():
        where = f", show {found.show_id}" if found.show_id is not None else ""
        print(f"violation: {found.check}{where}: {found.what}")
    print(f"{report.total} violations")
