"""Scans at the door and their verdicts. No I/O."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

SCANS_MAX = 200  # in one upload


class Way(StrEnum):
    ENTRY = "entry"
    EXIT = "exit"


class Verdict(StrEnum):
    """Of one scan. The same words are in the constraint known_verdicts."""

    ADMITTED = "admitted"
    LEFT = "left"  # scanned out; may come in again, if the show lets them
    UNKNOWN = "unknown"  # not one of our tickets
    WRONG_SHOW = "wrong_show"
    VOID = "void"  # given back; or suspended, see SUSPENDED_TEXT
    TRANSFERRED = "transferred"  # another person has it now
    USED = "used"  # a visitor is inside with it
    STALE_CODE = "stale_code"  # a picture of a live code, or another phone's
    LIVE_CODE_NEEDED = "live_code_needed"  # on paper, where the show wants phones
    NOT_INSIDE = "not_inside"  # scanned out, and never in
    LOST_IN_RESTORE = "lost_in_restore"  # signed by us, but sold before the ledger was restored
    REVOKED_CODE = "revoked_code"  # of a key that was revoked; its owner has a new code
    UNDONE = "undone"


VERDICT_TEXTS = {
    Verdict.ADMITTED: "Welcome",
    Verdict.LEFT: "Scanned out",
    Verdict.UNKNOWN: "Not one of our tickets",
    Verdict.WRONG_SHOW: "For another show",
    Verdict.VOID: "Given back",
    Verdict.TRANSFERRED: "Transferred to another person",
    Verdict.USED: "Used already",
    Verdict.STALE_CODE: "An old picture, or another phone's",
    Verdict.LIVE_CODE_NEEDED: "Only the live code on a phone",
    Verdict.NOT_INSIDE: "Not inside",
    Verdict.LOST_IN_RESTORE: "No longer valid: issued before the ledger was restored",
    Verdict.REVOKED_CODE: "Replaced by a new code: open the ticket again",
    Verdict.UNDONE: "Undone",
}
# Of a void ticket that was not given back: its payment is disputed. Not a verdict of its own: scanners of the
# first release take an answer with a reason that they do not know for none, and let their pack decide.
SUSPENDED_TEXT = "Suspended, the payment is disputed: do not let in, send to the box office"
OPENING_VERDICTS = (Verdict.ADMITTED, Verdict.LEFT)


def describe_verdict(verdict: Verdict, *, is_suspended: bool) -> str:
    return SUSPENDED_TEXT if is_suspended else VERDICT_TEXTS[verdict]


ScanId = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._:-]+$(?!\n)")]
CodeText = Annotated[str, Meta(max_length=500)]
TicketId = Annotated[str, Meta(max_length=40)]
Moment = Annotated[datetime, Meta(tz=True)]


class CheckInBody(Struct, forbid_unknown_fields=True, frozen=True):
    """Either `code`, as scanned, or `ticket`, found by name or reference."""

    scan_id: ScanId  # made up by the device: the same id is the same scan, and gets the same answer
    code: CodeText | None = None
    ticket: TicketId | None = None
    way: Way = Way.ENTRY


class UndoBody(Struct, forbid_unknown_fields=True, frozen=True):
    scan_id: ScanId


class CheckInPage(Struct, frozen=True, omit_defaults=True):
    """`verdict` is admitted, left, undone or refused; `reason` says why, `first_at` who was before."""

    verdict: str
    words: str
    check_in_id: str
    gate: str
    scanned_at: datetime
    reason: Verdict | None = None
    show_id: int | None = None
    seat: str | None = None
    section: str | None = None
    category: str | None = None
    reference: str | None = None
    first_at: datetime | None = None  # of who came in with this ticket before
    first_gate: str | None = None
    other_show: str | None = None  # what the ticket is for, when it is not for here
    is_suspended: bool = False  # of reason void: not given back, its payment is disputed


class OfflineScan(Struct, forbid_unknown_fields=True, frozen=True):
    scan_id: ScanId
    code: CodeText
    verdict: Verdict  # the device's decision
    scanned_at: Moment  # by the device's clock
    way: Way = Way.ENTRY


class UploadBody(Struct, forbid_unknown_fields=True, frozen=True):
    scans: Annotated[list[OfflineScan], Meta(min_length=1, max_length=SCANS_MAX)]


class UploadedScan(Struct, frozen=True, omit_defaults=True):
    scan_id: str
    recorded: bool
    conflict: str | None = None  # used, void, transferred, unknown: it should not have been let in
    check_in_id: str | None = None  # to undo it by; absent where nothing was recorded


class UploadPage(Struct, frozen=True):
    scans: list[UploadedScan]  # as they were sent
    conflicts: int


class GateCount(Struct, frozen=True):
    gate: str
    admitted: int
    left: int
    undone: int
    refused: int


class ShowCount(Struct, frozen=True):
    show_id: int
    title: str
    tickets: int
    used: int
    inside: int
    conflicts: int
    gates: list[GateCount]


class CountPage(Struct, frozen=True):
    shows: list[ShowCount]


class FoundTicket(Struct, frozen=True):
    """As little as tells two people apart."""

    ticket_id: str
    show_id: int
    reference: str
    seat: str
    initials: str
    standing: str


class FoundPage(Struct, frozen=True):
    tickets: list[FoundTicket]


def to_utc(at: datetime) -> datetime:
    """The same moment; the last one there is, where a device says something beyond our calendar."""
    try:
        return at.astimezone(UTC)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if at.year > 1 else datetime.min.replace(tzinfo=UTC)


def initials(name: str) -> str:
    """Ann Mary Kumar → A. M. K."""
    return " ".join(f"{word[0].upper()}." for word in name.split()[:3])
