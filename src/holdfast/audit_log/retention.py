"""What the audit log erases, and after how many days: docs/operating/retention.md."""

from holdfast.config import Config
from holdfast.engines.postgres import Queries
from holdfast.engines.retention import RetentionRule

Q = Queries("holdfast.audit_log", "retention")


def rules(config: Config) -> list[RetentionRule]:
    return [RetentionRule("audit_log.personal_data", Q.personal_data, config.audit_personal_keep_d)]
