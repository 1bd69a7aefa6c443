"""What a scan that a device decided offline means, when it is uploaded. No I/O.

The scan has happened: it is recorded as uploaded, whatever the ledger thinks of it. These rules find out what
it contradicts, and whether it still says where the visitor is.

    gate A (offline)   admitted 19:02 ──────────────────────────┐ uploaded 19:40
    gate B (offline)             admitted 19:05 ─┐ uploaded 19:30 │
                                                 ▼                ▼
                                          recorded         recorded: B's scan is raised as the second one

Of two admissions the earlier by the devices' clocks is the first. Of three the second and the third are
raised, in whatever order they are uploaded: so a rival that was earlier is looked for first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from holdfast.checkin.scan import OPENING_VERDICTS, Verdict


@dataclass(frozen=True, slots=True)
class PastScan:
    id: int
    verdict: Verdict
    scanned_at: datetime
    is_undone: bool = False  # the gate took it back


@dataclass(frozen=True, slots=True)
class ScannedTicket:
    """The ticket under its lock."""

    number: int
    seat: int
    edition: int
    is_void: bool


@dataclass(frozen=True, slots=True)
class UploadedClaim:
    """What the device says it did."""

    verdict: Verdict
    scanned_at: datetime
    edition: int


@dataclass(frozen=True, slots=True)
class UploadEffect:
    why: str | None = None  # the conflict that is raised
    rival: PastScan | None = None  # the other admission
    is_first: bool = False  # before the rival: then the rival is the second, and the conflict is its
    is_latest: bool = True  # no later scan has decided where the visitor is


def judge(claim: UploadedClaim, ticket: ScannedTicket | None, history: Sequence[PastScan]) -> UploadEffect:
    """`history` has the other scans of the ticket; a `ticket` of None: there is none with this serial."""
    is_latest = not any(
        scan.verdict in OPENING_VERDICTS and scan.scanned_at > claim.scanned_at for scan in history
    )
    if claim.verdict is not Verdict.ADMITTED:
        return UploadEffect(is_latest=is_latest)
    rival = find_rival(claim.scanned_at, history)
    why = None
    if ticket is None:
        why = "unknown"
    elif ticket.is_void:
        why = "void"
    elif rival is not None:
        why = "used"
    elif claim.edition != ticket.edition:
        why = "transferred"
    is_first = why == "used" and rival is not None and rival.scanned_at > claim.scanned_at
    return UploadEffect(why, rival, is_first, is_latest)


def find_rival(at: datetime, history: Sequence[PastScan]) -> PastScan | None:
    """Another admission that stands: not taken back, and without an exit between the two."""
    exits = [scan.scanned_at for scan in history if scan.verdict is Verdict.LEFT]
    rivals = [
        scan
        for scan in history
        if scan.verdict is Verdict.ADMITTED
        and not scan.is_undone
        and not any(min(scan.scanned_at, at) < out <= max(scan.scanned_at, at) for out in exits)
    ]
    return min(rivals, key=lambda scan: (scan.scanned_at > at, abs(scan.scanned_at - at)), default=None)


def scan_ids(scan_id: str, serial: int) -> list[str]:
    """Every id under which this scan may be stored, see `stored_as`."""
    return [scan_id, f"{scan_id}~{serial}", f"{scan_id}~", f"{scan_id}~{serial}~"]


def stored_as(
    scan_id: str, serial: int, verdict: Verdict, known: Mapping[str, tuple[int | None, Verdict]]
) -> tuple[str, bool]:
    """(id under which the scan is stored, whether it is there already).

    A device that restarted its ids uses one again for another ticket: that is another scan. If our answer to
    a scan was lost and the device decided otherwise, both have happened. Each gets an id of its own.
    """
    if scan_id in known and known[scan_id][0] != serial:
        scan_id = f"{scan_id}~{serial}"
    if scan_id in known and known[scan_id][1] is not verdict:
        scan_id = f"{scan_id}~"
    return scan_id, scan_id in known
