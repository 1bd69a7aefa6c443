"""Everything in one file, and back: all tables at one instant, secrets and settings."""

from holdfast.backup.mark import BEAT_PAUSE_S, LedgerMark, find_restore, refuse_older_ledger
from holdfast.backup.store import (
    BackupContents,
    ExtraFile,
    create,
    extra_parts,
    finish_restore,
    restore,
    verify,
)

__all__ = [
    "BEAT_PAUSE_S",
    "BackupContents",
    "ExtraFile",
    "LedgerMark",
    "create",
    "extra_parts",
    "find_restore",
    "finish_restore",
    "refuse_older_ledger",
    "restore",
    "verify",
]
