"""Everything in one file, and back: all tables at one instant, secrets and settings."""

from holdfast.backup.store import BackupContents, ExtraFile, create, extra_parts, restore, verify

__all__ = ["BackupContents", "ExtraFile", "create", "extra_parts", "restore", "verify"]
