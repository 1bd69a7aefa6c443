"""Everything in one file, and back: all tables at one instant, secrets and settings."""

from holdfast.backup.house import HouseUrls, create_house, name_moment, restore_house
from holdfast.backup.mark import (
    BEAT_PAUSE_S,
    LedgerMark,
    find_other_ledger,
    find_restore,
    refuse_older_ledger,
    refuse_other_ledger,
    take_redis_over,
)
from holdfast.backup.record import BackupGauge, load_backup_age, record_backup
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
    "BackupGauge",
    "ExtraFile",
    "HouseUrls",
    "LedgerMark",
    "create",
    "create_house",
    "extra_parts",
    "find_other_ledger",
    "find_restore",
    "finish_restore",
    "load_backup_age",
    "name_moment",
    "record_backup",
    "refuse_older_ledger",
    "refuse_other_ledger",
    "restore",
    "restore_house",
    "take_redis_over",
    "verify",
]
