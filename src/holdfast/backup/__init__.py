"""A box office in one file, and back: every table at one instant, secrets, settings."""

from holdfast.backup.contents import Contents
from holdfast.backup.store import Extra, create, extra_parts, restore, verify

__all__ = ["Contents", "Extra", "create", "extra_parts", "restore", "verify"]
