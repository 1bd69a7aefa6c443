"""Everything in one file, and back: all tables at one instant, secrets and settings."""

from holdfast.backup.mark import (
    BEAT_PAUSE_S,
    LedgerMark,
    find_other_ledger,
    find_restore,
    refuse_older_ledger,
    refuse_other_ledger,
    take_redis_over,
)
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
    "find_other_ledger",
    "find_restore",
    "finish_restore",
    "refuse_older_ledger",
    "refuse_other_ledger",
    "restore",
    "take_redis_over",
    "verify",
]
