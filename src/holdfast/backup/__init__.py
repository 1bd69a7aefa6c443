"""A box office in one file, and back: every table at one instant, secrets, settings."""

from holdfast.backup.store import BackupContents, ExtraFile, create, extra_parts, restore, verify

__all__ = ["BackupContents", "ExtraFile", "create", "extra_parts", "restore", "verify"]
