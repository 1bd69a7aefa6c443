"""What accounts delete, and after how many days: docs/operating/retention.md."""

from holdfast.config import Config
from holdfast.engines.postgres import Queries
from holdfast.engines.retention import RetentionRule

Q = Queries("holdfast.accounts", "retention")


def rules(config: Config) -> list[RetentionRule]:
    return [
        RetentionRule("accounts.guests", Q.guests, config.guests_keep_d),
        RetentionRule("accounts.contacts", Q.contacts, config.personal_keep_d),
    ]
