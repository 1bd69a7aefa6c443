"""Records scans that a device decided offline: one transaction each, under the lock of the ticket.

The lock is the one that gates, refunds and transfers take: a scan that is uploaded while the ticket is
scanned elsewhere sees that scan, or is seen by it.
"""

from typing import Any

import msgspec

from holdfast.checkin.scan import OfflineScan, Verdict, to_utc
from holdfast.checkin.upload_rules import (
    PastScan,
    ScannedTicket,
    UploadedClaim,
    UploadEffect,
    judge,
    scan_ids,
    stored_as,
)
from holdfast.engines.postgres import Queries, Row, Transaction
from holdfast.tickets import Ticket

Q = Queries("holdfast.checkin", "upload")


async def record_upload(
    tx: Transaction, account_id: int, scan: OfflineScan, ticket: Ticket, grace_s: float
) -> tuple[int, str | None] | None:
    """(id of the check-in, conflict); None: no pass covers the show. A scan that is there already stays."""
    place = ticket.show_id, ticket.serial
    gate_pass = await tx.fetchrow(
        Q.pass_for_upload, account_id, ticket.show_id, to_utc(scan.scanned_at), grace_s
    )
    if gate_pass is None:
        return None
    row = await tx.fetchrow(Q.lock_ticket, *place)
    locked = ScannedTicket(**row) if row else None
    rows = await tx.fetch(
        Q.known_scans, ticket.show_id, gate_pass["pass_id"], scan_ids(scan.scan_id, ticket.serial)
    )
    known = {one["scan_id"]: (one["serial"], Verdict(one["verdict"])) for one in rows}
    scan_id, is_known = stored_as(scan.scan_id, ticket.serial, scan.verdict, known)
    if is_known:
        check_in_id = next(one["id"] for one in rows if one["scan_id"] == scan_id)
        return check_in_id, await tx.fetchval(Q.conflict_of, ticket.show_id, check_in_id)
    check_in_id = await tx.fetchval(
        Q.add_scan,
        *(ticket.show_id, gate_pass["pass_id"], scan_id, gate_pass["gate"], scan.way, scan.verdict),
        *(ticket.serial, ticket.edition, gate_pass["scanned_at"]),
    )
    history = [
        PastScan(one["id"], Verdict(one["verdict"]), one["scanned_at"], one["is_undone"])
        for one in await tx.fetch(Q.history, *place, check_in_id)
    ]
    effect = judge(UploadedClaim(scan.verdict, gate_pass["scanned_at"], ticket.edition), locked, history)
    await _raise_conflict(tx, place, check_in_id, locked, effect)
    if locked is not None and not locked.is_void:
        await _move(tx, place, locked, scan.verdict, gate_pass, effect)
    return check_in_id, effect.why


async def _raise_conflict(
    tx: Transaction,
    place: tuple[int, int],
    check_in_id: int,
    ticket: ScannedTicket | None,
    effect: UploadEffect,
) -> None:
    if effect.why is None:
        return
    rival_id = effect.rival.id if effect.rival else None
    pair = (check_in_id, rival_id) if effect.is_first else (rival_id, check_in_id)
    await tx.execute(Q.add_conflict, *place, effect.why, *pair)
    body = {"serial": place[1], "why": effect.why}
    await _publish(tx, place[0], ticket.number if ticket else None, "door.conflict_raised", body)


async def _move(
    tx: Transaction,
    place: tuple[int, int],
    ticket: ScannedTicket,
    verdict: Verdict,
    gate_pass: Row,
    effect: UploadEffect,
) -> None:
    at = gate_pass["scanned_at"]
    if effect.is_latest:
        await tx.execute(Q.apply_verdict, *place, verdict, at)
    elif verdict is Verdict.ADMITTED:
        await tx.execute(Q.mark_used, *place, at)
    if verdict is Verdict.ADMITTED and effect.why is None:
        body = {"serial": place[1], "seat": ticket.seat, "gate": gate_pass["gate"], "scanned_at": at}
        await _publish(tx, place[0], ticket.number, "ticket.checked_in", body)


async def _publish(
    tx: Transaction, show_id: int, number: int | None, kind: str, body: dict[str, Any]
) -> None:
    await tx.execute(Q.publish, show_id, number, kind, msgspec.json.encode(body).decode())
