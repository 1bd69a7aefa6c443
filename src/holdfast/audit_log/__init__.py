"""The audit log: what staff changed, in a chain of hashes per organisation and one for the house."""

from holdfast.audit_log.entry import AuditFilter, AuditHead, AuditQuery
from holdfast.audit_log.every_pod import export_audit_log, load_audit_page
from holdfast.audit_log.store import AuditLog

__all__ = ["AuditFilter", "AuditHead", "AuditLog", "AuditQuery", "export_audit_log", "load_audit_page"]
