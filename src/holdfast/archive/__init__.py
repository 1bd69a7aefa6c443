"""Past shows in Parquet files: written, verified, and only then deleted from the ledger."""

from holdfast.archive.check import audit_archive
from holdfast.archive.store import Archived, Archiver

__all__ = ["Archived", "Archiver", "audit_archive"]
