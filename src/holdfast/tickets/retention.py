"""What tickets delete, and after how many days: docs/operating/retention.md."""

from holdfast.config import Config
from holdfast.engines.postgres import Queries
from holdfast.engines.retention import RetentionRule, rows_of_archived_shows

Q = Queries("holdfast.tickets", "retention")


def rules(config: Config) -> list[RetentionRule]:
    return [
        RetentionRule("tickets.addresses", Q.addresses, config.personal_keep_d),
        rows_of_archived_shows("ticket_resend", config.past_shows_keep_d),
    ]
