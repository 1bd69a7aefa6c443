"""What the archive has of a past show, and what it leaves out. No I/O.

    FOLDER/2024-11/show-123/booking.parquet …      one file per table
                            manifest.json          rows and sums of each file

People are in it by the numbers of their accounts alone: no name, address, card, free text or device. The
number of an erased account leads to no one, so that nothing in these files has to be erased.
"""

from datetime import datetime

import msgspec

MANIFEST = "manifest.json"
FORM = 1
# Deleted from the ledger when their files are verified. Reports, invoices and the draw of a queue stay there.
TABLES = (
    *("booking", "booking_move", "seat_block"),
    *("payment", "refund", "refund_proposal", "chargeback", "journal"),
    *("ticket", "ticket_transfer", "check_in", "check_in_conflict"),
)
SALE = "sale"  # copied, for the audit of the files; it stays

# Of a person, or written by one; and what only a running sale needs.
LEFT_OUT = {
    "booking": {"request_id", "body_hash", "claim_id", "note"},
    "payment": {
        *("request_id", "body_hash", "method", "return_url", "card", "action_url", "client_secret", "reason"),
        "code",
    },
    "refund": {"note", "reason"},
    "refund_proposal": {"note", "decided_note"},
    "ticket": {"owner_email", "phone"},
    "ticket_transfer": {"email"},
    "check_in": {"scan_id"},
}
# That there is a note decides about the money; what it says is a person's text.
EMPTIED = {("refund", "settled_note")}


class ArchivedTable(msgspec.Struct, frozen=True):
    rows: int
    sha256: str  # of the file
    content: str  # SHA-256 of the rows, as written and as read back
    rows_sum: str  # of the ledger's rows, by PostgreSQL: whether they have changed since


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    form: int
    program: str  # its version
    show_id: int
    ends_at: datetime
    pod: str  # whose database had the rows; empty: home
    written_at: datetime
    tables: dict[str, ArchivedTable]

    @property
    def rows(self) -> int:
        return sum(table.rows for name, table in self.tables.items() if name != SALE)


def place_of(show_id: int, ends_at: datetime) -> str:
    """The folder of a show."""
    return f"{ends_at:%Y-%m}/show-{show_id}"
